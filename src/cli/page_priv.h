/* page_priv.h - lists that the server gives in pages. */
#ifndef RV_CLI_PAGE_PRIV_H
#define RV_CLI_PAGE_PRIV_H

#include "cli/server_priv.h"

/* How a list is asked for: the path with its filters, its array's name, and who gets the items. */
struct cli_list {
    struct cli_path path; /* without limit and after */
    const char *items;
    bool patient; /* as struct cli_call has it */
    void (*each)(const struct rv_json *item, void *user);
    void *user;
    struct rv_buf *into; /* not NULL: with --json the items go there, with commas in between */
};

/* The number that --limit says, or `otherwise`. False after the reason was told. */
bool cli_limit_read(struct cli *cli, uint64_t otherwise, uint64_t *ret_limit);
/* Asks page by page, from `after` (NULL: the start) on, for up to `limit` items; each goes to
 * `each`, or to `into`, or with --json each page to stdout as it is. *ret_next is what the next
 * page would come after, absent if there is none. Consumes list->path. */
int cli_list_read(struct cli *cli, struct cli_list *list, const char *after, uint64_t limit,
                  struct rv_str *ret_next);

/* The filters of tasks that were given, as parameters of the path; gives how many. */
size_t cli_path_filters(const struct cli *cli, struct cli_path *path);
/* The option whose parameter a refusal begins with, as in "state=failed: unknown state"; *ret_rest
 * is what follows the "=". NULL: it begins with no filter of this command line. */
const char *cli_filter_named(const struct cli *cli, struct rv_str detail, struct rv_str *ret_rest);

#endif
