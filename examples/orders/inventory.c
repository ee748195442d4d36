/* The inventory service: reserves pieces of an article, and gives them back to the stock. */
#include "service.h"

#include <string.h>

enum { STOCK_PER_ARTICLE = 1000 };

static const char *inventory_objection(const struct shop_ledger *ledger, const char *item,
                                       int64_t amount)
{
    int64_t stock = STOCK_PER_ARTICLE;
    for (size_t i = 0; i < ledger->count; i++) {
        const struct shop_entry *e = &ledger->entries[i];
        if (strcmp(e->item, item) != 0 || strcmp(e->outcome, "done") != 0)
            continue;
        stock += !strcmp(e->verb, "release") ? e->amount : -e->amount;
    }
    return amount > 0 && amount <= stock ? NULL : "out-of-stock";
}

int main(int argc, char **argv)
{
    static const struct shop_business business = {.name = "inventory",
                                                  .verb = "reserve",
                                                  .undo_verb = "release",
                                                  .decline = "out-of-stock",
                                                  .undo_decline = "stock-closed",
                                                  .objection = inventory_objection};
    return shop_service_main(&business, argc, argv);
}
