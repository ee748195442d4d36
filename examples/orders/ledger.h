/* ledger.h - a service's durable book: one line per effect, on disk before it is answered. */
#ifndef SHOP_LEDGER_H
#define SHOP_LEDGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SHOP_TEXT_BYTES = 96 };

/* One line: "2026-11-21T09:30:00.123Z charge done order-0017 KEY fence=3 amount=4200 item=cup".
 * What became of the request:
 *   done     it had its effect
 *   void     an undo that found nothing to undo: the key is barred from now on (a tombstone)
 *   refused  a writer that came too late was turned away; no effect, kept as evidence */
struct shop_entry {
    char time[32];
    char verb[16];
    char outcome[16];
    char order[SHOP_TEXT_BYTES];
    char key[SHOP_TEXT_BYTES]; /* of the forward step, in the lines of its undo too */
    int64_t fence;
    int64_t amount;
    char item[SHOP_TEXT_BYTES];
};

struct shop_ledger {
    int fd;                     /* -1: opened for reading only */
    struct shop_entry *entries; /* owned; in the order written */
    size_t count;
    size_t room;
};

/* Reads what is there. A last line without its newline was never answered: it is cut off. Prints
 * the reason and gives false when the file cannot be used. */
bool shop_ledger_open(struct shop_ledger *ledger, const char *path);
/* As open, but changes nothing; an absent file is refused. */
bool shop_ledger_read(struct shop_ledger *ledger, const char *path);
void shop_ledger_close(struct shop_ledger *ledger);

/* Writes the line and waits until it is on the disk; fills in the time. A book that cannot be
 * written ends the process: no answer is better than a false one. */
const struct shop_entry *shop_ledger_add(struct shop_ledger *ledger, struct shop_entry entry);

/* The line with this verb, key and outcome; NULL if there is none. */
const struct shop_entry *shop_ledger_find(const struct shop_ledger *ledger, const char *verb,
                                          const char *key, const char *outcome);
/* The highest fence that wrote for this order; 0 if none did. */
int64_t shop_ledger_fence(const struct shop_ledger *ledger, const char *order);

/* Whether the text may stand in a line: 1 to 95 letters, digits and -_.:/ */
bool shop_text_good(const char *text);

#endif
