/* The application of the outbox figures.
 *
 *   bench_outbox DATABASE fill ROWS       writes so many orders, a hundred in a transaction
 *   bench_outbox DATABASE one ROWS        one order in a transaction, and waits until it is a task
 *
 * The database has its outbox. Prints lines "relay.<what> <number> <unit>". */
#include <sched.h>
#include <sqlite3.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { FILL_ROWS = 100, ROWS_MAX = 1000000, WAIT_S = 30 };

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void check(sqlite3 *db, int code, int wanted)
{
    if (code == wanted)
        return;
    fprintf(stderr, "bench_outbox: %s\n", sqlite3_errmsg(db));
    exit(1);
}

static sqlite3_stmt *prepare(sqlite3 *db, const char *sql)
{
    sqlite3_stmt *statement = NULL;
    check(db, sqlite3_prepare_v2(db, sql, -1, &statement, NULL), SQLITE_OK);
    return statement;
}

static void insert(sqlite3 *db, sqlite3_stmt *statement, int number)
{
    sqlite3_bind_int(statement, 1, number);
    check(db, sqlite3_step(statement), SQLITE_DONE);
    sqlite3_reset(statement);
}

/* Whether the outbox is empty. */
static int is_empty(sqlite3 *db, sqlite3_stmt *statement)
{
    int code = sqlite3_step(statement);
    if (code != SQLITE_DONE)
        check(db, code, SQLITE_ROW);
    sqlite3_reset(statement);
    return code == SQLITE_DONE;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static void one_by_one(sqlite3 *db, sqlite3_stmt *row, int count)
{
    sqlite3_stmt *any = prepare(db, "SELECT 1 FROM reeve_outbox LIMIT 1");
    double *times = calloc((size_t)count, sizeof *times);
    for (int i = 0; times != NULL && i < count; i++) {
        double begun = seconds();
        insert(db, row, i);
        double committed = seconds();
        while (!is_empty(db, any)) {
            if (seconds() - begun > WAIT_S) {
                fprintf(stderr, "bench_outbox: an order is no task after %d s\n", WAIT_S);
                exit(1);
            }
            sched_yield();
        }
        times[i] = seconds() - committed;
    }
    qsort(times, (size_t)count, sizeof *times, compare);
    printf("relay.latency_p50 %.2f ms\nrelay.latency_p99 %.2f ms\n", times[count / 2] * 1e3,
           times[count * 99 / 100] * 1e3);
    free(times);
    sqlite3_finalize(any);
}

static void fill(sqlite3 *db, sqlite3_stmt *row, int count)
{
    double begun = seconds();
    for (int i = 0; i < count; i++) {
        if (i % FILL_ROWS == 0)
            check(db, sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
        insert(db, row, i);
        if ((i + 1) % FILL_ROWS == 0 || i + 1 == count)
            check(db, sqlite3_exec(db, "COMMIT", NULL, NULL, NULL), SQLITE_OK);
    }
    printf("relay.rows_written %.0f /s\n", count / (seconds() - begun));
}

int main(int argc, char **argv)
{
    int count = argc == 4 ? (int)strtol(argv[3], NULL, 10) : 0;
    if (count < 1 || count > ROWS_MAX) {
        fprintf(stderr, "usage: bench_outbox DATABASE fill|one ROWS\n");
        return 2;
    }
    sqlite3 *db = NULL;
    check(db, sqlite3_open_v2(argv[1], &db, SQLITE_OPEN_READWRITE, NULL), SQLITE_OK);
    sqlite3_busy_timeout(db, 10000);
    check(db, sqlite3_exec(db, "PRAGMA journal_mode = WAL", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_stmt *row = prepare(db,
                                "INSERT INTO reeve_outbox(workflow, input) VALUES ('bench/three',"
                                " '{\"orderId\":' || ?1 || ',\"sku\":\"A-1\",\"quantity\":2}')");
    if (strcmp(argv[2], "one") == 0)
        one_by_one(db, row, count);
    else
        fill(db, row, count);
    sqlite3_finalize(row);
    return sqlite3_close(db) == SQLITE_OK ? 0 : 1;
}
