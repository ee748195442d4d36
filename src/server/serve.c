#include "server/serve.h"

#include "base/os/log.h"
#include "base/suggest.h"
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

static const char *const option_names[] = {"--listen", "--store", "--log", "--help", NULL};

static void usage_print(void)
{
    printf("usage: reeve serve [options]\n\n");
    for (int i = 0; i < OPTION_COUNT; i++)
        printf("  %-9s VALUE  %s\n%20s(variable %s, default %s)\n", option_rows[i].flag,
               option_rows[i].help, "", option_rows[i].variable, option_rows[i].value);
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

static bool option_take(int argc, char **argv, int *index, const char **values)
{
    for (int i = 0; i < OPTION_COUNT; i++) {
        const char *value = value_of(&option_rows[i], argc, argv, index);
        if (value == NULL)
            continue;
        values[i] = value;
        return true;
    }
    const char *word = argv[*index];
    for (int i = 0; i < OPTION_COUNT; i++) {
        if (strcmp(word, option_rows[i].flag) == 0) {
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

int rv_cmd_serve(int argc, char **argv)
{
    const char *values[OPTION_COUNT];
    for (int i = 0; i < OPTION_COUNT; i++) {
        const char *variable = getenv(option_rows[i].variable);
        values[i] = variable && variable[0] ? variable : option_rows[i].value;
    }
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            usage_print();
            return 0;
        }
        if (!option_take(argc, argv, &i, values))
            return EXIT_USAGE;
    }
    if (!log_choose(values[OPTION_LOG])) {
        fprintf(stderr, "reeve serve: --log %s: must be text, json or auto\n", values[OPTION_LOG]);
        return EXIT_USAGE;
    }
    struct rv_server_options options = {.listen = rv_str_of(values[OPTION_LISTEN]),
                                        .store = values[OPTION_STORE]};
    return rv_server_run(&options);
}
