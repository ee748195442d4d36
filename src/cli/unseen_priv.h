/* unseen_priv.h - a note about agents that a workflow calls and that the server does not see. */
#ifndef RV_CLI_UNSEEN_PRIV_H
#define RV_CLI_UNSEEN_PRIV_H

#include "cli/run_priv.h"

/* The agents that workflows call, each once; on cli->arena. */
struct cli_callees {
    struct rv_str *names;
    size_t count;
    size_t room;
};

/* The agents of a definition as it was published; nothing of a text that is none. */
void cli_callees_add(struct cli *cli, struct cli_callees *callees, struct rv_str definition);
void cli_callees_name(struct cli *cli, struct cli_callees *callees, struct rv_str agent);
/* How to serve an agent that no instance of is known to the server, and the name that was perhaps
 * meant; absent for others, as below. */
struct rv_str cli_unseen_cure(struct cli *cli, struct rv_str agent);
/* A line on stderr for each that no instance of is known to the server. Nothing where the server
 * does not answer or the key may not read its agents. */
void cli_callees_note(struct cli *cli, const struct cli_callees *callees);
/* The same for a published workflow by its name. */
void cli_workflow_note(struct cli *cli, struct rv_str workflow);

#endif
