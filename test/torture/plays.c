/* Tasks from beginning to end, on the memory store and on SQLite. */
#include "play.h"

static const struct script goes_well = {
    .workflows = {"order"},
    .tasks = {{"order", NULL, "processed"}, {"order", "{\"sku\":\"A\"}", "processed"}},
};

static const struct script undone = {
    .workflows = {"order"},
    .tasks = {{"order", NULL, "compensated"}, {"order", NULL, "processed"}},
    .rules = {{"charge", 1, 0, DEED_FAIL, 0}},
};

static const struct script stumbles = {
    .workflows = {"order"},
    .tasks = {{"order", NULL, "processed"}},
    .rules = {{"reserve", 0, 1, DEED_STUMBLE, 0}, {"charge", 0, 1, DEED_STUMBLE, 0}},
};

static const struct script cools_down = {
    .workflows = {"order"},
    .tasks = {{"order", NULL, "processed"}},
    .rules = {{"charge", 0, 3, DEED_STUMBLE, 0}},
    .step_ms = 3000,
};

static const struct script ladder_ends = {
    .workflows = {"order"},
    .tasks = {{"order", NULL, "compensated"}},
    .rules = {{"refund", 0, 0, DEED_DONE, 0}, {"charge", 0, 0, DEED_STUMBLE, 0}},
    .step_ms = 3000,
};

static const struct script expires = {
    .workflows = {"order"},
    .tasks = {{"order", NULL, "processed"}},
    .rules = {{"reserve", 0, 1, DEED_SILENT, 0}},
    .step_ms = 2000,
};

static const struct script expires_for_good = {
    .workflows = {"order"},
    .tasks = {{"order", NULL, "compensated"}},
    .rules = {{"refund", 0, 0, DEED_DONE, 0}, {"charge", 0, 0, DEED_SILENT, 0}},
    .step_ms = 3000,
};

static const struct script comes_late = {
    .workflows = {"order"},
    .tasks = {{"order", NULL, "processed"}},
    .rules = {{"reserve", 0, 1, DEED_LATE, 0}},
    .step_ms = 2000,
};

static const struct script renews = {
    .workflows = {"torture/leased"},
    .tasks = {{"leased", NULL, "processed"}},
    .rules = {{"long", 0, 0, DEED_RENEW, 0}},
};

static const struct script lease_lapses = {
    .workflows = {"torture/leased"},
    .tasks = {{"leased", NULL, "processed"}},
    .rules = {{"long", 0, 1, DEED_SILENT, 0}},
};

static const struct script undo_fails = {
    .workflows = {"order"},
    .tasks = {{"order", NULL, "error"}, {"order", NULL, "compensated"}},
    .rules = {{"release", 1, 0, DEED_FAIL, 0},
              {"release", 2, 1, DEED_FAIL, 0},
              {"charge", 0, 0, DEED_FAIL, 0}},
    .orders = {{ORDER_RESUBMIT, 2, "error"}, {ORDER_ACK, 0, NULL}},
};

static const struct script stuck_and_resubmitted = {
    .workflows = {"torture/stuck"},
    .tasks = {{"stuck", NULL, "processed"}, {"stuck", NULL, "error"}},
    .rules = {{"second", 1, 1, DEED_FAIL, 0}, {"second", 2, 0, DEED_FAIL, 0}},
    .orders = {{ORDER_RESUBMIT, 1, "error"}, {ORDER_ACK, 0, NULL}},
};

static const struct script cancelled = {
    .workflows = {"order"},
    .tasks = {{"order", NULL, "compensated"}, {"order", NULL, "compensated"}},
    .rules = {{"release", 0, 0, DEED_DONE, 0},
              {"refund", 0, 0, DEED_DONE, 0},
              {"reserve", 1, 1, DEED_DONE, 1},
              {"charge", 2, 1, DEED_LATE, 2}},
    .orders = {{ORDER_CANCEL, 1, "/reserve"}, {ORDER_CANCEL, 2, "/charge"}},
    .step_ms = 1000,
};

static const struct script abandoned = {
    .workflows = {"order"},
    .tasks = {{"order", NULL, "cancelled"}, {"order", NULL, "processed"}},
    .rules = {{"charge", 1, 1, DEED_SILENT, 1}},
    .orders = {{ORDER_ABANDON, 1, "/charge"}},
};

static const struct script suspended_and_settled = {
    .workflows = {"order", "torture/stuck"},
    .tasks = {{"order", NULL, "processed"}, {"stuck", NULL, "processed"}},
    .rules = {{"reserve", 1, 1, DEED_SILENT, 1}, {"second", 2, 1, DEED_FAIL, 0}},
    .orders = {{ORDER_SUSPEND, 1, "/reserve"},
               {ORDER_SETTLE, 2, "error"},
               {ORDER_ABSENT, 0, NULL},
               {ORDER_RESUME, 1, NULL}},
};

static const struct script undone_by_operator = {
    .workflows = {"order"},
    .tasks = {{"order", NULL, "compensated"}, {"order", NULL, "processed"}},
    .orders = {{ORDER_UNDO, 1, "processed"}},
};

static const struct script restarted = {
    .workflows = {"order"},
    .tasks = {{"order", NULL, "processed"},
              {"order", NULL, "compensated"},
              {"order", NULL, "processed"}},
    .rules = {{"reserve", 0, 0, DEED_DONE, 1}, {"charge", 2, 0, DEED_FAIL, 2}},
    .orders = {{ORDER_RESTART, 3, "/reserve"}, {ORDER_RESTART, 2, "/charge"}},
};

static const struct script stopped_cleanly = {
    .workflows = {"order"},
    .tasks = {{"order", NULL, "processed"}, {"order", NULL, "processed"}},
    .rules = {{"charge", 0, 0, DEED_DONE, 1}},
    .orders = {{ORDER_DRAIN, 2, "/charge"}},
};

static const struct script absent = {
    .workflows = {"order"},
    .tasks = {{"order", NULL, "processed"}},
    .rules = {{"charge", 0, 1, DEED_DONE, 1}},
    .orders = {{ORDER_ABSENT, 1, "/charge"}},
    .step_ms = 1000,
};

static const struct script answers_lost = {
    .workflows = {"order"},
    .tasks = {{"order", NULL, "processed"}, {"order", NULL, "processed"}},
    .rules = {{"reserve", 1, 1, DEED_UNDELIVERED, 0},
              {"reserve", 2, 1, DEED_UNHEARD, 0},
              {"charge", 1, 1, DEED_UNHEARD, 0}},
};

static const struct script agent_dies = {
    .workflows = {"order"},
    .tasks = {{"order", NULL, "processed"}},
    .rules = {{"reserve", 0, 1, DEED_REBOOT, 0}, {"charge", 0, 2, DEED_REBOOT, 0}},
    .step_ms = 3000,
};

static const struct script circuit = {
    .workflows = {"order"},
    .tasks = {{"order", NULL, "processed"}, {"order", NULL, "processed"}},
    .rules = {{"reserve", 0, 1, DEED_CIRCUIT, 0}, {"charge", 1, 2, DEED_CIRCUIT, 0}},
    .step_ms = 1000,
};

static const struct script inline_steps = {
    .workflows = {"torture/inline"},
    .tasks = {{"inline", NULL, "processed"}},
};

static const struct script caught = {
    .workflows = {"torture/catch"},
    .tasks = {{"catch", NULL, "processed"}, {"catch", NULL, "processed"}},
    .rules = {{"ask", 1, 1, DEED_FAIL, 0}, {"ask", 2, 0, DEED_FAIL, 0}},
};

static const struct script many = {
    .workflows = {"order"},
    .tasks = {{"order", NULL, "processed"},
              {"order", NULL, "processed"},
              {"order", NULL, "processed"},
              {"order", NULL, "compensated"},
              {"order", NULL, "processed"},
              {"order", NULL, "processed"},
              {"order", NULL, "compensated"},
              {"order", NULL, "processed"}},
    .rules = {{"charge", 4, 0, DEED_FAIL, 0}, {"charge", 7, 0, DEED_FAIL, 0}},
};

/* On SQLite the store's own answers come from SQLite: what the decorator makes of them is told
 * apart on the memory store, but for those that end the process. */
#define HARMS_OF_SQLITE                                                                            \
    (HARMS_OF_HEAP | (1u << HARM_UNKNOWN_WRITTEN) | (1u << HARM_UNKNOWN_LOST) |                    \
     (1u << HARM_FULL_LONG))
/* A play on SQLite takes its memory in some thousand pieces, most of them deep inside SQLite: for a
 * few plays each of them fails, for the others these many. */
enum { MOST_ON_SQLITE = 250 };

#define PLAY_MOST(script, most)                                                                    \
    {#script "/memory", play_run, &(script), HARMS_OF_HEAP | HARMS_OF_STORE, 0, false},            \
    {                                                                                              \
#script "/sqlite", play_run, &(script), HARMS_OF_SQLITE, (most), false                     \
    }
#define PLAY(script) PLAY_MOST(script, MOST_ON_SQLITE)
#define PLAY_ALL(script) PLAY_MOST(script, 0)

const struct scenario scenarios_plays[] = {
    PLAY_ALL(goes_well),
    PLAY_ALL(undone),
    PLAY(stumbles),
    PLAY(cools_down),
    PLAY(ladder_ends),
    PLAY(expires),
    PLAY(expires_for_good),
    PLAY(comes_late),
    PLAY(renews),
    PLAY(lease_lapses),
    PLAY(undo_fails),
    PLAY_ALL(stuck_and_resubmitted),
    PLAY_ALL(cancelled),
    PLAY(abandoned),
    PLAY_ALL(suspended_and_settled),
    PLAY(undone_by_operator),
    PLAY_ALL(restarted),
    PLAY(stopped_cleanly),
    PLAY(absent),
    PLAY(answers_lost),
    PLAY(agent_dies),
    PLAY(circuit),
    PLAY(inline_steps),
    PLAY(caught),
    PLAY(many),
    {.name = NULL},
};
