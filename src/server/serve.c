#include "server/serve.h"

#include "base/os/log.h"
#include "base/suggest.h"
#include "outbound/egress.h"
#include "server/server.h"

#include <stdio.h>
#include <stdlib.h>

enum { EXIT_USAGE = 2 };

enum option { OPTION_LISTEN, OPTION_STORE, OPTION_LOG, OPTION_COUNT };

/* The flag beats the variable, the variable the default. */
struct option_row {
    const char *flag;
    const char *variable;
    const char *value; /* the default */
    const char *help;
};

static const struct option_row option_rows[OPTION_COUNT] = {
    [OPTION_LISTEN] = {"--listen", "REEVE_LISTEN", "127.0.0.1:7733",
                       "address and port of the API; port 0 takes a free one"},
    [OPTION_STORE] = {"--store", "REEVE_STORE", "./reeve.db", "file that holds all state"},
    [OPTION_LOG] = {"--log", "REEVE_LOG", "auto",
                    "text, json, or auto: text on a terminal, else json"},
};

static const char *const option_names[] = {"--listen", "--store", "--log",
                                           "--egress", "--help",  NULL};

/* The one option that may be given many times. */
static const struct option_row egress_row = {
    "--egress", "REEVE_EGRESS", "nowhere",
    "where calls may go, such as https://api.example.com; may be given many times"};
static const char egress_separators[] = " ,\t\n";

struct serve_options {
    const char *values[OPTION_COUNT];
    struct rv_egress *egress; /* owned */
    bool egress_given;
};

static void usage_print(void)
{
    printf("usage: reeve serve [options]\n\n");
    for (int i = 0; i <= OPTION_COUNT; i++) {
        const struct option_row *row = i < OPTION_COUNT ? &option_rows[i] : &egress_row;
        printf("  %-9s VALUE  %s\n%20s(variable %s, default %s)\n", row->flag, row->help, "",
               row->variable, row->value);
    }
}

/* "--store=x" and "--store x"; *index moves on to the last word that was used. */
static const char *value_of(const struct option_row *row, int argc, char **argv, int *index)
{
    size_t len = strlen(row->flag);
    const char *word = argv[*index];
    if (strncmp(word, row->flag, len) != 0)
        return NULL;
    if (word[len] == '=')
        return word + len + 1;
    if (word[len] != '\0' || *index + 1 == argc)
        return NULL;
    return argv[++*index];
}

static bool egress_add(struct serve_options *options, struct rv_str entry, const char *from)
{
    char why[RV_EGRESS_WHY_BYTES];
    enum rv_err err = rv_egress_add(options->egress, entry, why);
    if (err != RV_OK)
        fprintf(stderr, "reeve serve: %s %s\n", from, why[0] ? why : rv_err_text(err));
    return err == RV_OK;
}

/* The variable holds entries between blanks or commas; it counts when no flag is given. */
static bool egress_read_variable(struct serve_options *options)
{
    const char *rest = getenv(egress_row.variable);
    if (options->egress_given || rest == NULL)
        return true;
    for (rest += strspn(rest, egress_separators); *rest != '\0';
         rest += strspn(rest, egress_separators)) {
        size_t len = strcspn(rest, egress_separators);
        if (!egress_add(options, (struct rv_str){rest, len}, egress_row.variable))
            return false;
        rest += len;
    }
    return true;
}

static bool option_take(int argc, char **argv, int *index, struct serve_options *options)
{
    const char *value;
    for (int i = 0; i < OPTION_COUNT; i++) {
        value = value_of(&option_rows[i], argc, argv, index);
        if (value == NULL)
            continue;
        options->values[i] = value;
        return true;
    }
    value = value_of(&egress_row, argc, argv, index);
    if (value != NULL) {
        options->egress_given = true;
        return egress_add(options, rv_str_of(value), egress_row.flag);
    }
    const char *word = argv[*index];
    for (int i = 0; i <= OPTION_COUNT; i++) {
        if (strcmp(word, (i < OPTION_COUNT ? &option_rows[i] : &egress_row)->flag) == 0) {
            fprintf(stderr, "reeve serve: %s needs a value; `reeve serve --help` says which\n",
                    word);
            return false;
        }
    }
    const char *near = rv_suggest(rv_str_of(word), option_names);
    fprintf(stderr, "reeve serve: unknown option %s; %s%s\n", word, near ? "did you mean " : "see ",
            near ? near : "`reeve serve --help`");
    return false;
}

static bool log_choose(const char *form)
{
    if (strcmp(form, "auto") == 0)
        rv_log_set_form(RV_LOG_AUTO);
    else if (strcmp(form, "text") == 0)
        rv_log_set_form(RV_LOG_TEXT);
    else if (strcmp(form, "json") == 0)
        rv_log_set_form(RV_LOG_JSON);
    else
        return false;
    return true;
}

static int serve(int argc, char **argv, struct serve_options *options)
{
    const char **values = options->values;
    for (int i = 0; i < OPTION_COUNT; i++) {
        const char *variable = getenv(option_rows[i].variable);
        values[i] = variable && variable[0] ? variable : option_rows[i].value;
    }
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
    if (!log_choose(values[OPTION_LOG])) {
        fprintf(stderr, "reeve serve: --log %s: must be text, json or auto\n", values[OPTION_LOG]);
        return EXIT_USAGE;
    }
    struct rv_server_options server = {.listen = rv_str_of(values[OPTION_LISTEN]),
                                       .store = values[OPTION_STORE],
                                       .egress = options->egress};
    return rv_server_run(&server);
}

int rv_cmd_serve(int argc, char **argv)
{
    struct serve_options options = {.egress = rv_egress_new()};
    if (options.egress == NULL) {
        fprintf(stderr, "reeve serve: out of memory\n");
        return rv_err_exit(RV_ERR_MEMORY);
    }
    int result = serve(argc, argv, &options);
    rv_egress_free(options.egress);
    return result;
}
