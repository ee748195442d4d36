/* order.h - what customers order: a function of the order's number. */
#ifndef ORDERS_ORDER_H
#define ORDERS_ORDER_H

struct order {
    char name[32]; /* "order-0001" */
    const char *article;
    unsigned quantity;
    unsigned cents;
    const char *town;
};

enum { ORDER_JSON_BYTES = 256 };

struct order order_make(unsigned number);
/* The input of its task. */
void order_json(const struct order *order, char json[static ORDER_JSON_BYTES]);

#endif
