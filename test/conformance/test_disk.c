/* The simulated disk itself: what a sync keeps, what the power takes, what a failed sync leaves. */
#include "sim/store/disk.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <string.h>

enum { BYTES = 20 * DISK_SECTOR_BYTES };

static void fill(struct disk_handle *file, char c, size_t bytes, uint64_t offset)
{
    char text[BYTES];
    assert_true(bytes <= sizeof text);
    memset(text, c, bytes);
    assert_int_equal(disk_write(file, text, bytes, offset), 0);
}

/* How many of the first bytes of the file are `c`. */
static size_t count_of(struct disk *disk, char c)
{
    struct disk_handle file;
    char text[BYTES];
    size_t there = 0, count = 0;
    if (disk_open(disk, "a", false, &file) != 0)
        return 0;
    assert_int_equal(disk_read(&file, text, sizeof text, 0, &there), 0);
    for (size_t i = 0; i < there; i++)
        count += text[i] == c;
    disk_close(&file);
    return count;
}

static struct disk_handle file_new(struct disk *disk)
{
    struct disk_handle file;
    assert_int_equal(disk_open(disk, "a", false, &file), ENOENT);
    assert_int_equal(disk_open(disk, "a", true, &file), 0);
    file.sync_names = true;
    return file;
}

static void power_fails(struct disk *disk, struct disk_handle *file, uint32_t keep)
{
    disk_die(disk);
    assert_int_equal(disk_write(file, "x", 1, 0), EIO);
    disk_close(file);
    disk_restart(disk, true, keep);
}

static void what_was_synced_stays_and_the_rest_may_go(void **state)
{
    (void)state;
    struct disk *disk = disk_new(1);
    struct disk_handle file = file_new(disk);
    fill(&file, 'a', BYTES, 0);
    assert_int_equal(disk_sync(&file), 0);
    fill(&file, 'b', BYTES, 0);
    assert_int_equal(count_of(disk, 'b'), BYTES);
    power_fails(disk, &file, 0);
    size_t torn = count_of(disk, 'b');
    assert_true(torn < BYTES / 2); /* beginnings of sectors at most */
    assert_int_equal(count_of(disk, 'a') + torn, BYTES);
    assert_int_equal(disk_open(disk, "a", false, &file), 0);
    fill(&file, 'c', BYTES, 0);
    power_fails(disk, &file, 1000);
    assert_int_equal(count_of(disk, 'c'), BYTES);
    disk_free(disk);
}

static void in_between_some_sectors_stay_whatever_their_order(void **state)
{
    (void)state;
    bool later_alone = false;
    for (uint64_t seed = 1; seed < 50; seed++) {
        struct disk *disk = disk_new(seed);
        struct disk_handle file = file_new(disk);
        fill(&file, 'a', BYTES, 0);
        assert_int_equal(disk_sync(&file), 0);
        fill(&file, 'b', DISK_SECTOR_BYTES, 0);
        fill(&file, 'c', DISK_SECTOR_BYTES, DISK_SECTOR_BYTES);
        power_fails(disk, &file, 500);
        later_alone |= count_of(disk, 'b') == 0 && count_of(disk, 'c') == DISK_SECTOR_BYTES;
        disk_free(disk);
    }
    assert_true(later_alone);
}

static void a_name_is_kept_by_a_sync_of_names_alone(void **state)
{
    (void)state;
    struct disk *disk = disk_new(1);
    struct disk_handle file = file_new(disk);
    file.sync_names = false;
    fill(&file, 'a', BYTES, 0);
    assert_int_equal(disk_sync(&file), 0);
    power_fails(disk, &file, 0);
    assert_int_equal(disk_bytes_of(disk, "a"), 0);
    file = file_new(disk);
    fill(&file, 'a', BYTES, 0);
    assert_int_equal(disk_sync(&file), 0);
    assert_int_equal(disk_remove(disk, "a", false), 0);
    power_fails(disk, &file, 0);
    assert_int_equal(count_of(disk, 'a'), BYTES); /* removed, but not for good */
    assert_int_equal(disk_remove(disk, "a", true), 0);
    disk_die(disk);
    disk_restart(disk, true, 0);
    assert_int_equal(disk_bytes_of(disk, "a"), 0);
    disk_free(disk);
}

static void a_failed_sync_is_forgotten_until_it_is_written_again(void **state)
{
    (void)state;
    for (int again = 0; again < 2; again++) {
        struct disk *disk = disk_new(3);
        struct disk_handle file = file_new(disk);
        assert_int_equal(disk_sync(&file), 0);
        fill(&file, 'a', BYTES, 0);
        disk_arm(disk, DISK_SYNC, 0, false);
        assert_int_equal(disk_sync(&file), EIO);
        assert_int_equal(file.error, EIO);
        assert_true(disk_struck(disk));
        assert_int_equal(count_of(disk, 'a'), BYTES); /* as if nothing had been */
        if (again)
            fill(&file, 'a', BYTES, 0);
        assert_int_equal(disk_sync(&file), 0);
        power_fails(disk, &file, 1000);
        assert_int_equal(count_of(disk, 'a') == BYTES, again == 1);
        disk_free(disk);
    }
}

static void a_size_that_was_cut_comes_back(void **state)
{
    (void)state;
    struct disk *disk = disk_new(1);
    struct disk_handle file = file_new(disk);
    fill(&file, 'a', BYTES, 0);
    assert_int_equal(disk_sync(&file), 0);
    assert_int_equal(disk_truncate(&file, 700), 0);
    assert_int_equal(disk_bytes_of(disk, "a"), 700);
    power_fails(disk, &file, 0);
    assert_int_equal(count_of(disk, 'a'), BYTES);
    assert_int_equal(disk_open(disk, "a", false, &file), 0);
    assert_int_equal(disk_truncate(&file, 700), 0);
    assert_int_equal(disk_sync(&file), 0);
    fill(&file, 'b', 10, 2000);
    assert_int_equal(disk_sync(&file), 0);
    power_fails(disk, &file, 0);
    assert_int_equal(count_of(disk, 'a'), 700);
    assert_int_equal(count_of(disk, 0), 1300);
    assert_int_equal(count_of(disk, 'b'), 10);
    disk_free(disk);
}

static void a_full_disk_takes_nothing_more_and_says_so(void **state)
{
    (void)state;
    struct disk *disk = disk_new(1);
    struct disk_handle file = file_new(disk), other;
    fill(&file, 'a', DISK_SECTOR_BYTES, 0);
    disk_arm(disk, DISK_QUOTA, 1, true);
    fill(&file, 'a', DISK_SECTOR_BYTES, DISK_SECTOR_BYTES);
    assert_int_equal(disk_write(&file, "x", 1, BYTES), EDQUOT);
    assert_int_equal(file.error, EDQUOT);
    assert_int_equal(disk_open(disk, "b", true, &other), EDQUOT);
    disk_arm(disk, DISK_SOUND, 0, false);
    assert_int_equal(disk_write(&file, "x", 1, BYTES - 1), 0);
    disk_close(&file);
    disk_free(disk);
}

static void a_disk_that_lies_keeps_nothing(void **state)
{
    (void)state;
    struct disk *disk = disk_new(1);
    disk_lie(disk);
    struct disk_handle file = file_new(disk);
    fill(&file, 'a', BYTES, 0);
    assert_int_equal(disk_sync(&file), 0);
    assert_int_equal(count_of(disk, 'a'), BYTES);
    power_fails(disk, &file, 0);
    assert_int_equal(disk_bytes_of(disk, "a"), 0);
    disk_free(disk);
}

static void looking_on_neither_counts_nor_is_struck(void **state)
{
    (void)state;
    struct disk *disk = disk_new(1);
    struct disk_handle file = file_new(disk);
    fill(&file, 'a', BYTES, 0);
    disk_arm(disk, DISK_READ, 0, true);
    uint64_t operations = disk_operations(disk);
    disk_calm(disk, true);
    assert_int_equal(count_of(disk, 'a'), BYTES);
    disk_calm(disk, false);
    assert_int_equal(disk_operations(disk), operations);
    char c;
    size_t there;
    assert_int_equal(disk_read(&file, &c, 1, 0, &there), EIO);
    disk_close(&file);
    disk_free(disk);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_synced_stays_and_the_rest_may_go),
        cmocka_unit_test(in_between_some_sectors_stay_whatever_their_order),
        cmocka_unit_test(a_name_is_kept_by_a_sync_of_names_alone),
        cmocka_unit_test(a_failed_sync_is_forgotten_until_it_is_written_again),
        cmocka_unit_test(a_size_that_was_cut_comes_back),
        cmocka_unit_test(a_full_disk_takes_nothing_more_and_says_so),
        cmocka_unit_test(a_disk_that_lies_keeps_nothing),
        cmocka_unit_test(looking_on_neither_counts_nor_is_struck),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
