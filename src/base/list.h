/* list.h - doubly linked lists of which the items are the nodes. */
#ifndef RV_BASE_LIST_H
#define RV_BASE_LIST_H

#include "base/assert.h"

#include <stddef.h>

/* `next` and `prev` name the two links of an item (it may have several pairs, for several lists).
 * A list is a struct with the members `first` and `last`, zeroed when empty. The arguments are
 * evaluated more than once. Only an item of the list can be removed from it. */
#define RV_LIST_APPEND(list, item, next, prev)                                                     \
    do {                                                                                           \
        rv_assert(((list)->first == NULL) == ((list)->last == NULL));                              \
        (item)->next = NULL;                                                                       \
        (item)->prev = (list)->last;                                                               \
        if ((list)->last != NULL)                                                                  \
            (list)->last->next = (item);                                                           \
        else                                                                                       \
            (list)->first = (item);                                                                \
        (list)->last = (item);                                                                     \
    } while (0)

#define RV_LIST_REMOVE(list, item, next, prev)                                                     \
    do {                                                                                           \
        if ((item)->next == NULL) {                                                                \
            rv_assert((list)->last == (item));                                                     \
            (list)->last = (item)->prev;                                                           \
        }                                                                                          \
        RV_STACK_REMOVE((list)->first, item, next, prev);                                          \
    } while (0)

/* The same for a list of which only `first`, a pointer, is known: the newest item is the first. */
#define RV_STACK_PUSH(first, item, next, prev)                                                     \
    do {                                                                                           \
        (item)->prev = NULL;                                                                       \
        (item)->next = (first);                                                                    \
        if ((first) != NULL)                                                                       \
            (first)->prev = (item);                                                                \
        (first) = (item);                                                                          \
    } while (0)

#define RV_STACK_REMOVE(first, item, next, prev)                                                   \
    do {                                                                                           \
        if ((item)->prev != NULL) {                                                                \
            rv_assert((item)->prev->next == (item));                                               \
            (item)->prev->next = (item)->next;                                                     \
        } else {                                                                                   \
            rv_assert((first) == (item));                                                          \
            (first) = (item)->next;                                                                \
        }                                                                                          \
        if ((item)->next != NULL) {                                                                \
            rv_assert((item)->next->prev == (item));                                               \
            (item)->next->prev = (item)->prev;                                                     \
        }                                                                                          \
        (item)->next = (item)->prev = NULL;                                                        \
    } while (0)

#endif
