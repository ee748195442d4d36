/* The log: whatever is said, a line stays one line, and in JSON one object. */
#include "base/os/log.h"
#include "base/os/sink.h"
#include "base/utf8.h"
#include "json/json.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* What one call writes to stderr. */
static struct rv_str said(char *room, size_t bytes, enum rv_log_form form, struct rv_str text)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    int kept = dup(STDERR_FILENO);
    dup2(ends[1], STDERR_FILENO);
    rv_log_set_form(form);
    rv_log(RV_LOG_WARNING, "alert", RV_LOG_STR("task", text), RV_LOG_INT("step", -3),
           RV_LOG_STR("last", RV_STR("z")));
    rv_log_flush();
    dup2(kept, STDERR_FILENO);
    close(kept);
    close(ends[1]);
    ssize_t got = read(ends[0], room, bytes);
    close(ends[0]);
    assert_true(got > 0);
    return (struct rv_str){room, (size_t)got};
}

static size_t count_of(struct rv_str text, const char *word)
{
    size_t count = 0;
    struct rv_str rest = text;
    for (const char *at; (at = memmem(rest.at, rest.len, word, strlen(word))) != NULL; count++)
        rest = (struct rv_str){at + 1, (size_t)(text.at + text.len - at) - 1};
    return count;
}

static void lines_are_json_whatever_they_say(void **state)
{
    (void)state;
    char room[16384];
    struct rv_arena arena;
    rv_arena_init(&arena, 0);
    static const char hostile[] = "a\"b\\c\nd\t\x01\x7f e";
    struct rv_str line = said(room, sizeof room, RV_LOG_JSON, rv_str_of(hostile));
    struct rv_json object;
    assert_int_equal(line.at[line.len - 1], '\n');
    assert_ptr_equal(memchr(line.at, '\n', line.len), line.at + line.len - 1);
    assert_int_equal(rv_json_parse(&arena, line, 8, &object, NULL), RV_OK);
    assert_true(rv_str_is(rv_json_str(rv_json_get(&object, RV_STR("task"))), hostile));
    assert_true(rv_str_is(rv_json_str(rv_json_get(&object, RV_STR("level"))), "warning"));
    assert_non_null(rv_json_get(&object, RV_STR("last")));
    rv_arena_done(&arena);
}

/* The value of the first field of the line, which must be JSON with all three fields. */
static struct rv_str value_kept(struct rv_arena *arena, struct rv_str line)
{
    struct rv_json object;
    assert_int_equal(rv_json_parse(arena, line, 8, &object, NULL), RV_OK);
    assert_non_null(rv_json_get(&object, RV_STR("step")));
    assert_true(rv_str_is(rv_json_str(rv_json_get(&object, RV_STR("last"))), "z"));
    const struct rv_json *value = rv_json_get(&object, RV_STR("task"));
    assert_non_null(value);
    return rv_json_str(value);
}

static void a_long_value_is_cut_between_characters_and_marked(void **state)
{
    (void)state;
    enum { TEXT_BYTES = 12000 };
    static const char *const characters[] = {
        "x", "\n", "\"", "\xc3\xa4", "\xe2\x82\xac", "\xf0\x9f\x98\x80", "\xf3\xa0\x80\x81"};
    static const char ellipsis[] = "\xe2\x80\xa6";
    static char room[16384], text[TEXT_BYTES];
    for (size_t i = 0; i < sizeof characters / sizeof characters[0]; i++) {
        struct rv_str one = rv_str_of(characters[i]);
        struct rv_arena arena;
        rv_arena_init(&arena, 0);
        for (size_t at = 0; at < sizeof text; at += one.len)
            memcpy(text + at, one.at, one.len);
        struct rv_str line = said(room, sizeof room, RV_LOG_JSON,
                                  (struct rv_str){text, sizeof text});
        assert_true(line.len > RV_LOG_LINE_BYTES - 100 && line.len <= RV_LOG_LINE_BYTES);
        struct rv_str kept = value_kept(&arena, line);
        assert_true(kept.len > 1000);
        assert_memory_equal(kept.at + kept.len - 3, ellipsis, 3);
        assert_int_equal((kept.len - 3) % one.len, 0);
        assert_memory_equal(kept.at, text, kept.len - 3);
        line = said(room, sizeof room, RV_LOG_TEXT, (struct rv_str){text, sizeof text});
        assert_true(line.len <= RV_LOG_LINE_BYTES);
        assert_non_null(memmem(line.at, line.len, ellipsis, 3));
        assert_memory_equal(line.at + line.len - 15, " step=-3 last=z\n" + 1, 15);
        rv_arena_done(&arena);
    }
}

static void a_value_that_fits_is_not_cut(void **state)
{
    (void)state;
    static char room[16384], text[7000];
    struct rv_arena arena;
    rv_arena_init(&arena, 0);
    memset(text, 'x', sizeof text);
    struct rv_str line = said(room, sizeof room, RV_LOG_JSON, (struct rv_str){text, sizeof text});
    assert_true(rv_str_eq(value_kept(&arena, line), (struct rv_str){text, sizeof text}));
    rv_arena_done(&arena);
}

static void each_of_several_long_values_is_shown(void **state)
{
    (void)state;
    static char line[RV_LOG_LINE_BYTES], text[9000];
    struct rv_arena arena;
    struct rv_json object;
    struct rv_log_field fields[12];
    char names[12][4];
    rv_arena_init(&arena, 0);
    memset(text, 'x', sizeof text);
    for (size_t i = 0; i < 12; i++) {
        snprintf(names[i], sizeof names[i], "f%zu", i);
        fields[i] = RV_LOG_STR(names[i], ((struct rv_str){text, sizeof text}));
    }
    rv_log_set_form(RV_LOG_JSON);
    size_t len = rv_log_line(RV_LOG_INFO, "long", fields, 12, line);
    assert_int_equal(rv_json_parse(&arena, (struct rv_str){line, len}, 8, &object, NULL), RV_OK);
    for (size_t i = 0; i < 12; i++) {
        const struct rv_json *value = rv_json_get(&object, rv_str_of(names[i]));
        assert_non_null(value);
        assert_true(rv_json_str(value).len > 200);
    }
    rv_arena_done(&arena);
}

static void text_cannot_forge_a_line(void **state)
{
    (void)state;
    char room[16384];
    struct rv_str line = said(room, sizeof room, RV_LOG_TEXT,
                              RV_STR("x\n12:00:00.000 info all ok"));
    assert_ptr_equal(memchr(line.at, '\n', line.len), line.at + line.len - 1);
    static const char wanted[] =
        " warning alert task=\"x\\u000a12:00:00.000 info all ok\" step=-3 last=z\n";
    assert_true(rv_str_is((struct rv_str){line.at + 12, line.len - 12}, wanted));
}

static void text_quotes_what_a_parser_cannot_split(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *shown;
    } cases[] = {
        {"plain", "plain"},        {"a\"b", "\"a\\\"b\""},   {"a\\b", "\"a\\\\b\""},
        {"a=b", "\"a=b\""},        {"a b", "\"a b\""},       {"", "\"\""},
        {"a\tb", "\"a\\u0009b\""}, {"\xc3\xa4", "\xc3\xa4"}, {"a\xff", "\"a\xef\xbf\xbd\""},
    };
    char room[16384];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char wanted[128];
        struct rv_str line = said(room, sizeof room, RV_LOG_TEXT, rv_str_of(cases[i].text));
        snprintf(wanted, sizeof wanted, " warning alert task=%s step=-3 last=z\n", cases[i].shown);
        assert_true(rv_str_is((struct rv_str){line.at + 12, line.len - 12}, wanted));
    }
}

/* Also those that requests may contain: the last member tells. */
static void formatting_characters_are_escaped(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *escape;
        bool refused;
    } cases[] = {{"\xe2\x80\xae", "\\u202e", true},
                 {"\xef\xbb\xbf", "\\ufeff", false},
                 {"\xe2\x80\x8b", "\\u200b", false},
                 {"\xe2\x81\xa0", "\\u2060", false},
                 {"\xc2\xad", "\\u00ad", false},
                 {"\xc2\x9b", "\\u009b", true},
                 {"\xe2\x80\xa8", "\\u2028", true},
                 {"\xef\xbf\xb9", "\\ufff9", false},
                 {"\xf3\xa0\x81\x81", "\\udb40\\udc41", false}};
    char room[16384];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct rv_str text = rv_str_of(cases[i].text);
        char wanted[128];
        struct rv_arena arena;
        rv_arena_init(&arena, 0);
        assert_int_equal(rv_utf8_hidden(text) != UINT32_MAX, cases[i].refused);
        struct rv_str line = said(room, sizeof room, RV_LOG_TEXT, text);
        snprintf(wanted, sizeof wanted, " task=\"%s\" ", cases[i].escape);
        assert_int_equal(count_of(line, wanted), 1);
        line = said(room, sizeof room, RV_LOG_JSON, text);
        assert_int_equal(count_of(line, cases[i].escape), 1);
        assert_true(rv_str_eq(value_kept(&arena, line), text));
        rv_arena_done(&arena);
    }
    /* Joiners belong to words and emojis. */
    assert_true(rv_utf8_hidden(RV_STR("\xe2\x80\x8d\xe2\x80\x8c\xef\xb8\x8f\xf0\x9f\x98\x80")) ==
                UINT32_MAX);
}

/* A pipe in the place of stderr. */
static int pipe_begin(int ends[static 2])
{
    assert_int_equal(pipe(ends), 0);
    int kept = dup(STDERR_FILENO);
    dup2(ends[1], STDERR_FILENO);
    close(ends[1]);
    return kept;
}

/* Reads until the text has come, or nothing comes any more. */
static size_t read_until(int fd, char *room, size_t bytes, const char *text)
{
    enum { PATIENCE_MS = 2000 };
    struct pollfd news = {.fd = fd, .events = POLLIN};
    size_t len = 0;
    while ((len == 0 || memmem(room, len, text, strlen(text)) == NULL) &&
           poll(&news, 1, PATIENCE_MS) == 1) {
        ssize_t n = read(fd, room + len, bytes - len);
        if (n <= 0)
            break;
        len += (size_t)n;
    }
    return len;
}

/* If the test hangs in a write, somebody reads after all, and the test fails. */
struct rescue {
    int fd;
    int over[2];
    pthread_t thread;
};

static void *rescue_run(void *at)
{
    enum { PATIENCE_MS = 3000 };
    struct rescue *rescue = at;
    char bytes[4096];
    struct pollfd over = {.fd = rescue->over[0], .events = POLLIN | POLLHUP};
    while (poll(&over, 1, PATIENCE_MS) == 0 || over.revents == 0)
        while (poll(&over, 1, 0) == 0 && read(rescue->fd, bytes, sizeof bytes) > 0) {
        }
    return NULL;
}

static void rescue_begin(struct rescue *rescue, int fd)
{
    rescue->fd = fd;
    assert_int_equal(pipe(rescue->over), 0);
    assert_int_equal(pthread_create(&rescue->thread, NULL, rescue_run, rescue), 0);
}

static void rescue_end(struct rescue *rescue)
{
    close(rescue->over[1]);
    pthread_join(rescue->thread, NULL);
    close(rescue->over[0]);
}

static void lines_that_nobody_reads_are_dropped_and_counted(void **state)
{
    (void)state;
    enum { LINES = 300 };
    static char room[1 << 20], text[1300];
    struct rv_str got = {room, 0};
    int ends[2];
    struct rescue rescue;
    memset(text, 'x', sizeof text);
    rv_log_set_form(RV_LOG_TEXT);
    int kept = pipe_begin(ends);
    assert_int_equal(fcntl(STDERR_FILENO, F_SETPIPE_SZ, 4096), 4096);
    uint64_t before = rv_log_dropped();
    rescue_begin(&rescue, ends[0]);
    for (int i = 0; i < LINES; i++)
        rv_log(RV_LOG_INFO, "full", RV_LOG_STR("t", ((struct rv_str){text, sizeof text})));
    rescue_end(&rescue);
    uint64_t dropped = rv_log_dropped() - before;
    char wanted[64];
    snprintf(wanted, sizeof wanted, " warning log-lines-dropped lines=%d\n", (int)dropped);
    got.len = read_until(ends[0], room, sizeof room, wanted);
    rv_log_flush();
    dup2(kept, STDERR_FILENO);
    close(kept);
    close(ends[0]);
    assert_true(dropped > 0 && dropped < LINES);
    assert_int_equal(count_of(got, wanted), 1);
    assert_int_equal(count_of(got, "info full"), LINES - dropped);
}

/* What a sink does with a reader that never reads: nothing waits, and the end does not either. */
static void a_sink_ends_while_its_writer_blocks(void **state)
{
    (void)state;
    int ends[2];
    char bytes[4096] = "";
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(fcntl(ends[1], F_SETPIPE_SZ, 4096), 4096);
    struct rv_sink *sink = rv_sink_new(ends[1], sizeof bytes);
    assert_non_null(sink);
    assert_int_equal(write(ends[1], bytes, sizeof bytes), sizeof bytes);
    int taken = 0;
    while (taken < 10 && rv_sink_put(sink, bytes, sizeof bytes, 1))
        taken++;
    struct rv_sink_counts counts = rv_sink_count(sink);
    assert_int_equal(taken, 1);
    assert_int_equal(counts.dropped, 1);
    assert_int_equal(counts.error, EAGAIN);
    assert_false(rv_sink_flush(sink, 5));
    rv_sink_end(sink, 5);
    size_t rest = 0;
    for (ssize_t n; (n = read(ends[0], bytes, sizeof bytes)) > 0;)
        rest += (size_t)n;
    close(ends[0]);
    assert_int_equal(rest, 2 * sizeof bytes);
}

static void a_sink_reports_a_reader_that_left(void **state)
{
    (void)state;
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    close(ends[0]);
    struct rv_sink *sink = rv_sink_new(ends[1], 4096);
    assert_non_null(sink);
    assert_true(rv_sink_put(sink, "a\n", 2, 1));
    assert_true(rv_sink_flush(sink, 10000));
    assert_int_equal(rv_sink_count(sink).error, EPIPE);
    assert_int_equal(rv_sink_count(sink).dropped, 1);
    rv_sink_end(sink, 0);
}

/* The queue's thread is the parent's alone. */
static void the_child_of_a_fork_logs_too(void **state)
{
    (void)state;
    int ends[2], status;
    char room[256] = "";
    int kept = pipe_begin(ends);
    rv_log(RV_LOG_INFO, "parent", RV_LOG_INT("n", 1));
    rv_log_flush();
    pid_t pid = fork();
    if (pid == 0) {
        rv_log(RV_LOG_INFO, "child", RV_LOG_INT("n", 2));
        rv_log_flush();
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    dup2(kept, STDERR_FILENO);
    close(kept);
    assert_true(read(ends[0], room, sizeof room - 1) > 0);
    close(ends[0]);
    assert_non_null(strstr(room, "info parent n=1\n"));
    assert_non_null(strstr(room, "info child n=2\n"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_are_json_whatever_they_say),
        cmocka_unit_test(a_long_value_is_cut_between_characters_and_marked),
        cmocka_unit_test(a_value_that_fits_is_not_cut),
        cmocka_unit_test(each_of_several_long_values_is_shown),
        cmocka_unit_test(text_cannot_forge_a_line),
        cmocka_unit_test(text_quotes_what_a_parser_cannot_split),
        cmocka_unit_test(formatting_characters_are_escaped),
        cmocka_unit_test(lines_that_nobody_reads_are_dropped_and_counted),
        cmocka_unit_test(a_sink_ends_while_its_writer_blocks),
        cmocka_unit_test(a_sink_reports_a_reader_that_left),
        cmocka_unit_test(the_child_of_a_fork_logs_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
