#include "cli/command_priv.h"

#include "base/assert.h"
#include "base/limits.h"
#include "base/suggest.h"
#include "cli/run_priv.h"
#include "json/json.h"

#include <string.h>

static const struct cli_option_row option_rows[CLI_OPTION_COUNT] = {
#define RV_CLI_OPTION(name, flag, value, help) [CLI_OPTION_##name] = {flag, value, help},
#include "cli/tbl/option.def"
#undef RV_CLI_OPTION
};

static const struct cli_command commands[] = {
#define RV_CLI_COMMAND(name, args, min, max, options, help, more)                                  \
    {#name, args, min, max, options, help, more, cli_##name},
#include "cli/tbl/command.def"
#undef RV_CLI_COMMAND
    {NULL, NULL, 0, 0, 0, NULL, NULL, NULL},
};

enum { COMMANDS = sizeof commands / sizeof commands[0] };

const struct cli_option_row *cli_option_row(enum cli_option option)
{
    rv_assert(option < CLI_OPTION_COUNT);
    rv_assert(option_rows[option].flag[0] == '-' && option_rows[option].flag[1] == '-');
    return &option_rows[option];
}

const char *cli_option_help(const char *command, enum cli_option option)
{
    static const struct {
        const char *command;
        enum cli_option option;
        const char *help;
    } own[] = {
#define RV_CLI_OPTION_HELP(command, name, help) {command, CLI_OPTION_##name, help},
#include "cli/tbl/option_help.def"
#undef RV_CLI_OPTION_HELP
    };
    rv_assert(option < CLI_OPTION_COUNT);
    for (size_t i = 0; command != NULL && i < sizeof own / sizeof own[0]; i++)
        if (own[i].option == option && strcmp(own[i].command, command) == 0)
            return own[i].help;
    return option_rows[option].help;
}

const struct cli_command *cli_commands(void)
{
    return commands;
}

uint64_t cli_command_options(const struct cli_command *command)
{
    if (command == NULL)
        return CLI_COMMON;
    return command->options & CLI_RAW ? CLI_RAW : command->options | CLI_COMMON;
}

uint64_t cli_command_shown(const struct cli_command *command)
{
    uint64_t options = cli_command_options(command);
    if (options & CLI_LOCAL)
        options &= ~(CLI_LOCAL | CLI_O(URL));
    if (options & CLI_TEXT)
        options &= ~(CLI_TEXT | CLI_O(JSON));
    return options;
}

const struct cli_command *cli_command_find(struct rv_str name, const char **ret_near)
{
    const char *names[COMMANDS];
    size_t count = 0;
    for (const struct cli_command *command = commands; command->name != NULL; command++) {
        if (rv_str_is(name, command->name))
            return command;
        names[count++] = command->name;
    }
    rv_assert(count == COMMANDS - 1);
    names[count] = NULL;
    *ret_near = rv_suggest(name, names);
    return NULL;
}

/* ---- reading ---- */

/* One walk over the words. */
struct reader {
    struct cli_words *words;
    int argc;
    char **argv;
    int next;
    struct rv_buf *fault;
};

static bool option_unknown(struct reader *reader, struct rv_str flag)
{
    const struct cli_command *command = reader->words->command;
    uint64_t known = cli_command_options(command);
    const char *names[CLI_OPTION_COUNT + 1];
    size_t count = 0;
    for (unsigned i = 0; i < CLI_OPTION_COUNT; i++)
        if (known >> i & 1)
            names[count++] = option_rows[i].flag;
    names[count] = NULL;
    const char *near = rv_suggest_option(flag, names);
    rv_buf_printf(reader->fault, "unknown option %.*s; ", RV_STR_FMT(flag));
    if (near != NULL)
        rv_buf_printf(reader->fault, "did you mean %s?", near);
    else if (command != NULL)
        rv_buf_printf(reader->fault, "see \"reeve help %s\"", command->name);
    else
        rv_buf_lit(reader->fault,
                   "write the options of a command after the command; see \"reeve help\"");
    return false;
}

/* The word at `next` is an option, perhaps with its value behind "=". */
static bool option_read(struct reader *reader)
{
    rv_assert(reader->next < reader->argc);
    rv_assert(reader->argv[reader->next][0] == '-');
    const char *word = reader->argv[reader->next++];
    const char *equals = strchr(word, '=');
    struct rv_str flag = {word, equals ? (size_t)(equals - word) : strlen(word)};
    if (rv_str_is(flag, "-h"))
        flag = RV_STR("--help");
    unsigned i = 0;
    uint64_t known = cli_command_options(reader->words->command);
    while (i < CLI_OPTION_COUNT && !(known >> i & 1 && rv_str_is(flag, option_rows[i].flag)))
        i++;
    if (i == CLI_OPTION_COUNT)
        return option_unknown(reader, flag);
    const struct cli_option_row *row = &option_rows[i];
    const char **value = &reader->words->values[i];
    bool tag = i == CLI_OPTION_TAG && known & CLI_O(TAGS); /* of a new task: there may be several */
    if (tag && reader->words->tags_count == CLI_TAGS_MAX) {
        rv_buf_printf(reader->fault, "a task can have at most %d tags", CLI_TAGS_MAX);
        return false;
    }
    if (*value != NULL && row->value != NULL && !tag) {
        rv_buf_printf(reader->fault, "%s is given twice; leave one out", row->flag);
        return false;
    }
    if (row->value == NULL && equals != NULL) {
        rv_buf_printf(reader->fault, "%s does not take a value", row->flag);
        return false;
    }
    if (row->value != NULL && equals == NULL && reader->next == reader->argc) {
        rv_buf_printf(
            reader->fault, "%s needs a value: %s %s (%s)", row->flag, row->flag, row->value,
            cli_option_help(reader->words->command != NULL ? reader->words->command->name : NULL,
                            (enum cli_option)i));
        return false;
    }
    *value = row->value == NULL ? "" : equals ? equals + 1 : reader->argv[reader->next++];
    rv_assert(reader->next <= reader->argc);
    if (tag)
        reader->words->tags[reader->words->tags_count++] = *value;
    if (i == CLI_OPTION_STORE && (*value)[0] == '\0') {
        rv_buf_lit(reader->fault, "--store is empty; write --store PATH");
        return false;
    }
    return true;
}

static bool command_read(struct reader *reader)
{
    rv_assert(reader->next < reader->argc && reader->words->command == NULL);
    const char *near = NULL;
    char *word = reader->argv[reader->next++];
    reader->words->command = cli_command_find(rv_str_of(word), &near);
    if (reader->words->command != NULL) {
        reader->argv[0] = word;
        return true;
    }
    rv_buf_printf(reader->fault, "unknown command \"%s\"; ", word);
    if (strcmp(word, "stop") == 0)
        rv_buf_lit(reader->fault, "stop the server with Ctrl-C or SIGTERM");
    else if (near != NULL)
        rv_buf_printf(reader->fault, "did you mean \"reeve %s\"?", near);
    else
        rv_buf_lit(reader->fault, "\"reeve help\" lists the commands");
    return false;
}

/* Of "TASK [STEP]": the arguments before those that may be absent. */
static size_t needed_bytes(const char *args)
{
    const char *optional = strstr(args, " [");
    return optional != NULL ? (size_t)(optional - args) : strlen(args);
}

/* An empty argument names nothing; but the command that an agent executes may take one. */
static bool has_empty(const struct cli_words *words)
{
    const struct cli_command *command = words->command;
    bool own = command->options & CLI_RAW || strcmp(command->name, "agent") == 0;
    for (size_t i = 0; i < words->args_count && !own; i++)
        if (words->args[i][0] == '\0')
            return true;
    return false;
}

/* Names the argument that is missing. */
static void missing_tell(struct reader *reader)
{
    const struct cli_words *words = reader->words;
    const struct cli_command *command = words->command;
    bool agent = strcmp(command->name, "agent") == 0;
    if (agent && words->args_count > 0 && strcmp(words->args[0], "exec") != 0) {
        rv_buf_printf(reader->fault, "the word exec is missing: reeve agent exec %s -- COMMAND",
                      words->args[0]);
        return;
    }
    rv_assert(words->args_count < command->args_min);
    const char *missing = command->args;
    size_t len = needed_bytes(command->args);
    if (agent && words->args_count > 0) {
        bool named = words->args_count == 2 && strchr(words->args[1], '/') == NULL;
        missing = named ? "COMMAND" : "NAME";
        len = strlen(missing);
    } else if (words->args_count > 0) {                /* SELECTION, behind a choice of words */
        rv_assert(strchr(command->args, ' ') != NULL); /* it takes two or more */
        missing = strrchr(command->args, ' ') + 1;
        len = strlen(missing);
    }
    rv_buf_printf(reader->fault, "%.*s is missing; usage: reeve %s %s", (int)len, missing,
                  command->name, command->args);
}

/* A shell has split the JSON at its blanks. */
static bool input_is_cut(const struct cli_words *words)
{
    const char *input = words->values[CLI_OPTION_INPUT];
    return input != NULL && input[0] == '{' &&
           rv_json_scan(rv_str_of(input), RV_JSON_DEPTH_MAX, NULL) != RV_OK;
}

static bool args_check(struct reader *reader)
{
    const struct cli_words *words = reader->words;
    const struct cli_command *command = words->command;
    if (command == NULL || words->values[CLI_OPTION_HELP] != NULL)
        return true;
    if (has_empty(words)) {
        rv_buf_printf(reader->fault, "an argument is empty; usage: reeve %s %s", command->name,
                      command->args);
        return false;
    }
    rv_assert(command->args_min <= command->args_max);
    if (words->args_count < command->args_min)
        missing_tell(reader);
    else if (words->args_count > command->args_max && command->options & CLI_O(INPUT) &&
             strcspn(words->args[command->args_max], "{[") == 0 &&
             words->args[command->args_max][0])
        rv_buf_printf(reader->fault,
                      "unexpected argument \"%s\"; to give an input, write --input JSON",
                      words->args[command->args_max]);
    else if (words->args_count > command->args_max)
        rv_buf_printf(reader->fault, "unexpected argument \"%s\"; %susage: reeve %s%s%s",
                      words->args[command->args_max],
                      input_is_cut(words) ? "put the JSON of --input in single quotes; " : "",
                      command->name, command->args[0] ? " " : "", command->args);
    else
        return true;
    return false;
}

bool cli_words_read(struct cli_words *words, int argc, char **argv, struct rv_buf *fault)
{
    struct reader reader = {.words = words, .argc = argc, .argv = argv, .next = 1, .fault = fault};
    bool options_ended = false;
    *words = (struct cli_words){.args = argv + 1};
    while (reader.next < argc) {
        char *word = argv[reader.next];
        bool raw = words->command != NULL && words->command->options & CLI_RAW;
        bool option = !raw && !options_ended && word[0] == '-' && word[1] != '\0';
        if (option && strcmp(word, "--") == 0) {
            options_ended = true;
            reader.next++;
        } else if (option) {
            if (!option_read(&reader))
                return false;
        } else if (words->command == NULL) {
            if (!command_read(&reader))
                return false;
        } else {
            words->args[words->args_count++] = word;
            reader.next++;
        }
    }
    rv_assert(words->args_count == 0 || words->command != NULL);
    return args_check(&reader);
}

/* ---- help ---- */

static void options_write(struct rv_buf *buf, const char *command, uint64_t options)
{
    for (unsigned i = 0; i < CLI_OPTION_COUNT; i++) {
        const struct cli_option_row *row = &option_rows[i];
        if (!(options >> i & 1))
            continue;
        const char *value = row->value ? row->value : "";
        int room = 22 - (int)strlen(row->flag) - 1;
        rv_buf_printf(buf, "  %s %-*s  %s\n", row->flag, room, value,
                      cli_option_help(command, (enum cli_option)i));
    }
}

static void list_write(struct rv_buf *buf)
{
    rv_buf_lit(buf, "usage: reeve COMMAND\n\n");
    for (const struct cli_command *command = commands; command->name != NULL; command++)
        rv_buf_printf(buf, "  %-10s %s\n", command->name, command->help);
    rv_buf_lit(buf, "\nOptions of commands that call a server:\n");
    options_write(buf, NULL, CLI_COMMON);
    rv_buf_lit(buf, "\n\"reeve help COMMAND\" describes a command. Exit codes: 0 success, 1 the "
                    "task failed, was\nundone or cancelled, or the store is damaged, 2 usage, 3 "
                    "not found, 4 refused, 5 unreachable,\n6 the task needs an operator.\n");
}

void cli_help_write(struct rv_buf *buf, const struct cli_command *command)
{
    if (command == NULL) {
        list_write(buf);
        return;
    }
    rv_buf_printf(buf, "usage: reeve %s%s%s\n\n%c%s.\n", command->name, command->args[0] ? " " : "",
                  command->args, command->help[0] - 'a' + 'A', command->help + 1);
    rv_buf_printf(buf, "%s\n", command->more);
    options_write(buf, command->name, cli_command_shown(command));
}
