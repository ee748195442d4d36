#include "cli/page_priv.h"

#include "base/assert.h"
#include "base/limits.h"

#include <inttypes.h>
#include <stdio.h>

enum { LIMIT_MAX = 1000000000 };

bool cli_limit_read(struct cli *cli, uint64_t otherwise, uint64_t *ret_limit)
{
    const char *text = cli_value(cli, CLI_OPTION_LIMIT);
    *ret_limit = otherwise;
    if (text == NULL)
        return true;
    uint64_t limit = 0;
    size_t i = 0;
    for (; text[i] >= '0' && text[i] <= '9' && limit <= LIMIT_MAX; i++)
        limit = 10 * limit + (uint64_t)(text[i] - '0');
    if (text[i] != '\0' || limit == 0 || limit > LIMIT_MAX) {
        cli_tell(cli, CLI_USAGE, "--limit %s: must be a whole number from 1 to %d", text,
                 LIMIT_MAX);
        return false;
    }
    *ret_limit = limit;
    return true;
}

/* "next" is an id or a number. */
static struct rv_str next_of(struct cli *cli, const struct rv_json *page)
{
    const struct rv_json *next = rv_json_get(page, RV_STR("next"));
    int64_t number = 0;
    if (next == NULL)
        return RV_STR_NONE;
    if (rv_json_int(next, &number))
        return rv_arena_printf(&cli->arena, "%" PRId64, number);
    return rv_arena_str(&cli->arena, rv_json_str(next));
}

static int page_read(struct cli *cli, struct cli_list *list, const char *after, uint64_t limit,
                     struct cli_answer *ret_page)
{
    struct cli_path path = {.mark = list->path.mark};
    char number[24];
    snprintf(number, sizeof number, "%" PRIu64, limit);
    rv_buf_init(&path.buf, list->path.buf.bytes_max);
    path.buf.failed = list->path.buf.failed;
    rv_buf_add_str(&path.buf, rv_buf_str(&list->path.buf));
    cli_path_parameter(&path, "limit", number);
    cli_path_parameter(&path, "after", after);
    struct cli_call call = {.path = cli_path_end(&path, &cli->arena), .patient = list->patient};
    return cli_ask(cli, &call, ret_page);
}

static void items_add(struct rv_buf *into, const struct rv_json *items, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct rv_str text = rv_buf_str(into);
        if (text.len > 0 && text.at[text.len - 1] != '[')
            rv_buf_add_char(into, ',');
        rv_json_write(into, &items[i]);
    }
}

int cli_list_read(struct cli *cli, struct cli_list *list, const char *after, uint64_t limit,
                  struct rv_str *ret_next)
{
    int code = CLI_DONE;
    rv_assert(list->each != NULL || list->into != NULL);
    *ret_next = RV_STR_NONE;
    while (limit > 0) {
        struct cli_answer page;
        size_t count = 0;
        uint64_t wanted = limit < RV_PAGE_ROWS_MAX ? limit : RV_PAGE_ROWS_MAX;
        rv_assert(wanted > 0 && wanted <= RV_PAGE_ROWS_MAX);
        code = page_read(cli, list, after, wanted, &page);
        if (code != CLI_DONE)
            break;
        const struct rv_json *items = cli_items(&page.json, list->items, &count);
        if (list->into != NULL)
            items_add(list->into, items, count);
        else if (cli_has(cli, CLI_OPTION_JSON))
            cli_json_print(page.text);
        else
            for (size_t i = 0; i < count; i++)
                list->each(&items[i], list->user);
        *ret_next = next_of(cli, &page.json);
        if (ret_next->len == 0 || count == 0)
            break;
        after = ret_next->at;
        limit -= count < limit ? count : limit;
    }
    rv_buf_done(&list->path.buf);
    return code;
}
