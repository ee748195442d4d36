/* submit_orders - an application without an outbox: submits orders, one after another.
 *
 * usage: submit_orders COUNT PER_SECOND [FIRST]
 *
 * The first one has the number FIRST (1). Prints "ORDER TASK STATUS" for each, once Reeve has
 * acknowledged it. Each order has a key: after a lost answer it is submitted again, and if Reeve
 * knows it already, that is 200 instead of 201. */
#include "order.h"

#include <reeve.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static int submit(struct rv_client *client, unsigned number)
{
    char input[ORDER_JSON_BYTES];
    struct rv_receipt receipt;
    struct order order = order_make(number);
    order_json(&order, input);
    struct rv_submission submission = {
        .workflow = "shop/process-order", .input = input, .key = order.name};
    int result = rv_client_submit(client, &submission, &receipt);
    if (result != RV_RESULT_OK) {
        fprintf(stderr, "submit_orders: %s: %s\n", order.name, rv_client_error(client));
        return result;
    }
    printf("%s %s %d\n", order.name, receipt.task, receipt.status);
    fflush(stdout);
    return 0;
}

int main(int argc, char **argv)
{
    bool good = argc == 3 || argc == 4;
    unsigned count = good ? (unsigned)strtoul(argv[1], NULL, 10) : 0;
    unsigned per_second = good ? (unsigned)strtoul(argv[2], NULL, 10) : 0;
    unsigned first = argc == 4 ? (unsigned)strtoul(argv[3], NULL, 10) : 1;
    if (count == 0 || per_second == 0 || per_second > 1000 || first == 0) {
        fprintf(stderr, "usage: submit_orders COUNT PER_SECOND [FIRST]\n");
        return 2;
    }
    /* Longer than a restart of the server may take. */
    struct rv_client_options options = {.timeout_ms = 5000, .patience_ms = 20000};
    struct rv_client *client = rv_client_open(NULL, &options);
    int result = client == NULL;
    struct timespec between = {0, 999999999 / (long)per_second};
    for (unsigned n = 0; n < count && result == 0; n++) {
        result = submit(client, first + n);
        nanosleep(&between, NULL);
    }
    rv_client_close(client);
    return result;
}
