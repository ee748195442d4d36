#include "server/serve.h"

#include "base/assert.h"
#include "base/os/log.h"
#include "base/suggest.h"
#include "base/time.h"
#include "outbound/egress.h"
#include "door/door.h"
#include "server/server.h"
#include "server/systemd.h"

#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

enum { EXIT_USAGE = 2, HELP_COLUMN = 25 };

enum option {
#define RV_SERVE_OPTION(name, flag, variable, value, otherwise, help) OPTION_##name,
#include "cli/tbl/serve.def"
#undef RV_SERVE_OPTION
    OPTION_COUNT
};

/* The flag beats the variable, the variable the default. */
struct option_row {
    const char *flag;
    const char *variable;
    const char *value;     /* what it takes; NULL: nothing */
    const char *otherwise; /* the default; NULL: none */
    const char *help;
};

static const struct option_row option_rows[OPTION_COUNT] = {
#define RV_SERVE_OPTION(name, flag, variable, value, otherwise, help)                              \
    [OPTION_##name] = {flag, variable, value, otherwise, help},
#include "cli/tbl/serve.def"
#undef RV_SERVE_OPTION
};

static const char separators[] = " ,\t\n"; /* in a variable that holds several values */

struct serve_options {
    const char *values[OPTION_COUNT];
    struct rv_egress *egress; /* owned */
    bool egress_given;
    struct rv_str listens[RV_DOOR_SOCKETS_MAX + 1]; /* one too many is told where they are opened */
    size_t listens_count;
    const char *listens_from; /* the flag or the variable */
};

static void usage_print(void)
{
    printf("usage: reeve serve [options]\n\n");
    for (int i = 0; i < OPTION_COUNT; i++) {
        const struct option_row *row = &option_rows[i];
        rv_assert(strlen(row->flag) < HELP_COLUMN);
        int room = (int)(HELP_COLUMN - strlen(row->flag)); /* for the value */
        printf("  %s %-*s %s\n%*s(variable %s", row->flag, room, row->value ? row->value : "",
               row->help, HELP_COLUMN + 4, "", row->variable);
        if (row->otherwise != NULL)
            printf(", default %s", row->otherwise);
        printf(")\n");
    }
}

/* "--store=x" and "--store x"; *index moves on to the last word that was used. NULL: the word is no
 * such option, or has not its value. */
static const char *value_of(const struct option_row *row, int argc, char **argv, int *index)
{
    rv_assert(*index > 0);
    rv_assert(*index < argc);
    size_t len = strlen(row->flag);
    const char *word = argv[*index];
    if (strncmp(word, row->flag, len) != 0)
        return NULL;
    if (row->value == NULL)
        return word[len] == '\0' ? "1" : NULL;
    if (word[len] == '=')
        return word + len + 1;
    if (word[len] != '\0' || *index + 1 == argc)
        return NULL;
    return argv[++*index];
}

/* The variable of an option that takes no value; NULL in *ret_value: off. */
static bool switch_read(const struct option_row *row, const char *text, const char **ret_value)
{
    rv_assert(row->value == NULL);
    static const char *const on[] = {"1", "true", "yes", "on"};
    static const char *const off[] = {"", "0", "false", "no", "off"};
    *ret_value = NULL;
    for (size_t i = 0; i < sizeof off / sizeof off[0]; i++)
        if (strcasecmp(text, off[i]) == 0)
            return true;
    for (size_t i = 0; i < sizeof on / sizeof on[0]; i++)
        if (strcasecmp(text, on[i]) == 0)
            *ret_value = on[0];
    if (*ret_value == NULL)
        rv_log_refusal("reeve serve",
                       "%s=%s: must be 1, true, yes or on, or 0, false, no or off (the default)",
                       row->variable, text);
    return *ret_value != NULL;
}

static bool egress_add(struct serve_options *options, struct rv_str entry, const char *from)
{
    char why[RV_EGRESS_WHY_BYTES];
    enum rv_err err = rv_egress_add(options->egress, entry, why);
    if (err != RV_OK)
        rv_log_refusal("reeve serve", "%s %s", from, why[0] ? why : rv_err_text(err));
    return err == RV_OK;
}

/* The variable holds entries between blanks or commas; it counts when no flag is given. */
static bool egress_read_variable(struct serve_options *options)
{
    const char *rest = getenv(option_rows[OPTION_EGRESS].variable);
    if (options->egress_given || rest == NULL)
        return true;
    for (rest += strspn(rest, separators); *rest != '\0'; rest += strspn(rest, separators)) {
        size_t len = strcspn(rest, separators);
        if (!egress_add(options, (struct rv_str){rest, len}, option_rows[OPTION_EGRESS].variable))
            return false;
        rest += len;
    }
    return true;
}

static void listen_add(struct serve_options *options, struct rv_str address)
{
    if (options->listens_count <= RV_DOOR_SOCKETS_MAX)
        options->listens[options->listens_count++] = address;
}

/* As those of --egress; the default counts where nothing is given and no socket is handed over. */
static void listen_read_variable(struct serve_options *options)
{
    const char *rest = getenv(option_rows[OPTION_LISTEN].variable);
    if (options->listens_count > 0)
        return;
    options->listens_from = option_rows[OPTION_LISTEN].variable;
    for (rest = rest ? rest : ""; *(rest += strspn(rest, separators)) != '\0';
         rest += strcspn(rest, separators))
        listen_add(options, (struct rv_str){rest, strcspn(rest, separators)});
    if (options->listens_count > 0)
        return;
    options->listens_from = option_rows[OPTION_LISTEN].flag;
    if (rv_systemd_sockets() == 0)
        listen_add(options, rv_str_of(option_rows[OPTION_LISTEN].otherwise));
}

static bool option_take(int argc, char **argv, int *index, struct serve_options *options)
{
    const char *names[OPTION_COUNT + 2];
    for (int i = 0; i < OPTION_COUNT; i++) {
        names[i] = option_rows[i].flag;
        const char *value = value_of(&option_rows[i], argc, argv, index);
        if (value == NULL)
            continue;
        options->values[i] = value;
        options->egress_given = options->egress_given || i == OPTION_EGRESS;
        if (i == OPTION_LISTEN)
            listen_add(options, rv_str_of(value));
        return i != OPTION_EGRESS || egress_add(options, rv_str_of(value), option_rows[i].flag);
    }
    const char *word = argv[*index];
    for (int i = 0; i < OPTION_COUNT; i++) {
        if (strcmp(word, option_rows[i].flag) == 0) {
            rv_log_refusal("reeve serve", "%s needs a value; see `reeve serve --help`", word);
            return false;
        }
    }
    if (word[0] != '-') {
        rv_log_refusal("reeve serve",
                       "unexpected argument %s; for the file of the store write "
                       "--store %s",
                       word, word);
        return false;
    }
    names[OPTION_COUNT] = "--help";
    names[OPTION_COUNT + 1] = NULL;
    const char *near = rv_suggest_option(rv_str_of(word), names);
    rv_log_refusal("reeve serve", "unknown option %s; %s%s%s", word,
                   near ? "did you mean " : "see ", near ? near : "`reeve serve --help`",
                   near ? "?" : "");
    return false;
}

/* What its user wrote: the flag, or the variable that stands in for it. */
static const char *source_of(int option, const char *value)
{
    rv_assert(option >= 0);
    rv_assert(option < OPTION_COUNT);
    const struct option_row *row = &option_rows[option];
    return value == getenv(row->variable) ? row->variable : row->flag;
}

/* Not 0. */
static bool time_read(const char *text, int64_t *ret_ms)
{
    return rv_duration_parse_typed(rv_str_of(text), ret_ms) == RV_OK && *ret_ms > 0;
}

static bool retain_read(const char *from, const char *text, int64_t *ret_ms)
{
    *ret_ms = 0;
    if (strcmp(text, "forever") == 0)
        return true;
    if (time_read(text, ret_ms) && *ret_ms >= RV_SECOND_MS)
        return true;
    rv_log_refusal("reeve serve",
                   "%s %s: must be a duration from 1s to " RV_DURATION_MAX_TEXT
                   ", such as 90s, 1h30m, 7d or P1Y, or forever",
                   from, text);
    return false;
}

/* How long others may have a step wait. */
static bool most_read(const char *from, const char *text, int64_t *ret_ms)
{
    if (time_read(text, ret_ms) && *ret_ms >= RV_SECOND_MS)
        return true;
    rv_log_refusal("reeve serve",
                   "%s %s: must be a duration from 1s to " RV_DURATION_MAX_TEXT
                   ", such as 90s, 1h30m or PT10M",
                   from, text);
    return false;
}

/* A look that comes later than this is an absence of the server: much longer, and a server that
 * hangs would be taken for one that works. */
static bool scan_interval_read(const char *from, const char *text, int64_t *ret_ms)
{
    enum { LEAST_MS = 100, MOST_MS = 60000 };
    if (time_read(text, ret_ms) && *ret_ms >= LEAST_MS && *ret_ms <= MOST_MS)
        return true;
    rv_log_refusal("reeve serve",
                   "%s %s: must be a duration from 100ms to 60s, such as 250ms, 1s or PT10S", from,
                   text);
    return false;
}

/* A file is one server's alone, so that whatever its tasks need must run in it. */
static bool roles_read(const char *from, const char *text, bool *ret_http_agent)
{
    enum { API, SCHEDULER, SUPERVISOR, HTTP_AGENT, ROLES };
    static const char *const names[ROLES + 1] = {"api", "scheduler", "supervisor", "http-agent"};
    bool has[ROLES] = {false};
    const char *rest = text;
    while (*rest != '\0') {
        struct rv_str word = {rest, strcspn(rest, ",")};
        int role = 0;
        while (role < ROLES && !rv_str_is(word, names[role]))
            role++;
        if (role == ROLES) {
            rv_log_refusal("reeve serve",
                           "%s %s: \"%.*s\": unknown role; roles, separated by commas: api, "
                           "scheduler, supervisor, http-agent",
                           from, text, RV_STR_FMT(word));
            return false;
        }
        has[role] = true;
        rest += word.len;
        rest += *rest == ',' && rest[1] != '\0';
    }
    *ret_http_agent = has[HTTP_AGENT];
    if (has[API] && has[SCHEDULER] && has[SUPERVISOR])
        return true;
    rv_log_refusal("reeve serve",
                   "%s %s: the roles api, scheduler and supervisor are required, since no other "
                   "server can use the same store; http-agent may be omitted",
                   from, text);
    return false;
}

/* Before the first option that is refused: its line has the form of all others. */
static void log_choose_first(int argc, char **argv, const char *otherwise)
{
    const char *form = otherwise;
    for (int i = 1; i < argc; i++) {
        const char *value = value_of(&option_rows[OPTION_LOG], argc, argv, &i);
        form = value != NULL ? value : form;
    }
    (void)rv_log_choose(form);
}

static bool variables_read(int argc, char **argv, const char **ret_values)
{
    for (int i = 0; i < OPTION_COUNT; i++) {
        const char *variable = getenv(option_rows[i].variable);
        ret_values[i] = variable && variable[0] ? variable : option_rows[i].otherwise;
    }
    log_choose_first(argc, argv, ret_values[OPTION_LOG]);
    for (int i = 0; i < OPTION_COUNT; i++)
        if (option_rows[i].value == NULL && ret_values[i] != NULL &&
            !switch_read(&option_rows[i], ret_values[i], &ret_values[i]))
            return false;
    return true;
}

static int serve(int argc, char **argv, struct serve_options *options)
{
    const char **values = options->values;
    if (!variables_read(argc, argv, values))
        return EXIT_USAGE;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            usage_print();
            return 0;
        }
        if (!option_take(argc, argv, &i, options))
            return EXIT_USAGE;
    }
    if (!egress_read_variable(options))
        return EXIT_USAGE;
    listen_read_variable(options);
    rv_assert(values[OPTION_LOG] != NULL); /* these have a default in serve.def */
    rv_assert(values[OPTION_STORE] != NULL);
    rv_assert(values[OPTION_ROLES] != NULL);
    if (!rv_log_choose(values[OPTION_LOG])) {
        rv_log_refusal("reeve serve", "%s %s: must be text, json or auto",
                       source_of(OPTION_LOG, values[OPTION_LOG]), values[OPTION_LOG]);
        return EXIT_USAGE;
    }
    if (values[OPTION_STORE][0] == '\0') {
        rv_log_refusal("reeve serve", "--store is empty; write --store PATH");
        return EXIT_USAGE;
    }
    int64_t retain_ms, scan_interval_ms, postpone_ms, circuit_ms;
    bool http_agent;
    if (!roles_read(source_of(OPTION_ROLES, values[OPTION_ROLES]), values[OPTION_ROLES],
                    &http_agent) ||
        !retain_read(source_of(OPTION_RETAIN, values[OPTION_RETAIN]), values[OPTION_RETAIN],
                     &retain_ms) ||
        !most_read(source_of(OPTION_POSTPONE_MAX, values[OPTION_POSTPONE_MAX]),
                   values[OPTION_POSTPONE_MAX], &postpone_ms) ||
        !most_read(source_of(OPTION_CIRCUIT_MAX, values[OPTION_CIRCUIT_MAX]),
                   values[OPTION_CIRCUIT_MAX], &circuit_ms) ||
        !scan_interval_read(source_of(OPTION_SCAN_INTERVAL, values[OPTION_SCAN_INTERVAL]),
                            values[OPTION_SCAN_INTERVAL], &scan_interval_ms))
        return EXIT_USAGE;
    struct rv_server_options server = {.listens = options->listens,
                                       .listens_count = options->listens_count,
                                       .listens_from = options->listens_from,
                                       .store = values[OPTION_STORE],
                                       .egress = options->egress,
                                       .http_agent = http_agent,
                                       .scan_interval_ms = scan_interval_ms,
                                       .retain_ms = retain_ms,
                                       .postpone_ms_max = postpone_ms,
                                       .circuit_ms_max = circuit_ms,
                                       .webhook_secrets = values[OPTION_WEBHOOK_SECRETS],
                                       .alert_webhook = values[OPTION_ALERT_WEBHOOK],
                                       .secrets = values[OPTION_SECRETS],
                                       .access_log = values[OPTION_ACCESS_LOG],
                                       .otlp = values[OPTION_OTLP],
                                       .tls_cert = values[OPTION_TLS_CERT],
                                       .tls_key = values[OPTION_TLS_KEY],
                                       .behind_proxy = values[OPTION_BEHIND_PROXY] != NULL};
    return rv_server_run(&server);
}

int rv_cmd_serve(int argc, char **argv)
{
    struct serve_options options = {.egress = rv_egress_new(),
                                    .listens_from = option_rows[OPTION_LISTEN].flag};
    if (options.egress == NULL) {
        rv_log_refusal("reeve serve", "out of memory");
        return rv_err_exit(RV_ERR_MEMORY);
    }
    int result = serve(argc, argv, &options);
    rv_egress_free(options.egress);
    return result;
}
