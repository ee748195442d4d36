#include "order.h"

#include <stdio.h>

static const char *const articles[] = {"teapot", "cup", "kettle", "tray", "sieve"};
static const char *const towns[] = {"Aachen", "Bergen", "Cadiz", "Delft"};
enum { ARTICLES = sizeof articles / sizeof *articles, TOWNS = sizeof towns / sizeof *towns };

struct order order_make(unsigned number)
{
    struct order order = {.article = articles[number % ARTICLES],
                          .quantity = 1 + number % 3,
                          .cents = 100 * (5 + number % 40),
                          .town = towns[number % TOWNS]};
    snprintf(order.name, sizeof order.name, "order-%04u", number);
    return order;
}

void order_json(const struct order *order, char json[static ORDER_JSON_BYTES])
{
    snprintf(json, ORDER_JSON_BYTES,
             "{\"order\":\"%s\",\"article\":\"%s\",\"quantity\":%u,\"cents\":%u,\"town\":\"%s\"}",
             order->name, order->article, order->quantity, order->cents, order->town);
}
