#include "ledger.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { LINE_BYTES = 512 };

static _Noreturn void ledger_broken(const char *what)
{
    fprintf(stderr, "ledger: %s: %s\n", what, strerror(errno));
    _exit(1);
}

static void ledger_remember(struct shop_ledger *ledger, const struct shop_entry *entry)
{
    if (ledger->count == ledger->room) {
        size_t room = ledger->room ? ledger->room * 2 : 64;
        struct shop_entry *more = realloc(ledger->entries, room * sizeof *more);
        if (more == NULL)
            ledger_broken("no memory");
        ledger->entries = more;
        ledger->room = room;
    }
    ledger->entries[ledger->count++] = *entry;
}

static bool take_text(char **line, char *text, size_t room)
{
    char *word = strsep(line, " ");
    size_t len = word ? strlen(word) : 0;
    if (len == 0 || len >= room)
        return false;
    memcpy(text, word, len + 1);
    return true;
}

/* The number of a word like "fence=3". */
static bool take_number(char **line, const char *name, int64_t *number)
{
    char *word = strsep(line, " ");
    size_t len = strlen(name);
    char *end = NULL;
    if (word == NULL || strncmp(word, name, len) != 0 || word[len] != '=')
        return false;
    *number = strtoll(word + len + 1, &end, 10);
    return end != word + len + 1 && *end == '\0';
}

/* Takes the line apart in place. */
static bool ledger_parse(char *line, struct shop_entry *entry)
{
    char item[sizeof entry->item + sizeof "item="];
    bool good = take_text(&line, entry->time, sizeof entry->time) &&
                take_text(&line, entry->verb, sizeof entry->verb) &&
                take_text(&line, entry->outcome, sizeof entry->outcome) &&
                take_text(&line, entry->order, sizeof entry->order) &&
                take_text(&line, entry->key, sizeof entry->key) &&
                take_number(&line, "fence", &entry->fence) &&
                take_number(&line, "amount", &entry->amount) &&
                take_text(&line, item, sizeof item) && line == NULL && !strncmp(item, "item=", 5) &&
                shop_text_good(item + 5);
    if (good)
        memcpy(entry->item, item + 5, strlen(item + 5) + 1);
    return good;
}

/* Remembers every whole line; gives the bytes that they take, or -1 at one that is none of ours. */
static off_t ledger_load(struct shop_ledger *ledger, const char *path)
{
    FILE *file = fopen(path, "r");
    if (file == NULL) {
        fprintf(stderr, "ledger: %s: %s\n", path, strerror(errno));
        return -1;
    }
    char line[LINE_BYTES];
    off_t whole = 0;
    while (fgets(line, sizeof line, file) != NULL) {
        size_t len = strlen(line);
        struct shop_entry entry;
        bool has_end = len > 0 && line[len - 1] == '\n';
        if (!has_end && feof(file))
            break;
        line[has_end ? len - 1 : len] = '\0';
        if (!has_end || !ledger_parse(line, &entry)) {
            fprintf(stderr, "ledger: %s: line %zu is none of a ledger\n", path, ledger->count + 1);
            whole = -1;
            break;
        }
        ledger_remember(ledger, &entry);
        whole += (off_t)len;
    }
    fclose(file);
    return whole;
}

bool shop_ledger_open(struct shop_ledger *ledger, const char *path)
{
    *ledger = (struct shop_ledger){.fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600)};
    if (ledger->fd < 0) {
        fprintf(stderr, "ledger: %s: %s\n", path, strerror(errno));
        return false;
    }
    off_t whole = ledger_load(ledger, path);
    if (whole < 0 || ftruncate(ledger->fd, whole) != 0) {
        shop_ledger_close(ledger);
        return false;
    }
    return true;
}

bool shop_ledger_read(struct shop_ledger *ledger, const char *path)
{
    *ledger = (struct shop_ledger){.fd = -1};
    if (ledger_load(ledger, path) >= 0)
        return true;
    shop_ledger_close(ledger);
    return false;
}

void shop_ledger_close(struct shop_ledger *ledger)
{
    if (ledger->fd >= 0)
        close(ledger->fd);
    free(ledger->entries);
    *ledger = (struct shop_ledger){.fd = -1};
}

static void ledger_stamp(struct shop_entry *entry)
{
    struct timespec now;
    struct tm parts;
    char text[24];
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &parts);
    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &parts);
    snprintf(entry->time, sizeof entry->time, "%s.%03dZ", text,
             (int)(now.tv_nsec / 1000000) % 1000);
}

const struct shop_entry *shop_ledger_add(struct shop_ledger *ledger, struct shop_entry entry)
{
    char line[LINE_BYTES];
    ledger_stamp(&entry);
    int len = snprintf(line, sizeof line,
                       "%s %s %s %s %s fence=%" PRId64 " amount=%" PRId64 " item=%s\n", entry.time,
                       entry.verb, entry.outcome, entry.order, entry.key, entry.fence, entry.amount,
                       entry.item);
    if (len < 0 || len >= LINE_BYTES || write(ledger->fd, line, (size_t)len) != len)
        ledger_broken("write");
    if (fdatasync(ledger->fd) != 0)
        ledger_broken("fdatasync");
    ledger_remember(ledger, &entry);
    return &ledger->entries[ledger->count - 1];
}

const struct shop_entry *shop_ledger_find(const struct shop_ledger *ledger, const char *verb,
                                          const char *key, const char *outcome)
{
    for (size_t i = 0; i < ledger->count; i++) {
        const struct shop_entry *e = &ledger->entries[i];
        if (!strcmp(e->key, key) && !strcmp(e->verb, verb) && !strcmp(e->outcome, outcome))
            return e;
    }
    return NULL;
}

int64_t shop_ledger_fence(const struct shop_ledger *ledger, const char *order)
{
    int64_t highest = 0;
    for (size_t i = 0; i < ledger->count; i++) {
        const struct shop_entry *e = &ledger->entries[i];
        if (!strcmp(e->order, order) && strcmp(e->outcome, "refused") != 0 && e->fence > highest)
            highest = e->fence;
    }
    return highest;
}

bool shop_text_good(const char *text)
{
    size_t len = text ? strlen(text) : 0;
    return len > 0 && len < SHOP_TEXT_BYTES &&
           strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.:/") ==
               len;
}
