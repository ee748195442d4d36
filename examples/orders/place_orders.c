/* place_orders - the shop's application: places orders, one after another, whatever happens.
 *
 * usage: place_orders DATABASE COUNT PER_SECOND
 *
 * An order is a row of the shop's own table and a row of the outbox, in one transaction: so there
 * is both or neither, and `reeve relay` makes a task of it. Killed and started again it goes on
 * after the last order that is in the database, up to COUNT. */
#include "order.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { BUSY_MS = 10000 };

static const char table_sql[] = "CREATE TABLE IF NOT EXISTS orders("
                                " name TEXT PRIMARY KEY, article TEXT NOT NULL,"
                                " quantity INTEGER NOT NULL, cents INTEGER NOT NULL,"
                                " town TEXT NOT NULL)";
static const char order_sql[] = "INSERT INTO orders VALUES (?1, ?2, ?3, ?4, ?5)";
static const char outbox_sql[] = "INSERT INTO reeve_outbox(workflow, input, correlation_id)"
                                 " VALUES ('shop/process-order', ?1, ?2)";

static sqlite3 *db;

/* Whatever goes wrong here is nothing that the shop could mend. */
static void check(int code)
{
    if (code == SQLITE_OK || code == SQLITE_ROW || code == SQLITE_DONE)
        return;
    fprintf(stderr, "place_orders: %s\n", sqlite3_errmsg(db));
    exit(1);
}

static sqlite3_stmt *prepare(const char *sql)
{
    sqlite3_stmt *statement;
    check(sqlite3_prepare_v2(db, sql, -1, &statement, NULL));
    return statement;
}

static void run(sqlite3_stmt *statement)
{
    check(sqlite3_step(statement));
    check(sqlite3_reset(statement));
}

static void place(unsigned number, sqlite3_stmt *order_row, sqlite3_stmt *outbox_row)
{
    char json[ORDER_JSON_BYTES];
    struct order order = order_make(number);
    order_json(&order, json);
    check(sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL));
    sqlite3_bind_text(order_row, 1, order.name, -1, SQLITE_STATIC);
    sqlite3_bind_text(order_row, 2, order.article, -1, SQLITE_STATIC);
    sqlite3_bind_int64(order_row, 3, order.quantity);
    sqlite3_bind_int64(order_row, 4, order.cents);
    sqlite3_bind_text(order_row, 5, order.town, -1, SQLITE_STATIC);
    run(order_row);
    sqlite3_bind_text(outbox_row, 1, json, -1, SQLITE_STATIC);
    sqlite3_bind_text(outbox_row, 2, order.name, -1, SQLITE_STATIC);
    run(outbox_row);
    check(sqlite3_exec(db, "COMMIT", NULL, NULL, NULL));
}

/* How many orders the shop has; they are numbered from 1 without a gap. */
static unsigned orders_count(void)
{
    sqlite3_stmt *statement = prepare("SELECT count(*) FROM orders");
    check(sqlite3_step(statement));
    unsigned count = (unsigned)sqlite3_column_int64(statement, 0);
    check(sqlite3_finalize(statement));
    return count;
}

int main(int argc, char **argv)
{
    bool good = argc == 4;
    unsigned count = good ? (unsigned)strtoul(argv[2], NULL, 10) : 0;
    unsigned per_second = good ? (unsigned)strtoul(argv[3], NULL, 10) : 0;
    if (count == 0 || per_second == 0 || per_second > 1000) {
        fprintf(stderr, "usage: place_orders DATABASE COUNT PER_SECOND\n");
        return 2;
    }
    check(sqlite3_open(argv[1], &db));
    check(sqlite3_busy_timeout(db, BUSY_MS));
    check(sqlite3_exec(db, "PRAGMA journal_mode = WAL", NULL, NULL, NULL));
    check(sqlite3_exec(db, table_sql, NULL, NULL, NULL));
    sqlite3_stmt *order_row = prepare(order_sql);
    sqlite3_stmt *outbox_row = prepare(outbox_sql);
    struct timespec between = {0, 999999999 / (long)per_second};
    for (unsigned placed = orders_count(); placed < count; placed++) {
        place(placed + 1, order_row, outbox_row);
        nanosleep(&between, NULL);
    }
    check(sqlite3_finalize(order_row));
    check(sqlite3_finalize(outbox_row));
    return sqlite3_close(db) == SQLITE_OK ? 0 : 1;
}
