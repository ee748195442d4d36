/* The schema of a new store and the migrations, which must come to the same. */
#include "store/sqlite/sqlite_priv.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sqlite3.h>
#include <stdio.h>

enum { DUMP_BYTES = 65536 };

struct dump {
    char at[DUMP_BYTES];
    size_t len;
};

static int row_take(void *context, int columns, char **texts, char **names)
{
    (void)names;
    struct dump *dump = context;
    for (int i = 0; i < columns; i++) {
        int n = snprintf(dump->at + dump->len, sizeof dump->at - dump->len, "%s%c", texts[i],
                         i + 1 < columns ? ' ' : '\n');
        assert_in_range(n, 1, sizeof dump->at - dump->len - 1);
        dump->len += (size_t)n;
    }
    return 0;
}

/* What SQLite keeps of each table and index; a table that was renamed has its name in quotes. */
static void schema_dump(struct rv_sqlite *store, struct dump *ret_dump)
{
    ret_dump->len = 0;
    int code = sqlite3_exec(store->db,
                            "SELECT type, name, tbl_name, replace(ifnull(sql, '-'), '\"', '') "
                            "FROM sqlite_schema ORDER BY type, name",
                            row_take, ret_dump, NULL);
    assert_int_equal(code, SQLITE_OK);
    assert_true(ret_dump->len > 1000);
}

static void store_begin(struct rv_sqlite *store)
{
    *store = (struct rv_sqlite){.db = NULL};
    assert_int_equal(sqlite3_open(":memory:", &store->db), SQLITE_OK);
}

static void assert_newest(struct rv_sqlite *store)
{
    int version = 0;
    assert_int_equal(rv_sqlite_version(store, &version), RV_OK);
    assert_int_equal(version, rv_sqlite_version_newest());
    assert_int_equal(sqlite3_close(store->db), SQLITE_OK);
}

static void a_new_store_is_like_one_that_was_migrated(void **state)
{
    (void)state;
    static struct dump created, migrated;
    struct rv_sqlite store;
    store_begin(&store);
    assert_int_equal(rv_sqlite_create(&store), RV_OK);
    schema_dump(&store, &created);
    assert_newest(&store);

    store_begin(&store);
    assert_int_equal(rv_sqlite_migrate(&store, 0), RV_OK);
    schema_dump(&store, &migrated);
    assert_newest(&store);
    assert_string_equal(created.at, migrated.at);
}

/* So a start that dies between two migrations goes on with the next. */
static void each_migration_is_recorded(void **state)
{
    (void)state;
    struct rv_sqlite store;
    int count = 0;
    store_begin(&store);
    assert_int_equal(rv_sqlite_migrate(&store, 0), RV_OK);
    assert_int_equal(rv_sqlite_number(&store, "SELECT count(*) FROM schema_version", &count),
                     RV_OK);
    assert_int_equal(count, rv_sqlite_version_newest());
    assert_newest(&store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_new_store_is_like_one_that_was_migrated),
        cmocka_unit_test(each_migration_is_recorded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
