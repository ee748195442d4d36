/* limits.h - every limit of Reeve (RULES 11); over one is a clear error, never an abort. */
#ifndef RV_BASE_LIMITS_H
#define RV_BASE_LIMITS_H

enum {
    RV_PAYLOAD_BYTES_MAX = 1024 * 1024,         /* one input, output, context or error */
    RV_DEFINITION_BYTES_MAX = 256 * 1024,       /* one workflow as published */
    RV_BODY_BYTES_MAX = 8 * 1024 * 1024,        /* one HTTP request's body */
    RV_JSON_DEPTH_MAX = 64,                     /* nesting of any JSON or YAML */
    RV_BATCH_COMMANDS_MAX = 1000,               /* commands decided in one transaction */
    RV_BATCH_BYTES_MAX = 4 * 1024 * 1024,       /* of the large calls decided in one */
    RV_CALL_ITEMS_MAX = 1000,                   /* tasks, replies or leases in one call */
    RV_POLL_REQUESTS_MAX = 256,                 /* requests in one answer to a poll */
    RV_POLL_ANSWER_BYTES_MAX = 4 * 1024 * 1024, /* its inputs; one more than fits still goes */
    RV_POLLS_PARKED_MAX = 20000,                /* parked polls of all agents */
    RV_PRIORITIES = 10,                         /* 0 to 9, the higher first, */
    RV_PRIORITY_WORTH_MS = 10000, /* ... each worth so much waiting: nothing starves */
    RV_PAGE_ROWS_MAX = 100,       /* rows of one page of a query */
    RV_REASON_BYTES_MAX = 1000,   /* of an operator's command */
    RV_NAME_BYTES_MAX = 128,      /* agent, instance, workflow, poll id, tag */
    RV_TAGS_MAX = 16,             /* of one task */
    RV_TAG_NAME_BYTES_MAX = 64,
    RV_TAG_VALUE_BYTES_MAX = 256,
    RV_KEY_BYTES_MAX = 256,            /* a submitter's key, a correlation id */
    RV_INLINE_STEPS_PER_COMMAND = 256, /* steps without an agent that one command runs */
    RV_INLINE_STEPS_MAX = 10000,       /* in a row, before the task counts as running away */
    RV_UNFINISHED_STEPS_MAX = 256,     /* that failed and that DSL retries around them keep */
    RV_FUEL_PER_COMMAND = 100000,      /* about 1 ms of expressions */
    RV_FUEL_PER_EXPRESSION = 1000000,  /* about 10 ms: the most one expression may take */
    RV_EXPRESSION_BYTES_MAX = 16 * 1024 * 1024, /* memory of one evaluation */
    RV_DECISION_BYTES_MAX = 64 * 1024 * 1024,   /* of one, with what its command keeps before it */
    RV_SCOPE_DEPTH_MAX = 32,                    /* nesting of do and try in a definition */
    RV_WAIT_MS_DEFAULT = 20000,                 /* a poll without waitMs */
    RV_WAIT_MS_MAX = 50000,
    RV_URL_BYTES_MAX = 2048,
    RV_CALL_METHOD_BYTES_MAX = 20,            /* of a call that the server makes */
    RV_ERROR_DETAIL_BYTES_MAX = 64 * 1024,    /* of an error; a longer one is left out */
    RV_MESSAGE_PAYLOAD_BYTES_MAX = 16 * 1024, /* of an output or error in a message */
    RV_STREAM_MESSAGES_MAX = 16,              /* that wait in memory for the reader of one stream */
    RV_LATE_REPLIES_MAX = 8,                  /* of one attempt that are kept, the same one once */
    RV_HISTORY_MAX = 1000,       /* operators' commands of one task that are kept: the first */
    RV_STATUS_ALERTS_MAX = 300,  /* open alerts that the status reads, the newest */
    RV_STATUS_FAILURES_MAX = 32, /* types of errors that are counted apart */
    RV_ALERT_GROUP_BYTES = 9,    /* name of a group of alerts, 8 hex digits and its end */
    RV_METRICS_AGENTS_MAX = 100, /* agents that have numbers of their own in /metrics */
    RV_API_KEYS_MAX = 1000,      /* that are not revoked */
    RV_AGENT_LIMITS_MAX = 1000,  /* agents that have limits or are paused */
    RV_AGENT_CONCURRENT_MAX = 1000000,
    RV_AGENT_CIRCUITS_MAX = 1000, /* targets of one agent whose circuits are known */
    RV_AGENT_CIRCUITS_SHOWN = 5,  /* of them, in a list of agents: the worst */
    RV_SELECTION_TASKS_MAX = 100000,
    RV_SELECTION_SHOWN = 5, /* tasks that who selects is shown */
    RV_SELECTIONS_MAX = 1000,
    RV_BULKS_OPEN_MAX = 16,          /* bulk commands under way or paused */
    RV_BULK_RATE_MAX = 1000,         /* tasks a second */
    RV_ALERT_SOURCE_BYTES_MAX = 512, /* what an alert from outside is about */
    RV_ALERT_MESSAGE_BYTES_MAX = 2048,
    RV_POISON_DEATHS = 3,                /* dead instances on one step that raise an alert */
    RV_NO_AGENT_ALERT_MS = 5 * 60 * 1000 /* a step that no agent takes */
};

#endif
