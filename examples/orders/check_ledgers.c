/* check_ledgers - proves from the services' own ledgers that every order came out whole.
 *
 * usage: check_ledgers FOLDER ORDERS
 *
 * FOLDER holds inventory.ledger, payment.ledger and shipping.ledger. ORDERS has a line for each
 * order placed: its number and its end as Reeve tells it ("order-0017 processed"). Nothing else of
 * what Reeve says is believed. Exit code 0: all holds; 1: it does not (the first 20 violations have
 * a line each); 2: the input cannot be read. */
#include "ledger.h"
#include "stand.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SERVICES = 3, ORDERS_MAX = 100000, VIOLATIONS_SHOWN = 20, STAND_BYTES = 128 };

static const struct {
    const char *name, *verb, *undo_verb, *done, *undone;
} services[SERVICES] = {
    {"inventory", "reserve", "release", "reserved", "stock back"},
    {"payment", "charge", "refund", "charged", "refunded"},
    {"shipping", "ship", "cancel", "shipped", "called back"},
};

struct order {
    char name[SHOP_TEXT_BYTES];
    char end_text[24];
    enum shop_end end;
    struct shop_stand stands[SERVICES]; /* from the ledgers */
};

struct proof {
    struct shop_ledger ledgers[SERVICES];
    struct order *orders; /* owned */
    size_t count;
    unsigned ends[SHOP_END_COUNT];
    unsigned turned_away;
    unsigned violations;
};

static void violation(struct proof *proof, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void violation(struct proof *proof, const char *format, ...)
{
    va_list args;
    if (++proof->violations > VIOLATIONS_SHOWN)
        return;
    va_start(args, format);
    printf("  VIOLATED  ");
    vprintf(format, args);
    putchar('\n');
    va_end(args);
}

static enum shop_end end_of(const char *text)
{
    if (!strcmp(text, "processed"))
        return SHOP_PROCESSED;
    if (!strcmp(text, "compensated"))
        return SHOP_COMPENSATED;
    return !strcmp(text, "error") ? SHOP_ERROR : SHOP_OTHER;
}

static struct order *find_order(const struct proof *proof, const char *name)
{
    for (size_t i = 0; i < proof->count; i++) {
        if (!strcmp(proof->orders[i].name, name))
            return &proof->orders[i];
    }
    return NULL;
}

/* From a line "order-0017 processed". */
static bool take_order(char *line, struct order *order)
{
    char *end = line;
    char *name = strsep(&end, " ");
    if (end == NULL)
        return false;
    end[strcspn(end, "\n")] = '\0';
    snprintf(order->name, sizeof order->name, "%s", name);
    snprintf(order->end_text, sizeof order->end_text, "%s", end);
    return shop_text_good(name) && end[0] != '\0' && strlen(end) < sizeof order->end_text;
}

static bool read_orders(struct proof *proof, const char *path)
{
    FILE *file = fopen(path, "r");
    char line[256];
    if (file == NULL) {
        fprintf(stderr, "check_ledgers: %s: %s\n", path, strerror(errno));
        return false;
    }
    while (fgets(line, sizeof line, file) != NULL && proof->count < ORDERS_MAX) {
        struct order *order = &proof->orders[proof->count];
        if (!take_order(line, order)) {
            fprintf(stderr, "check_ledgers: %s: line %zu: not \"ORDER END\"\n", path,
                    proof->count + 1);
            fclose(file);
            return false;
        }
        if (find_order(proof, order->name) != NULL)
            violation(proof, "%s is listed twice", order->name);
        order->end = end_of(order->end_text);
        proof->ends[order->end]++;
        proof->count++;
    }
    fclose(file);
    return true;
}

/* One line of one ledger: counted for its order, and held against the lines with the same key. */
static void count_line(struct proof *proof, unsigned s, size_t line)
{
    const struct shop_ledger *ledger = &proof->ledgers[s];
    const struct shop_entry *e = &ledger->entries[line];
    struct order *order = find_order(proof, e->order);
    bool undo = !strcmp(e->verb, services[s].undo_verb);
    if (order == NULL || (!undo && strcmp(e->verb, services[s].verb) != 0)) {
        violation(proof, "%s.ledger line %zu: %s of %s, which nobody placed", services[s].name,
                  line + 1, e->verb, e->order);
        return;
    }
    if (!strcmp(e->outcome, "refused")) {
        proof->turned_away++;
        return;
    }
    if (shop_ledger_find(ledger, e->verb, e->key, e->outcome) != e)
        violation(proof, "%s: %s twice with one key (%s)", e->order, e->verb, e->key);
    const struct shop_entry *forward = shop_ledger_find(ledger, services[s].verb, e->key, "done");
    if (!undo) {
        order->stands[s].done++;
    } else if (!strcmp(e->outcome, "void")) {
        order->stands[s].barred++;
        if (forward != NULL)
            violation(proof, "%s: %s had its effect although its key was barred", e->order,
                      services[s].verb);
    } else {
        order->stands[s].undone++;
        if (forward == NULL || forward > e || strcmp(forward->order, e->order) != 0 ||
            forward->amount != e->amount)
            violation(proof, "%s: the %s does not match a %s", e->order, e->verb, services[s].verb);
    }
}

static void check_order(struct proof *proof, const struct order *order)
{
    if (order->end == SHOP_OTHER)
        violation(proof, "%s has no end: Reeve says \"%s\"", order->name, order->end_text);
    for (unsigned s = 0; s < SERVICES && order->end != SHOP_OTHER; s++) {
        const struct shop_stand *stand = &order->stands[s];
        const char *wrong = shop_stand_wrong(order->end, stand);
        if (wrong != NULL)
            violation(proof, "%s: %s %s (%s %u times, %s %u times)", order->name, services[s].verb,
                      wrong, services[s].done, stand->done, services[s].undone, stand->undone);
    }
}

static unsigned total(const struct proof *proof, enum shop_end end, unsigned s, bool undone)
{
    unsigned sum = 0;
    for (size_t i = 0; i < proof->count; i++) {
        const struct order *order = &proof->orders[i];
        if (order->end == end)
            sum += undone ? order->stands[s].undone : order->stands[s].done;
    }
    return sum;
}

/* What the ledgers say of an order that waits: "reserved, charged". */
static void stand_text(const struct order *order, char text[static STAND_BYTES])
{
    size_t len = 0;
    snprintf(text, STAND_BYTES, "nothing done");
    for (unsigned s = 0; s < SERVICES; s++) {
        if (order->stands[s].done > 0)
            len += (size_t)snprintf(text + len, STAND_BYTES - len, "%s%s", len ? ", " : "",
                                    order->stands[s].undone ? services[s].undone
                                                            : services[s].done);
    }
}

/* Those that stand alike, in one paragraph. */
static void print_error_orders(const struct proof *proof)
{
    for (size_t i = 0; i < proof->count; i++) {
        char stand[STAND_BYTES];
        unsigned alike = 0;
        if (proof->orders[i].end != SHOP_ERROR)
            continue;
        stand_text(&proof->orders[i], stand);
        for (size_t j = 0; j < proof->count; j++) {
            char other[STAND_BYTES];
            stand_text(&proof->orders[j], other);
            if (proof->orders[j].end != SHOP_ERROR || strcmp(stand, other) != 0)
                continue;
            if (j < i)
                break; /* printed with an earlier one */
            if (alike == 0)
                printf("    %s:", stand);
            printf("%s%s", alike++ % 6 == 0 ? "\n      " : " ", proof->orders[j].name);
        }
        if (alike > 0)
            putchar('\n');
    }
}

static void print_proof(const struct proof *proof)
{
    unsigned barred = 0;
    for (size_t i = 0; i < proof->count; i++) {
        for (unsigned s = 0; s < SERVICES; s++)
            barred += proof->orders[i].stands[s].barred;
    }
    printf("  processed    %4u orders: reserved %u, charged %u, shipped %u times\n",
           proof->ends[SHOP_PROCESSED], total(proof, SHOP_PROCESSED, 0, false),
           total(proof, SHOP_PROCESSED, 1, false), total(proof, SHOP_PROCESSED, 2, false));
    printf(
        "  undone       %4u orders: stock back %u of %u, refunded %u of %u, called back %u of %u\n",
        proof->ends[SHOP_COMPENSATED], total(proof, SHOP_COMPENSATED, 0, true),
        total(proof, SHOP_COMPENSATED, 0, false), total(proof, SHOP_COMPENSATED, 1, true),
        total(proof, SHOP_COMPENSATED, 1, false), total(proof, SHOP_COMPENSATED, 2, true),
        total(proof, SHOP_COMPENSATED, 2, false));
    printf("  in error     %4u orders wait for an operator, and this is how they stand:\n",
           proof->ends[SHOP_ERROR]);
    print_error_orders(proof);
    printf("  late writers %4u turned away by their fence or by a barred key; %u keys barred\n",
           proof->turned_away, barred);
}

static bool read_ledgers(struct proof *proof, const char *folder)
{
    for (unsigned s = 0; s < SERVICES; s++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%s.ledger", folder, services[s].name);
        if (!shop_ledger_read(&proof->ledgers[s], path))
            return false;
    }
    return true;
}

static int prove(struct proof *proof, const char *folder, const char *orders)
{
    if (!read_ledgers(proof, folder) || !read_orders(proof, orders))
        return 2;
    if (proof->count == 0)
        violation(proof, "no order was placed: this would prove nothing");
    for (unsigned s = 0; s < SERVICES; s++) {
        for (size_t line = 0; line < proof->ledgers[s].count; line++)
            count_line(proof, s, line);
    }
    for (size_t i = 0; i < proof->count; i++)
        check_order(proof, &proof->orders[i]);
    print_proof(proof);
    printf(proof->violations == 0 ? "  all of it holds\n" : "  %u VIOLATIONS in all\n",
           proof->violations);
    return proof->violations == 0 ? 0 : 1;
}

int main(int argc, char **argv)
{
    struct proof proof = {0};
    if (argc != 3) {
        fprintf(stderr, "usage: check_ledgers FOLDER ORDERS\n");
        return 2;
    }
    proof.orders = calloc(ORDERS_MAX, sizeof *proof.orders);
    if (proof.orders == NULL)
        return 2;
    int code = prove(&proof, argv[1], argv[2]);
    for (unsigned s = 0; s < SERVICES; s++)
        shop_ledger_close(&proof.ledgers[s]);
    free(proof.orders);
    return code;
}
