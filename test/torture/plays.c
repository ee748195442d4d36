/* Tasks from beginning to end, on the memory store and on SQLite. */
#include "../scenario/order.h"
#include "play.h"

#define REST " completeBy: PT10S, failures: {threshold: 1, rounds: 0}"

/* Two calls, of which only the first declares its undo. */
#define STUCK                                                                                      \
    DOCUMENT("stuck")                                                                              \
    "do:\n"                                                                                        \
    "  - first: {call: one, metadata: {reeve: {" REST "}}}\n"                                      \
    "  - second: {call: one, metadata: {reeve: {" REST "}}}\n"

/* Steps without an agent, a choice and a wait around a call. */
#define INLINE                                                                                     \
    DOCUMENT("inline")                                                                             \
    "do:\n"                                                                                        \
    "  - prepare: {set: {items: [1, 2], sum: 0}}\n"                                                \
    "  - ask: {call: one, with: {item: '${ .items[0] }'}, output: {as: '${ .ok }'}}\n"             \
    "  - rest: {wait: PT2S}\n"                                                                     \
    "  - which:\n"                                                                                 \
    "      switch:\n"                                                                              \
    "        - yes: {when: '${ . == true }', then: last}\n"                                        \
    "        - no: {then: end}\n"                                                                  \
    "  - last: {set: {end: 'reached'}}\n"

/* What is raised is caught, after being tried again by the language itself. */
#define CATCH                                                                                      \
    DOCUMENT("catch")                                                                              \
    "do:\n"                                                                                        \
    "  - attempt:\n"                                                                               \
    "      try:\n"                                                                                 \
    "        - ask: {call: one, metadata: {reeve: {" REST ", compensate: none}}}\n"                \
    "      catch:\n"                                                                               \
    "        errors: {with: {status: 500}}\n"                                                      \
    "        retry: {delay: PT1S, limit: {attempt: {count: 1}}}\n"                                 \
    "        do:\n"                                                                                \
    "          - instead: {set: {caught: true}}\n"

/* Long attempts with short leases. */
#define LEASED                                                                                     \
    DOCUMENT("leased")                                                                             \
    "do:\n"                                                                                        \
    "  - long:\n"                                                                                  \
    "      call: one\n"                                                                            \
    "      metadata: {reeve: {completeBy: PT60S, lease: PT2S, compensate: none,\n"                 \
    "        failures: {threshold: 3, delay: PT1S, rounds: 0}}}\n"

static const struct script goes_well = {
    .workflows = {ORDER},
    .tasks = {{"order", NULL, "processed"}, {"order", "{\"sku\":\"A\"}", "processed"}},
};

static const struct script undone = {
    .workflows = {ORDER},
    .tasks = {{"order", NULL, "compensated"}, {"order", NULL, "processed"}},
    .rules = {{"charge", 1, 0, DEED_FAIL, 0}},
};

static const struct script stumbles = {
    .workflows = {ORDER},
    .tasks = {{"order", NULL, "processed"}},
    .rules = {{"reserve", 0, 1, DEED_STUMBLE, 0}, {"charge", 0, 1, DEED_STUMBLE, 0}},
};

static const struct script cools_down = {
    .workflows = {ORDER},
    .tasks = {{"order", NULL, "processed"}},
    .rules = {{"charge", 0, 3, DEED_STUMBLE, 0}},
    .step_ms = 3000,
};

static const struct script ladder_ends = {
    .workflows = {ORDER},
    .tasks = {{"order", NULL, "compensated"}},
    .rules = {{"refund", 0, 0, DEED_DONE, 0}, {"charge", 0, 0, DEED_STUMBLE, 0}},
    .step_ms = 3000,
};

static const struct script expires = {
    .workflows = {ORDER},
    .tasks = {{"order", NULL, "processed"}},
    .rules = {{"reserve", 0, 1, DEED_SILENT, 0}},
    .step_ms = 2000,
};

static const struct script expires_for_good = {
    .workflows = {ORDER},
    .tasks = {{"order", NULL, "compensated"}},
    .rules = {{"refund", 0, 0, DEED_DONE, 0}, {"charge", 0, 0, DEED_SILENT, 0}},
    .step_ms = 3000,
};

static const struct script comes_late = {
    .workflows = {ORDER},
    .tasks = {{"order", NULL, "processed"}},
    .rules = {{"reserve", 0, 1, DEED_LATE, 0}},
    .step_ms = 2000,
};

static const struct script renews = {
    .workflows = {LEASED},
    .tasks = {{"leased", NULL, "processed"}},
    .rules = {{"long", 0, 0, DEED_RENEW, 0}},
};

static const struct script lease_lapses = {
    .workflows = {LEASED},
    .tasks = {{"leased", NULL, "processed"}},
    .rules = {{"long", 0, 1, DEED_SILENT, 0}},
};

static const struct script undo_fails = {
    .workflows = {ORDER},
    .tasks = {{"order", NULL, "error"}, {"order", NULL, "compensated"}},
    .rules = {{"release", 1, 0, DEED_FAIL, 0},
              {"release", 2, 1, DEED_FAIL, 0},
              {"charge", 0, 0, DEED_FAIL, 0}},
    .orders = {{ORDER_RESUBMIT, 2, "error"}, {ORDER_ACK, 0, NULL}},
};

static const struct script stuck_and_resubmitted = {
    .workflows = {STUCK},
    .tasks = {{"stuck", NULL, "processed"}, {"stuck", NULL, "error"}},
    .rules = {{"second", 1, 1, DEED_FAIL, 0}, {"second", 2, 0, DEED_FAIL, 0}},
    .orders = {{ORDER_RESUBMIT, 1, "error"}, {ORDER_ACK, 0, NULL}},
};

static const struct script cancelled = {
    .workflows = {ORDER},
    .tasks = {{"order", NULL, "compensated"}, {"order", NULL, "compensated"}},
    .rules = {{"release", 0, 0, DEED_DONE, 0},
              {"refund", 0, 0, DEED_DONE, 0},
              {"reserve", 1, 1, DEED_DONE, 1},
              {"charge", 2, 1, DEED_LATE, 2}},
    .orders = {{ORDER_CANCEL, 1, "/reserve"}, {ORDER_CANCEL, 2, "/charge"}},
    .step_ms = 1000,
};

static const struct script abandoned = {
    .workflows = {ORDER},
    .tasks = {{"order", NULL, "cancelled"}, {"order", NULL, "processed"}},
    .rules = {{"charge", 1, 1, DEED_SILENT, 1}},
    .orders = {{ORDER_ABANDON, 1, "/charge"}},
};

static const struct script suspended_and_settled = {
    .workflows = {ORDER, STUCK},
    .tasks = {{"order", NULL, "processed"}, {"stuck", NULL, "processed"}},
    .rules = {{"reserve", 1, 1, DEED_SILENT, 1}, {"second", 2, 1, DEED_FAIL, 0}},
    .orders = {{ORDER_SUSPEND, 1, "/reserve"},
               {ORDER_SETTLE, 2, "error"},
               {ORDER_ABSENT, 0, NULL},
               {ORDER_RESUME, 1, NULL}},
};

static const struct script undone_by_operator = {
    .workflows = {ORDER},
    .tasks = {{"order", NULL, "compensated"}, {"order", NULL, "processed"}},
    .orders = {{ORDER_UNDO, 1, "processed"}},
};

static const struct script restarted = {
    .workflows = {ORDER},
    .tasks = {{"order", NULL, "processed"},
              {"order", NULL, "compensated"},
              {"order", NULL, "processed"}},
    .rules = {{"reserve", 0, 0, DEED_DONE, 1}, {"charge", 2, 0, DEED_FAIL, 2}},
    .orders = {{ORDER_RESTART, 3, "/reserve"}, {ORDER_RESTART, 2, "/charge"}},
};

static const struct script stopped_cleanly = {
    .workflows = {ORDER},
    .tasks = {{"order", NULL, "processed"}, {"order", NULL, "processed"}},
    .rules = {{"charge", 0, 0, DEED_DONE, 1}},
    .orders = {{ORDER_DRAIN, 2, "/charge"}},
};

static const struct script absent = {
    .workflows = {ORDER},
    .tasks = {{"order", NULL, "processed"}},
    .rules = {{"charge", 0, 1, DEED_DONE, 1}},
    .orders = {{ORDER_ABSENT, 1, "/charge"}},
    .step_ms = 1000,
};

static const struct script answers_lost = {
    .workflows = {ORDER},
    .tasks = {{"order", NULL, "processed"}, {"order", NULL, "processed"}},
    .rules = {{"reserve", 1, 1, DEED_UNDELIVERED, 0},
              {"reserve", 2, 1, DEED_UNHEARD, 0},
              {"charge", 1, 1, DEED_UNHEARD, 0}},
};

static const struct script agent_dies = {
    .workflows = {ORDER},
    .tasks = {{"order", NULL, "processed"}},
    .rules = {{"reserve", 0, 1, DEED_REBOOT, 0}, {"charge", 0, 2, DEED_REBOOT, 0}},
    .step_ms = 3000,
};

static const struct script circuit = {
    .workflows = {ORDER},
    .tasks = {{"order", NULL, "processed"}, {"order", NULL, "processed"}},
    .rules = {{"reserve", 0, 1, DEED_CIRCUIT, 0}, {"charge", 1, 2, DEED_CIRCUIT, 0}},
    .step_ms = 1000,
};

static const struct script inline_steps = {
    .workflows = {INLINE},
    .tasks = {{"inline", NULL, "processed"}},
};

static const struct script caught = {
    .workflows = {CATCH},
    .tasks = {{"catch", NULL, "processed"}, {"catch", NULL, "processed"}},
    .rules = {{"ask", 1, 1, DEED_FAIL, 0}, {"ask", 2, 0, DEED_FAIL, 0}},
};

static const struct script many = {
    .workflows = {ORDER},
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
