/* place_orders - the shop's application: places orders, one after another, whatever happens.
 *
 * usage: place_orders COUNT PER_SECOND [FIRST]
 *
 * The first one has the number FIRST (1). Prints "ORDER TASK STATUS" for each, once Reeve has
 * acknowledged it. Each order has a key: after a lost answer it is placed again, and if Reeve knows
 * it already, that is 200 instead of 201. */
#include <reeve.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static const char *const articles[] = {"teapot", "cup", "kettle", "tray", "sieve"};
static const char *const towns[] = {"Aachen", "Bergen", "Cadiz", "Delft"};
enum { ARTICLES = sizeof articles / sizeof *articles, TOWNS = sizeof towns / sizeof *towns };

static int place(struct rv_client *client, unsigned number)
{
    char key[32];
    char input[256];
    struct rv_receipt receipt;
    snprintf(key, sizeof key, "order-%04u", number);
    snprintf(input, sizeof input,
             "{\"order\":\"%s\",\"article\":\"%s\",\"quantity\":%u,\"cents\":%u,\"town\":\"%s\"}",
             key, articles[number % ARTICLES], 1 + number % 3, 100 * (5 + number % 40),
             towns[number % TOWNS]);
    struct rv_submission order = {.workflow = "shop/process-order", .input = input, .key = key};
    int result = rv_client_submit(client, &order, &receipt);
    if (result != RV_RESULT_OK) {
        fprintf(stderr, "place_orders: %s: %s\n", key, rv_client_error(client));
        return result;
    }
    printf("%s %s %d\n", key, receipt.task, receipt.status);
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
        fprintf(stderr, "usage: place_orders COUNT PER_SECOND [FIRST]\n");
        return 2;
    }
    /* Longer than a restart of the server may take. */
    struct rv_client_options options = {.timeout_ms = 5000, .patience_ms = 20000};
    struct rv_client *client = rv_client_open(NULL, &options);
    int result = client == NULL;
    struct timespec between = {0, 999999999 / (long)per_second};
    for (unsigned n = 0; n < count && result == 0; n++) {
        result = place(client, first + n);
        nanosleep(&between, NULL);
    }
    rv_client_close(client);
    return result;
}
