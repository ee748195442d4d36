/* server_priv.h - questions to the server, and what its refusals mean for who asked. */
#ifndef RV_CLI_SERVER_PRIV_H
#define RV_CLI_SERVER_PRIV_H

#include "cli/run_priv.h"
#include "json/json.h"

/* Paths under construction: begin, then segments or parameters, which are escaped. */
struct cli_path {
    struct rv_buf buf;
    char mark; /* before the next parameter: '?' or '&' */
};
void cli_path_begin(struct cli_path *path, const char *root);
void cli_path_segment(struct cli_path *path, struct rv_str text);
/* Nothing for a NULL value. */
void cli_path_parameter(struct cli_path *path, const char *name, const char *value);
/* On the arena, terminated; the path is done. Absent without memory, as the arena then says. */
struct rv_str cli_path_end(struct cli_path *path, struct rv_arena *arena);

struct cli_call {
    const char *method; /* NULL: GET without a body, POST with one */
    struct rv_str path; /* terminated */
    struct rv_str body;
    const char *content_type; /* NULL: application/json */
    int64_t timeout_ms;       /* 0: the default */
    bool repeatable;          /* a POST that may be repeated without harm */
    bool patient;             /* go on asking while a server that was there restarts */
};

/* What the server said, on cli->arena. */
struct cli_answer {
    int status;
    struct rv_str text;
    struct rv_json json; /* null if it was none */
};

/* CLI_DONE for a 2xx. Otherwise the exit code, after the reason was told on stderr and, with
 * --json, the problem printed on stdout. */
int cli_ask(struct cli *cli, const struct cli_call *call, struct cli_answer *ret_answer);
/* What an answer means whose status and text came: as cli_ask. */
int cli_answer_read(struct cli *cli, struct cli_answer *answer);
/* A GET whose answer only adds to what is shown: false, and not a word, without a good one. */
bool cli_peek(struct cli *cli, struct rv_str path, struct rv_json *ret_json);
/* The path of "namespace/name" or "namespace/name:version"; absent if it is neither. */
struct rv_str cli_workflow_path(struct cli *cli, struct rv_str workflow);
/* As cli_ask, for a GET. */
int cli_get(struct cli *cli, struct rv_str path, struct cli_answer *ret_answer);
/* What an operator says about one step, as JSON; absent what is not said. */
struct cli_about {
    struct rv_str step;
    struct rv_str late_seen;
    struct rv_str input;
    struct rv_str output;
    const char *command; /* of a bulk; NULL: it is none */
    const char *finding; /* of a settlement; NULL: it is none */
    long rate;           /* 0: not said */
};
/* --late-seen, a number: CLI_DONE, or CLI_USAGE told. */
int cli_late_seen_read(struct cli *cli, struct cli_about *about);
/* CLI_DONE, or CLI_USAGE told: --abandon needs its reason. */
int cli_abandon_check(struct cli *cli);
/* --by, else the variable USER, else the effective user's name or number; NULL: no memory. */
const char *cli_who(struct cli *cli);
/* POSTs an operator's word to `path`: who, and why; `about` may be NULL. */
int cli_operate(struct cli *cli, struct cli_path *path, const struct cli_about *about,
                struct cli_answer *ret_answer);
/* What answers is another service: tells the cure, gives the exit code. */
int cli_stranger_tell(struct cli *cli);
/* The exit code for a problem+json, or for an HTTP status alone if it is none. */
int cli_problem_code(int status, const struct rv_json *problem);
/* False after it was told that the server's address ends with /v1, or that the API key in the
 * environment is no header: a file that was edited elsewhere ends its lines with CR. */
bool cli_address_check(const struct cli *cli);
/* Opens the client if it is not open; NULL after the reason was told. */
struct rv_client *cli_client(struct cli *cli, bool patient);
void cli_pause(int64_t ms);
/* rv_client_request(), which a server of this machine that does not listen yet is given 2 s for: a
 * script starts it in the background and goes on. */
int cli_request(struct rv_client *client, const struct rv_call *call, struct rv_answer *ret_answer);
/* Tells that there was no answer; gives the exit code. */
int cli_unreachable(struct cli *cli, struct rv_client *client);
/* Prints the answer as it is, and a newline. */
void cli_json_print(struct rv_str text);

/* Members of an answer: absent or 0 if they are not there. */
struct rv_str cli_str(const struct rv_json *object, const char *name);
int64_t cli_int(const struct rv_json *object, const char *name);
bool cli_bool(const struct rv_json *object, const char *name);
int64_t cli_instant(const struct rv_json *object, const char *name);
/* The items of an array; *ret_count 0 if it is not there. */
const struct rv_json *cli_items(const struct rv_json *object, const char *name, size_t *ret_count);
/* An error in one line: "type: title: detail", without what is missing. */
struct rv_str cli_error_text(struct rv_arena *arena, const struct rv_json *error);
/* An error of a task: the same, then where it was raised: " (at /do/0/reserve)". */
struct rv_str cli_task_error_text(struct rv_arena *arena, const struct rv_json *error);
/* The name "namespace/name" apart from ":version", which may be absent. */
void cli_workflow_split(struct rv_str workflow, struct rv_str *ret_name,
                        struct rv_str *ret_version);

#endif
