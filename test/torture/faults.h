/* faults.h - the heap of the program under torture: counts, fails on request, knows what lives. */
#ifndef RV_TEST_TORTURE_FAULTS_H
#define RV_TEST_TORTURE_FAULTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The linker sends every call of malloc, calloc, realloc, strdup, strndup and free in the rooms and
 * in libyaml here (--wrap); SQLite is given the same heap. Calls count, and fail, only while the
 * program is inside the product: what a scenario takes for itself always succeeds. */
struct faults {
    uint64_t calls;   /* inside the product, so far */
    uint64_t fail_at; /* the call that fails, from 1; 0: none */
    bool sticky;      /* and every later one, until faults_heal */
    bool failed;      /* at least one has */
};

extern struct faults faults;

/* Arenas take blocks of so many bytes from the heap, and larger ones when they need them: 0 makes
 * each take from an arena one from the heap. */
extern size_t faults_block_bytes;

/* SQLite takes its memory here too. Once, before it is used. */
void faults_take_sqlite(void);

void faults_arm(uint64_t fail_at, bool sticky);
/* There is memory again. */
void faults_heal(void);

/* The product is entered and left; calls nest. */
void faults_enter(void);
void faults_leave(void);

/* Blocks that were taken inside the product and not given back. */
size_t faults_live(void);
/* Forgets them; the blocks stay. */
void faults_forget(void);
/* Prints size and number (in the order of taking) of those that live. */
void faults_print_live(void);

#endif
