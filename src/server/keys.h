/* keys.h - the API keys of a store that is opened. */
#ifndef RV_SERVER_KEYS_H
#define RV_SERVER_KEYS_H

#include "api/access.h"
#include "api/api.h"
#include "base/err.h"
#include "store/store.h"

/* Adds all of them to `keys`; those that cannot be understood are counted there. */
RV_CHECK enum rv_err rv_server_keys_load(struct rv_store *store, struct rv_keys *keys);
/* The api's keys are those of the records, as of this change (rv_scheduler_keys). */
RV_CHECK enum rv_err rv_server_keys_renew(struct rv_api *api, const struct rv_record *rows,
                                          size_t count, uint64_t changes);

#endif
