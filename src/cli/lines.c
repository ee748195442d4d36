#include "cli/lines_priv.h"

#include "base/limits.h"
#include "base/os/clock.h"
#include "base/os/random.h"
#include "cli/payload_priv.h"
#include "cli/server_priv.h"
#include "cli/terminal_priv.h"
#include "cli/text_priv.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum {
    BATCH_LINES = RV_CALL_ITEMS_MAX,
    BATCH_BYTES = 4 * 1024 * 1024, /* of inputs; a batch is closed above this */
    FAULTS_TOLD_MAX = 50,
    BAR_COLUMNS = 24
};

struct lines {
    struct cli *cli;
    struct rv_client *client;
    FILE *file;
    const char *name;
    int64_t file_bytes; /* 0: not known, as of a pipe */
    int64_t begun_ms;
    struct cli_pace pace;
    struct rv_buf line;
    uint64_t line_number;
    int64_t bytes_read;

    struct rv_arena arena; /* of one batch */
    struct rv_submission *items;
    struct rv_receipt *receipts;
    uint64_t *numbers; /* of their lines */
    const char *traceparent;
    const char *tracestate;
    const char *tags; /* JSON; NULL: none */
    size_t count;
    size_t bytes;

    uint64_t accepted;
    uint64_t known;
    uint64_t faulty;  /* lines that were never sent */
    uint64_t refused; /* by the server */
    int code_refused; /* of the first of them */
};

/* ---- lines ---- */

enum line_result { LINE_END, LINE_TAKEN, LINE_TOO_LONG };

static enum line_result line_read(struct lines *lines)
{
    int c;
    rv_buf_reset(&lines->line);
    while ((c = getc_unlocked(lines->file)) != EOF && c != '\n') {
        rv_buf_add_char(&lines->line, (char)c);
        lines->bytes_read++;
    }
    if (c == EOF && lines->line.len == 0 && lines->line.failed == RV_OK)
        return LINE_END;
    lines->bytes_read++;
    lines->line_number++;
    return lines->line.failed == RV_OK ? LINE_TAKEN : LINE_TOO_LONG;
}

static bool line_blank(struct rv_str line)
{
    for (size_t i = 0; i < line.len; i++)
        if (line.at[i] != ' ' && line.at[i] != '\t' && line.at[i] != '\r')
            return false;
    return true;
}

/* `column`: 0 if none is meant. */
static void fault_tell(struct lines *lines, uint64_t number, unsigned column, const char *format,
                       ...) __attribute__((format(printf, 4, 5)));

static void fault_tell(struct lines *lines, uint64_t number, unsigned column, const char *format,
                       ...)
{
    uint64_t told = lines->faulty + lines->refused;
    if (told > FAULTS_TOLD_MAX)
        return;
    va_list args;
    va_start(args, format);
    struct rv_str text = rv_arena_vprintf(&lines->arena, format, args);
    va_end(args);
    text = cli_text_clean(&lines->arena, text);
    if (lines->cli->terminal_err)
        cli_line_clear(stderr);
    fprintf(stderr, "%s:%" PRIu64 ":", lines->name, number);
    if (column > 0)
        fprintf(stderr, "%u:", column);
    fprintf(stderr, " %.*s\n", RV_STR_FMT(text));
    if (told == FAULTS_TOLD_MAX)
        fprintf(stderr, "%s: more lines were refused; these lines are counted, but not listed\n",
                lines->name);
}

/* The key of an input: the string or number to which --key-from points. */
static bool key_find(struct lines *lines, const struct rv_json *input, struct rv_str *ret_key)
{
    const char *pointer = cli_value(lines->cli, CLI_OPTION_KEY_FROM);
    const struct rv_json *value = rv_json_at(input, rv_str_of(pointer));
    *ret_key = rv_json_str(value);
    if (value != NULL && value->type == RV_JSON_NUMBER && !value->computed)
        *ret_key = (struct rv_str){value->u.text, value->len};
    if (ret_key->len == 0) {
        lines->faulty++;
        fault_tell(lines, lines->line_number, 0,
                   "no key at %s; it must be a non-empty string or a number", pointer);
        return false;
    }
    *ret_key = rv_arena_str(&lines->arena, *ret_key);
    return ret_key->at != NULL;
}

/* Checks the line and puts it on the batch. */
static void line_take(struct lines *lines)
{
    struct rv_json_fault fault;
    struct rv_json input;
    struct rv_str key = RV_STR_NONE;
    struct rv_str text = rv_arena_str(&lines->arena, rv_buf_str(&lines->line));
    const char *priority = cli_value(lines->cli, CLI_OPTION_PRIORITY);
    if (rv_json_parse(&lines->arena, text, RV_JSON_DEPTH_MAX, &input, &fault) != RV_OK) {
        lines->faulty++;
        fault_tell(lines, lines->line_number, fault.column, "not valid JSON: %s", fault.message);
        return;
    }
    if (cli_has(lines->cli, CLI_OPTION_KEY_FROM) && !key_find(lines, &input, &key))
        return;
    lines->numbers[lines->count] = lines->line_number;
    lines->items[lines->count++] = (struct rv_submission){.workflow = lines->cli->words.args[0],
                                                          .input = text.at,
                                                          .key = key.at,
                                                          .traceparent = lines->traceparent,
                                                          .tracestate = lines->tracestate,
                                                          .tags = lines->tags,
                                                          .priority = priority == NULL ? 0
                                                                      : priority[0] == '0'
                                                                          ? RV_PRIORITY_LOWEST
                                                                          : priority[0] - '0'};
    lines->bytes += text.len;
}

/* Fills the batch; false when nothing is left to read and the batch is empty. */
static bool batch_fill(struct lines *lines)
{
    rv_arena_reset(&lines->arena);
    lines->count = 0;
    lines->bytes = 0;
    while (lines->count < BATCH_LINES && lines->bytes < BATCH_BYTES) {
        enum line_result result = line_read(lines);
        if (result == LINE_END)
            break;
        if (result == LINE_TOO_LONG) {
            lines->faulty++;
            fault_tell(lines, lines->line_number, 0, "the input is larger than %d KiB",
                       RV_PAYLOAD_BYTES_MAX / 1024);
        } else if (!line_blank(rv_buf_str(&lines->line))) {
            line_take(lines);
        }
    }
    return lines->count > 0;
}

/* ---- submission ---- */

static void receipt_count(struct lines *lines, size_t i)
{
    const struct rv_receipt *receipt = &lines->receipts[i];
    if (receipt->status == 201) {
        lines->accepted++;
    } else if (receipt->status == 200) {
        lines->known++;
    } else {
        if (lines->refused++ == 0)
            lines->code_refused = cli_problem_code(receipt->status, NULL);
        fault_tell(lines, lines->numbers[i], 0, "%s", receipt->why);
    }
    if (cli_has(lines->cli, CLI_OPTION_JSON) && receipt->task[0] != '\0')
        printf("{\"line\":%" PRIu64 ",\"task\":\"%s\",\"state\":\"%s\",\"status\":%d}\n",
               lines->numbers[i], receipt->task, receipt->state, receipt->status);
}

/* What stays unsaid when the server is gone is said: how far it came, and how to go on. */
static int batch_submit(struct lines *lines)
{
    int result = rv_client_submit_many(lines->client, lines->items, lines->count, lines->receipts);
    bool answered = result == RV_RESULT_OK || result == RV_RESULT_REFUSED;
    for (size_t i = 0; i < lines->count; i++)
        if (lines->receipts[i].status != 0)
            receipt_count(lines, i);
    if (answered)
        return CLI_DONE;
    if (lines->cli->terminal_err)
        cli_line_clear(stderr);
    if (result == RV_RESULT_UNREACHABLE)
        (void)cli_unreachable(lines->cli, lines->client);
    else
        cli_tell(lines->cli, CLI_UNREACHABLE, "%s", rv_client_error(lines->client));
    fprintf(stderr, "%s: at least one line from line %" PRIu64 " on was not acknowledged; %s\n",
            lines->name, lines->numbers[0],
            cli_has(lines->cli, CLI_OPTION_KEY_FROM)
                ? "repeat the command: keys prevent duplicate tasks"
                : "check which tasks exist before you repeat the command. In future, use "
                  "--key-from: with keys, a repeated command creates no duplicate tasks");
    return CLI_UNREACHABLE;
}

static void progress_write(struct lines *lines)
{
    struct cli *cli = lines->cli;
    struct rv_arena *arena = &lines->arena;
    int64_t ms = rv_clock_mono_ms() - lines->begun_ms;
    uint64_t done = lines->accepted + lines->known + lines->refused + lines->faulty;
    uint64_t rate = ms > 0 ? done * 1000 / (uint64_t)ms : 0;
    struct rv_str rest = RV_STR("");
    if (lines->file_bytes > 0 && lines->bytes_read > 0) {
        int64_t left = lines->file_bytes - lines->bytes_read;
        double left_ms = (double)ms * (double)(left > 0 ? left : 0) / (double)lines->bytes_read;
        rest = rv_arena_printf(arena, ", %.*s left",
                               RV_STR_FMT(cli_text_duration(arena, (int64_t)left_ms)));
    }
    struct rv_str bar = cli_text_bar(arena, (uint64_t)lines->bytes_read,
                                     (uint64_t)lines->file_bytes, BAR_COLUMNS);
    struct rv_str text = rv_arena_printf(
        arena, "%.*s%s%.*s lines, %.*s/s%.*s", RV_STR_FMT(lines->file_bytes ? bar : RV_STR("")),
        lines->file_bytes ? " " : "", RV_STR_FMT(cli_text_number(arena, done)),
        RV_STR_FMT(cli_text_number(arena, rate)), RV_STR_FMT(rest));
    cli_line_write(cli, stderr, text, cli_width_err(cli));
}

static void summary_print(struct lines *lines)
{
    struct rv_arena *arena = &lines->arena;
    int64_t ms = rv_clock_mono_ms() - lines->begun_ms;
    uint64_t sent = lines->accepted + lines->known + lines->refused;
    if (lines->cli->terminal_err)
        cli_line_clear(stderr);
    fprintf(cli_has(lines->cli, CLI_OPTION_JSON) ? stderr : stdout,
            "%.*s accepted, %.*s already known, %.*s refused, %.*s invalid; %.*s, %.*s/s\n",
            RV_STR_FMT(cli_text_number(arena, lines->accepted)),
            RV_STR_FMT(cli_text_number(arena, lines->known)),
            RV_STR_FMT(cli_text_number(arena, lines->refused)),
            RV_STR_FMT(cli_text_number(arena, lines->faulty)),
            RV_STR_FMT(cli_text_duration(arena, ms)),
            RV_STR_FMT(cli_text_number(arena, ms > 0 ? sent * 1000 / (uint64_t)ms : sent)));
}

/* A workflow that is not there would have every line refused: it is looked for first. */
static int workflow_check(struct cli *cli)
{
    struct rv_str name;
    struct rv_str version;
    struct cli_path path;
    struct cli_answer answer;
    cli_workflow_split(rv_str_of(cli->words.args[0]), &name, &version);
    const char *slash = memchr(name.at, '/', name.len);
    if (slash == NULL)
        return cli_tell(cli, CLI_USAGE, "\"%s\" must be NAMESPACE/NAME or NAMESPACE/NAME:VERSION",
                        cli->words.args[0]);
    cli_path_begin(&path, "/v1/workflows");
    cli_path_segment(&path, (struct rv_str){name.at, (size_t)(slash - name.at)});
    cli_path_segment(&path, (struct rv_str){slash + 1, (size_t)(name.at + name.len - slash - 1)});
    cli_path_parameter(&path, "version", rv_arena_str(&cli->arena, version).at);
    return cli_get(cli, cli_path_end(&path, &cli->arena), &answer);
}

static int lines_run(struct lines *lines)
{
    int code = CLI_DONE;
    while (code == CLI_DONE && batch_fill(lines)) {
        code = batch_submit(lines);
        if (lines->cli->terminal_err && cli_pace_due(&lines->pace))
            progress_write(lines);
    }
    summary_print(lines);
    if (code == CLI_DONE && ferror(lines->file))
        return cli_tell(lines->cli, CLI_USAGE,
                        "%s: a read error occurred before the end of the file", lines->name);
    if (code == CLI_DONE && lines->refused > 0)
        return lines->code_refused;
    return code == CLI_DONE && lines->faulty > 0 ? CLI_USAGE : code;
}

static bool file_open(struct lines *lines, const char *name)
{
    struct stat about;
    bool standard = strcmp(name, "-") == 0;
    lines->name = standard ? "stdin" : name;
    lines->file = standard ? stdin : fopen(name, "rbe");
    if (lines->file == NULL)
        return false;
    if (fstat(fileno(lines->file), &about) == 0 && S_ISREG(about.st_mode))
        lines->file_bytes = about.st_size;
    if (S_ISDIR(about.st_mode)) {
        errno = EISDIR;
        return false;
    }
    return true;
}

int cli_lines_submit(struct cli *cli, struct rv_str tags)
{
    struct lines lines = {.cli = cli, .begun_ms = rv_clock_mono_ms(), .tags = tags.at};
    if (!file_open(&lines, cli_value(cli, CLI_OPTION_LINES))) {
        int code = errno == ENOENT ? CLI_NOT_FOUND : CLI_USAGE;
        return cli_tell(cli, code, "%s: %s", lines.name, strerror(errno));
    }
    cli_trace_read(cli, &lines.traceparent, &lines.tracestate);
    rv_buf_init(&lines.line, RV_PAYLOAD_BYTES_MAX);
    rv_arena_init(&lines.arena, 0);
    lines.items = RV_NEW_ARRAY(&cli->arena, struct rv_submission, BATCH_LINES);
    lines.receipts = RV_NEW_ARRAY(&cli->arena, struct rv_receipt, BATCH_LINES);
    lines.numbers = RV_NEW_ARRAY(&cli->arena, uint64_t, BATCH_LINES);
    int code = workflow_check(cli);
    if (code == CLI_DONE)
        lines.client = cli_client(cli, true);
    if (code == CLI_DONE && (lines.client == NULL || lines.numbers == NULL))
        code = CLI_USAGE;
    if (code == CLI_DONE)
        code = lines_run(&lines);
    rv_arena_done(&lines.arena);
    rv_buf_done(&lines.line);
    if (lines.file != stdin)
        (void)fclose(lines.file);
    return code;
}
