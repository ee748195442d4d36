/* What the command line makes of words, and what it makes for people to read. */
#include "cli/command_priv.h"
#include "cli/events_priv.h"
#include "cli/run_priv.h"
#include "cli/server_priv.h"
#include "cli/task_priv.h"
#include "cli/text_priv.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORDS_MAX = 16 };

/* ---- words ---- */

struct reading {
    struct cli_words words;
    struct rv_buf fault;
    char *argv[WORDS_MAX];
    char *copies[WORDS_MAX]; /* owned: reading moves the words of argv */
    int argc;
    bool good;
};

/* Reads "a b c" as the command line `reeve a b c`. */
static void reading_init(struct reading *reading, const char *line)
{
    memset(reading, 0, sizeof *reading);
    rv_buf_init(&reading->fault, 4096);
    reading->argv[reading->argc] = reading->copies[0] = strdup("reeve");
    reading->argc++;
    while (*line != '\0') {
        size_t len = strcspn(line, " ");
        char *word = strndup(line, len);
        reading->copies[reading->argc] = reading->argv[reading->argc] = word;
        reading->argc++;
        line += len + (line[len] == ' ');
    }
    reading->good = cli_words_read(&reading->words, reading->argc, reading->argv, &reading->fault);
    rv_buf_add_char(&reading->fault, '\0');
}

static void reading_done(struct reading *reading)
{
    for (int i = 0; i < reading->argc; i++)
        free(reading->copies[i]);
    rv_buf_done(&reading->fault);
}

static void refused(const char *line, const char *why)
{
    struct reading reading;
    reading_init(&reading, line);
    assert_false(reading.good);
    assert_string_equal(reading.fault.at, why);
    reading_done(&reading);
}

static void test_words_options(void **state)
{
    (void)state;
    struct reading reading;
    reading_init(&reading, "--url http://a:1 submit --input={} s/w --key=k --wait --priority 7");
    assert_true(reading.good);
    assert_string_equal(reading.words.command->name, "submit");
    assert_int_equal(reading.words.args_count, 1);
    assert_string_equal(reading.words.args[0], "s/w");
    assert_string_equal(reading.words.values[CLI_OPTION_URL], "http://a:1");
    assert_string_equal(reading.words.values[CLI_OPTION_INPUT], "{}");
    assert_string_equal(reading.words.values[CLI_OPTION_KEY], "k");
    assert_string_equal(reading.words.values[CLI_OPTION_WAIT], "");
    assert_string_equal(reading.words.values[CLI_OPTION_PRIORITY], "7");
    assert_null(reading.words.values[CLI_OPTION_WATCH]);
    reading_done(&reading);
}

static void test_words_end_of_options(void **state)
{
    (void)state;
    struct reading reading;
    reading_init(&reading, "publish - a -- --b");
    assert_true(reading.good);
    assert_int_equal(reading.words.args_count, 3);
    assert_string_equal(reading.words.args[0], "-");
    assert_string_equal(reading.words.args[2], "--b");
    reading_done(&reading);
}

/* A value may look like an option; it is not read as one. */
static void test_words_values_are_not_options(void **state)
{
    (void)state;
    struct reading reading;
    reading_init(&reading, "cancel T --reason --by");
    assert_true(reading.good);
    assert_string_equal(reading.words.values[CLI_OPTION_REASON], "--by");
    assert_null(reading.words.values[CLI_OPTION_BY]);
    reading_done(&reading);
}

static void test_words_serve_reads_its_own(void **state)
{
    (void)state;
    struct reading reading;
    reading_init(&reading, "serve --listen x --help -- --url");
    assert_true(reading.good);
    assert_int_equal(reading.words.args_count, 5);
    assert_string_equal(reading.words.args[-1], "serve");
    assert_string_equal(reading.words.args[0], "--listen");
    assert_string_equal(reading.words.args[4], "--url");
    assert_null(reading.words.values[CLI_OPTION_HELP]);
    reading_done(&reading);
}

static void test_words_help_needs_no_arguments(void **state)
{
    (void)state;
    struct reading reading;
    reading_init(&reading, "show -h");
    assert_true(reading.good);
    assert_non_null(reading.words.values[CLI_OPTION_HELP]);
    reading_done(&reading);
    reading_init(&reading, "");
    assert_true(reading.good);
    assert_null(reading.words.command);
    reading_done(&reading);
}

static void test_words_refusals(void **state)
{
    (void)state;
    refused("sumbit s/w", "unknown command \"sumbit\"; did you mean \"reeve submit\"?");
    refused("xyzzy", "unknown command \"xyzzy\"; \"reeve help\" lists the commands");
    refused("submit s/w --priorty 3", "unknown option --priorty; did you mean --priority?");
    refused("submit s/w --xyzzy", "unknown option --xyzzy; see \"reeve help submit\"");
    refused("tasks --lines k", "unknown option --lines; see \"reeve help tasks\"");
    refused("--input {} submit s/w", "unknown option --input; write the options of a command after "
                                     "the command; see \"reeve help\"");
    refused("submit s/w --key", "--key needs a value: --key KEY (idempotency key: a repeated "
                                "submission with the same key starts no second task)");
    refused("submit s/w --wait=yes", "--wait does not take a value");
    refused("submit s/w --key a --key b", "--key is given twice; leave one out");
    refused("show", "TASK is missing; usage: reeve show TASK [STEP]");
    refused("show a 1 b", "unexpected argument \"b\"; usage: reeve show TASK [STEP]");
    refused("tasks b", "unexpected argument \"b\"; usage: reeve tasks");
}

/* Every command is told with every option that it takes, and lines fit a terminal of 100. */
static void test_help_of_every_command(void **state)
{
    (void)state;
    struct rv_buf buf;
    rv_buf_init(&buf, 64 * 1024);
    for (const struct cli_command *command = cli_commands(); command->name; command++) {
        if (command->options & CLI_RAW)
            continue;
        rv_buf_reset(&buf);
        cli_help_write(&buf, command);
        rv_buf_add_char(&buf, '\0');
        assert_int_equal(buf.failed, RV_OK);
        assert_non_null(strstr(buf.at, command->name));
        for (unsigned i = 0; i < CLI_OPTION_COUNT; i++)
            if (cli_command_shown(command) >> i & 1)
                assert_non_null(strstr(buf.at, cli_option_row((enum cli_option)i)->flag));
        assert_int_equal(strstr(buf.at, "--url ") == NULL, (command->options & CLI_LOCAL) != 0);
        for (const char *line = buf.at; *line != '\0'; line += strcspn(line, "\n") + 1)
            assert_true(strcspn(line, "\n") <= 110);
    }
    rv_buf_reset(&buf);
    cli_help_write(&buf, NULL);
    rv_buf_add_char(&buf, '\0');
    for (const struct cli_command *command = cli_commands(); command->name; command++)
        assert_non_null(strstr(buf.at, command->help));
    rv_buf_done(&buf);
}

/* ---- texts ---- */

static struct rv_arena arena;

static void is(struct rv_str found, const char *wanted)
{
    if (found.at == NULL || !rv_str_is(found, wanted))
        fail_msg("\"%.*s\" is not \"%s\"", RV_STR_FMT(found), wanted);
}

static void test_durations(void **state)
{
    (void)state;
    is(cli_text_duration(&arena, -5), "0 ms");
    is(cli_text_duration(&arena, 0), "0 ms");
    is(cli_text_duration(&arena, 999), "999 ms");
    is(cli_text_duration(&arena, 1000), "1.0 s");
    is(cli_text_duration(&arena, 59999), "59.9 s");
    is(cli_text_duration(&arena, 60000), "1 m 0 s");
    is(cli_text_duration(&arena, 3599999), "59 m 59 s");
    is(cli_text_duration(&arena, 3600000), "1 h 0 m");
    is(cli_text_duration(&arena, 86400000 - 1), "23 h 59 m");
    is(cli_text_duration(&arena, 86400000), "1 d 0 h");
    is(cli_text_duration(&arena, INT64_MAX), "106751991167 d 7 h");
    is(cli_text_distance(&arena, 3500, 2000), "in 1.5 s");
    is(cli_text_distance(&arena, 2000, 3500), "1.5 s ago");
    is(cli_text_ago(&arena, 2000, 3500), "1.5 s ago");
    is(cli_text_ago(&arena, 2001, 2000), "0 ms ago"); /* the server's clock is ahead */
    is(cli_text_past(&arena, INT64_C(1795254584001), INT64_C(1795254584000)),
       "2026-11-21 09:49:44 UTC, 0 ms ago");
    is(cli_text_instant(&arena, INT64_C(1795254584000), INT64_C(1795254586000)),
       "2026-11-21 09:49:44 UTC, 2.0 s ago");
}

static void test_numbers(void **state)
{
    (void)state;
    is(cli_text_number(&arena, 0), "0");
    is(cli_text_number(&arena, 999), "999");
    is(cli_text_number(&arena, 1000), "1,000");
    is(cli_text_number(&arena, 1234567), "1,234,567");
    is(cli_text_number(&arena, UINT64_MAX), "18,446,744,073,709,551,615");
}

static void test_bars(void **state)
{
    (void)state;
    is(cli_text_bar(&arena, 0, 4, 10), "[........]");
    is(cli_text_bar(&arena, 1, 4, 10), "[##......]");
    is(cli_text_bar(&arena, 4, 4, 10), "[########]");
    is(cli_text_bar(&arena, 9, 4, 10), "[########]");
    is(cli_text_bar(&arena, 9, 0, 10), "[........]");
    is(cli_text_bar(&arena, UINT64_MAX - 1, UINT64_MAX, 0), "[#]");
    for (size_t columns = 3; columns < 40; columns++)
        for (uint64_t done = 0; done <= 7; done++)
            assert_int_equal(cli_text_bar(&arena, done, 7, columns).len, columns);
}

/* Whatever a stranger wrote, no control character reaches the terminal; columns stay columns. */
static void test_clean(void **state)
{
    (void)state;
    is(cli_text_clean(&arena, RV_STR("gr\xc3\xbc\xc3\x9f")), "gr\xc3\xbc\xc3\x9f");
    is(cli_text_clean(&arena, RV_STR("\033[31mred\r\n\t\x7f")), " [31mred    ");
    is(cli_text_clean(&arena, RV_STR("a\xc2\x9b"
                                     "31m")),
       "a 31m");
    is(cli_text_clean(&arena, RV_STR("a\xe2\x80\xae"
                                     "b")),
       "a b");
    is(cli_text_clean(&arena, RV_STR("\xff\xc3")), "??");
    is(cli_text_clean(&arena, RV_STR("\xc0\xaf\xed\xa0\x80")), "?????");
    assert_int_equal(cli_text_columns(RV_STR("gr\xc3\xbc\xc3\x9f")), 4);
    is(cli_text_cut(&arena, RV_STR("abcdef"), 6), "abcdef");
    is(cli_text_cut(&arena, RV_STR("abcdef"), 5), "ab...");
    is(cli_text_cut(&arena, RV_STR("\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc"), 4), "\xc3\xbc...");
    is(cli_text_cut(&arena, RV_STR("abcdef"), 2), "ab");
    /* Every byte alone and every pair of them: nothing but printing bytes comes out. */
    for (unsigned pair = 0; pair < 65536; pair++) {
        char text[2] = {(char)(pair >> 8), (char)pair};
        struct rv_arena_mark mark = rv_arena_mark(&arena);
        struct rv_str clean = cli_text_clean(&arena, (struct rv_str){text, 2});
        for (size_t i = 0; i < clean.len; i++)
            assert_true((unsigned char)clean.at[i] >= 0x20 && clean.at[i] != 0x7f);
        rv_arena_release(&arena, mark);
    }
}

static void test_step_names(void **state)
{
    (void)state;
    is(cli_text_step(&arena, RV_STR("/do/0/reserve")), "reserve");
    is(cli_text_step(&arena, RV_STR("/do/12/outer/do/3/charge")), "outer/charge");
    is(cli_text_step(&arena, RV_STR("/do/0/a~1b~0c")), "a/b~c");
    is(cli_text_step(&arena, RV_STR("/do/0/7")), "7");
    is(cli_text_step(&arena, RV_STR("/do/0/pay/metadata/reeve/compensate/0/refund")), "pay/refund");
    is(cli_text_step(&arena, RV_STR("")), "");
    is(cli_text_step(&arena, RV_STR("strange")), "strange");
}

/* ---- tables ---- */

static void table_is(const struct cli_table *table, bool colour, size_t width, const char *wanted)
{
    char *text = NULL;
    size_t len = 0;
    FILE *to = open_memstream(&text, &len);
    assert_non_null(to);
    cli_table_print(table, to, colour, width);
    assert_int_equal(fclose(to), 0);
    assert_string_equal(text, wanted);
    free(text);
}

static void test_table(void **state)
{
    (void)state;
    static const char *const heads[] = {"NAME", ">N", "EMPTY", "WHY", NULL};
    struct cli_table table;
    cli_table_init(&table, &arena, heads);
    table_is(&table, false, 0, "");
    cli_table_add(&table, RV_STR("\xc3\xbc"), CLI_GREEN);
    cli_table_add_number(&table, 7);
    cli_table_add(&table, RV_STR(""), CLI_PLAIN);
    cli_table_add(&table, RV_STR("because\n of it"), CLI_PLAIN);
    cli_table_add(&table, RV_STR("longer"), CLI_PLAIN);
    cli_table_add_number(&table, 1234);
    cli_table_add(&table, RV_STR_NONE, CLI_PLAIN);
    cli_table_add(&table, RV_STR(""), CLI_PLAIN);
    table_is(&table, false, 0,
             "NAME       N  WHY\n\xc3\xbc          7  because  of it\nlonger  1234\n");
    table_is(&table, false, 19, "NAME       N  WHY\n\xc3\xbc          7  be...\nlonger  1234\n");
    table_is(&table, true, 14,
             "\033[2mNAME\033[0m       \033[2mN\033[0m\n"
             "\033[32m\xc3\xbc\033[0m          7\nlonger  1234\n");
}

/* ---- what the server says ---- */

static struct rv_json json(const char *text)
{
    struct rv_json value;
    assert_int_equal(rv_json_parse(&arena, rv_str_of(text), 64, &value, NULL), RV_OK);
    return value;
}

static void test_codes(void **state)
{
    (void)state;
    struct rv_json in_use = json("{\"type\":\"urn:reeve:error:IN_USE\"}");
    struct rv_json other = json("{\"type\":\"about:blank\"}");
    assert_int_equal(cli_problem_code(500, &in_use), CLI_REFUSED);
    assert_int_equal(cli_problem_code(400, &other), CLI_USAGE);
    assert_int_equal(cli_problem_code(422, NULL), CLI_USAGE);
    assert_int_equal(cli_problem_code(404, NULL), CLI_NOT_FOUND);
    assert_int_equal(cli_problem_code(403, NULL), CLI_REFUSED);
    assert_int_equal(cli_problem_code(409, NULL), CLI_REFUSED);
    assert_int_equal(cli_problem_code(503, NULL), CLI_UNREACHABLE);
    assert_int_equal(cli_task_code(RV_STR("processed")), CLI_DONE);
    assert_int_equal(cli_task_code(RV_STR("compensated")), CLI_FAILED);
    assert_int_equal(cli_task_code(RV_STR("cancelled")), CLI_FAILED);
    assert_int_equal(cli_task_code(RV_STR("error")), CLI_OPERATOR);
    assert_int_equal(cli_task_code(RV_STR("processing")), -1);
}

static void test_why(void **state)
{
    (void)state;
    const int64_t now = INT64_C(1795254584000); /* 2026-11-21T09:49:44Z */
    struct rv_json step = json("{\"state\":\"pending\",\"agent\":\"stock\",\"attempt\":0}");
    is(cli_step_why(&arena, &step, NULL, now), "not dispatched yet");
    step = json("{\"state\":\"pending\",\"agent\":\"stock\",\"attempt\":2}"); /* resubmitted */
    is(cli_step_why(&arena, &step, NULL, now), "attempt 3 is not dispatched yet");
    step = json("{\"state\":\"pending\",\"agent\":\"stock\",\"failureCount\":1,"
                "\"readyAt\":\"2026-11-21T09:49:46Z\",\"error\":{\"type\":"
                "\"https://a.org/spec/1.0.0/errors/timeout\",\"title\":\"too slow\"}}");
    is(cli_step_why(&arena, &step, NULL, now), "again in 2.0 s, after: timeout: too slow");
    step = json("{\"state\":\"pending\",\"agent\":\"stock\",\"failureCount\":0,\"round\":1,"
                "\"readyAt\":\"2026-11-21T09:54:44Z\"}");
    is(cli_step_why(&arena, &step, NULL, now), "cool-down, again in 5 m 0 s");
    step = json("{\"state\":\"processing\",\"attemptState\":\"open\",\"instance\":\"a7\","
                "\"completeBy\":\"2026-11-21T09:49:45.5Z\"}");
    is(cli_step_why(&arena, &step, NULL, now), "at a7, complete-by in 1.5 s");
    step = json("{\"state\":\"processing\",\"attemptState\":\"revoked\",\"instance\":\"a7\","
                "\"completeBy\":\"2026-11-21T09:49:45Z\"}");
    is(cli_step_why(&arena, &step, NULL, now), "at a7, asked to stop, complete-by in 1.0 s");
    step = json("{\"state\":\"processed\",\"undone\":true}");
    is(cli_step_why(&arena, &step, NULL, now), "undone");
    step = json("{\"reference\":\"/do/0/pay/metadata/reeve/compensate/0/refund\",\"undoes\":2}");
    is(cli_step_name(&arena, &step), "refund (undoes 2)");
    step = json("{\"reference\":\"/do/0/pay\",\"visit\":3,\"undoes\":0}");
    is(cli_step_name(&arena, &step), "pay, visit 3");
    step = json("{\"reference\":\"/do/2/pay\",\"kind\":\"inline\",\"state\":\"processed\","
                "\"input\":[\"/do/0/a\",\"/do/1/b\"]}");
    is(cli_step_name(&arena, &step), "a, b");
    step = json("{\"reference\":\"/do/0/a\",\"kind\":\"inline\",\"state\":\"processed\",\"input\":"
                "[\"/do/0/a\",\"/do/1/b\",\"/do/2/c\",\"/do/3/d\",\"/do/4/e\"]}");
    is(cli_step_name(&arena, &step), "a, b, c and 2 more");
    step = json("{\"reference\":\"/do/1/b\",\"kind\":\"inline\",\"state\":\"error\","
                "\"input\":[\"/do/0/a\",\"/do/1/b\"]}");
    is(cli_step_name(&arena, &step), "b");
    step = json("{\"reference\":\"\",\"kind\":\"inline\",\"state\":\"error\"}");
    is(cli_step_name(&arena, &step), "(workflow)");
}

static void test_paths(void **state)
{
    (void)state;
    struct cli_path path;
    cli_path_begin(&path, "/v1/tasks");
    cli_path_segment(&path, RV_STR("a/b?c"));
    cli_path_parameter(&path, "x", NULL);
    cli_path_parameter(&path, "y", "1&2");
    cli_path_parameter(&path, "z", "\xc3\xbc-._~");
    is(cli_path_end(&path, &arena), "/v1/tasks/a%2Fb%3Fc?y=1%262&z=%C3%BC-._~");
}

/* ---- events ---- */

struct heard {
    struct rv_buf text; /* each event's data, and a bar */
    size_t enough;      /* events that are wanted */
    size_t count;
};

static bool hear(struct rv_str data, void *user)
{
    struct heard *heard = user;
    rv_buf_add_str(&heard->text, data);
    rv_buf_add_char(&heard->text, '|');
    return ++heard->count < heard->enough;
}

/* The same is heard wherever the bytes are cut in two. */
static void heard_of(const char *stream, const char *wanted)
{
    size_t len = strlen(stream);
    for (size_t cut = 0; cut <= len; cut++) {
        struct heard heard = {.enough = SIZE_MAX};
        struct cli_events events = {.each = hear, .user = &heard};
        rv_buf_init(&heard.text, 4096);
        cli_events_init(&events, 4096);
        assert_true(cli_events_take(&events, stream, cut));
        assert_true(cli_events_take(&events, stream + cut, len - cut));
        is(rv_buf_str(&heard.text), wanted);
        cli_events_done(&events);
        rv_buf_done(&heard.text);
    }
}

static void test_events(void **state)
{
    (void)state;
    heard_of("id: 1\nevent: a\ndata: {}\n\nid: 2\ndata: []\n\n", "{}|[]|");
    heard_of("data:x\ndata:  y\ndata\ndata:\n\n", "x\n y\n|");
    heard_of(":\n\n\n:data: x\n\nid: 3\n\ndatum: x\n\n", "");
    heard_of("data: \xc3\xbc\r\n\r\ndata: b\r\rdata: c\n\r\n", "\xc3\xbc|b|c|");
    heard_of("data: whole\n\ndata: the end of this one did not come\n", "whole|");
}

static void test_events_end(void **state)
{
    (void)state;
    static const char two[] = "data: a\n\ndata: b\n\n";
    struct heard heard = {.enough = 1};
    struct cli_events events = {.each = hear, .user = &heard};
    rv_buf_init(&heard.text, 4096);
    cli_events_init(&events, 8);
    assert_false(cli_events_take(&events, two, sizeof two - 1));
    is(rv_buf_str(&heard.text), "a|");
    heard.enough = SIZE_MAX;
    cli_events_restart(&events);
    assert_true(cli_events_take(&events, "data: x", 7));
    cli_events_restart(&events);
    assert_true(cli_events_take(&events, "\n\n", 2));
    is(rv_buf_str(&heard.text), "a|");
    assert_false(cli_events_take(&events, "data: 123", 9));
    assert_int_equal(events.line.failed, RV_ERR_LIMIT);
    cli_events_restart(&events);
    assert_false(cli_events_take(&events, "data: 1\ndata: 2\ndata: 3\ndata: 4\ndata: 5\n", 40));
    assert_int_equal(events.data.failed, RV_ERR_LIMIT);
    cli_events_done(&events);
    rv_buf_done(&heard.text);
}

static int group_begin(void **state)
{
    (void)state;
    rv_arena_init(&arena, 0);
    return 0;
}

static int group_end(void **state)
{
    (void)state;
    rv_arena_done(&arena);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words_options),
        cmocka_unit_test(test_words_end_of_options),
        cmocka_unit_test(test_words_values_are_not_options),
        cmocka_unit_test(test_words_serve_reads_its_own),
        cmocka_unit_test(test_words_help_needs_no_arguments),
        cmocka_unit_test(test_words_refusals),
        cmocka_unit_test(test_help_of_every_command),
        cmocka_unit_test(test_durations),
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_bars),
        cmocka_unit_test(test_clean),
        cmocka_unit_test(test_step_names),
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_codes),
        cmocka_unit_test(test_why),
        cmocka_unit_test(test_paths),
        cmocka_unit_test(test_events),
        cmocka_unit_test(test_events_end),
    };
    return cmocka_run_group_tests(tests, group_begin, group_end);
}
