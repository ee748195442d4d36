/* What the exec agent makes of a command's end, and what it gives a command to know. */
#include "agent/exec/environment.h"
#include "agent/exec/outcome.h"
#include "base/limits.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct rv_arena arena;

static int arena_open(void **state)
{
    (void)state;
    rv_arena_init(&arena, 0);
    return 0;
}

static int arena_close(void **state)
{
    (void)state;
    rv_arena_done(&arena);
    return 0;
}

static struct rv_exec_outcome outcome_of(enum rv_exec_end end, int number, const char *output)
{
    struct rv_exec_result result = {.end = end, .number = number, .output = rv_str_of(output)};
    struct rv_exec_outcome outcome;
    rv_exec_outcome(&arena, &result, &outcome);
    return outcome;
}

/* ---- outcomes ---- */

static void a_command_that_succeeds_gives_its_output(void **state)
{
    (void)state;
    assert_string_equal(outcome_of(RV_EXEC_EXITED, 0, "{\"a\": 1}\n").output.at, "{\"a\": 1}\n");
    assert_string_equal(outcome_of(RV_EXEC_EXITED, 0, "").output.at, "null");
    assert_string_equal(outcome_of(RV_EXEC_EXITED, 0, " \n\t").output.at, "null");
    /* The word of an error counts after a failure alone. */
    const char *error = "{\"error\":{\"type\":\"x\"}}";
    assert_string_equal(outcome_of(RV_EXEC_EXITED, 0, error).output.at, error);
}

static void output_that_is_no_json_is_told_with_its_place(void **state)
{
    (void)state;
    static const char *const wrong[] = {"{\"a\":1}\nhello", "{} {}", "{\"a\":1,\"a\":2}", "\xff"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct rv_exec_outcome outcome = outcome_of(RV_EXEC_EXITED, 0, wrong[i]);
        assert_null(outcome.output.at);
        assert_string_equal(outcome.failure.type, "output-no-json");
        assert_int_equal(outcome.failure.transient, 0);
        assert_int_equal(outcome.failure.effect, RV_EFFECT_UNKNOWN);
    }
    const char *title = outcome_of(RV_EXEC_EXITED, 0, wrong[0]).failure.title;
    assert_int_equal(strncmp(title, "stdout:2:1: ", 12), 0);
}

static void failures_leave_the_effect_unknown_unless_nothing_was_started(void **state)
{
    (void)state;
    static const struct {
        enum rv_exec_end end;
        int number;
        const char *type;
        int transient;
        enum rv_effect effect;
    } rows[] = {
        {RV_EXEC_EXITED, 75, "exit-75", 1, RV_EFFECT_UNKNOWN},
        {RV_EXEC_EXITED, 1, "exit-1", 0, RV_EFFECT_UNKNOWN},
        {RV_EXEC_EXITED, 127, "exit-127", 0, RV_EFFECT_UNKNOWN},
        {RV_EXEC_SIGNALLED, SIGKILL, "signal-KILL", 0, RV_EFFECT_UNKNOWN},
        {RV_EXEC_FLOODED, 0, "output-too-large", 0, RV_EFFECT_UNKNOWN},
        {RV_EXEC_CANCELLED, 0, "cancelled", 1, RV_EFFECT_UNKNOWN},
        {RV_EXEC_HURRIED, 0, "agent-stopped", 1, RV_EFFECT_UNKNOWN},
        {RV_EXEC_LATE, 0, "late", 1, RV_EFFECT_UNKNOWN},
        {RV_EXEC_NOT_STARTED, ENOENT, "not-started", 1, RV_EFFECT_NONE},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct rv_exec_outcome outcome = outcome_of(rows[i].end, rows[i].number, "{}");
        assert_null(outcome.output.at);
        assert_string_equal(outcome.failure.type, rows[i].type);
        assert_int_equal(outcome.failure.transient, rows[i].transient);
        assert_int_equal(outcome.failure.effect, rows[i].effect);
        assert_non_null(outcome.failure.title);
    }
}

static void a_command_may_say_more_on_its_last_line(void **state)
{
    (void)state;
    struct rv_failure failure =
        outcome_of(
            RV_EXEC_EXITED, 3,
            "trying\n{\"error\":{\"type\":\"declined\",\"title\":\"no money\",\"status\":402,"
            "\"detail\":\"d\",\"effect\":\"none\",\"transient\":true,"
            "\"retryAfterMs\":500}}\n")
            .failure;
    assert_string_equal(failure.type, "declined");
    assert_string_equal(failure.title, "no money");
    assert_string_equal(failure.detail, "d");
    assert_int_equal(failure.status, 402);
    assert_int_equal(failure.effect, RV_EFFECT_NONE);
    assert_int_equal(failure.transient, 1);
    assert_int_equal(failure.retry_after_ms, 500);
    failure = outcome_of(RV_EXEC_EXITED, 75, "{\"error\":{\"transient\":false}}").failure;
    assert_string_equal(failure.type, "exit-75");
    assert_int_equal(failure.transient, 0);
    assert_int_equal(failure.effect, RV_EFFECT_UNKNOWN);
}

/* Half a word is none: above all, no effect is believed to be none because of one. */
static void a_word_that_cannot_be_used_does_not_count(void **state)
{
    (void)state;
    char letters[RV_KEY_BYTES_MAX + 2] = "";
    char too_long[RV_KEY_BYTES_MAX + 100];
    memset(letters, 'x', sizeof letters - 1);
    snprintf(too_long, sizeof too_long, "{\"error\":{\"effect\":\"none\",\"type\":\"%s\"}}",
             letters);
    const struct {
        const char *line;
        const char *why; /* in the title; NULL: that is no word at all */
    } rows[] = {
        {"{\"error\":{\"efect\":\"none\"}}",
         "unknown property \"efect\"; did you mean \"effect\"?"},
        {"{\"error\":{\"effect\":\"none\",\"type\":7}}", "type must be a non-empty string"},
        {"{\"error\":{\"effect\":\"none\",\"type\":\"\"}}", "type must be a non-empty string"},
        {"{\"error\":{\"effect\":\"none\",\"type\":\"e\\u001bx\"}}",
         "type contains the control or formatting character U+001B; remove it"},
        {"{\"error\":{\"effect\":\"none\",\"type\":\"e\\u0000\"}}", "character U+0000"},
        {too_long, "type is longer than 256 bytes"},
        {"{\"error\":{\"effect\":\"none\",\"title\":{}}}", "title and detail"},
        {"{\"error\":{\"effect\":\"none\",\"status\":1000}}", "status must be"},
        {"{\"error\":{\"effect\":\"none\",\"retryAfterMs\":-1}}", "retryAfterMs"},
        {"{\"error\":{\"effect\":\"done\"}}", "effect must be"},
        {"{\"error\":{\"effect\":\"none\",\"transient\":1}}", "transient must be"},
        {"{\"error\":\"effect none\"}", "it must be an object"},
        {"{\"error\":{\"effect\":\"none\"},\"more\":1}", NULL},
        {"{\"error\":{\"effect\":\"none\"}}\nbye", NULL},
        {"{\"error\":{\"effect\":\"none\"", NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct rv_failure failure = outcome_of(RV_EXEC_EXITED, 1, rows[i].line).failure;
        assert_string_equal(failure.type, "exit-1");
        assert_int_equal(failure.effect, RV_EFFECT_UNKNOWN);
        assert_int_equal(failure.transient, 0);
        if (rows[i].why != NULL)
            assert_non_null(strstr(failure.title, rows[i].why));
        else
            assert_string_equal(failure.title, "the command ended with exit code 1");
    }
}

static void exit_code_75_is_transient_and_its_title_gives_no_advice(void **state)
{
    (void)state;
    struct rv_failure failure = outcome_of(RV_EXEC_EXITED, 75, "").failure;
    assert_string_equal(failure.type, "exit-75");
    assert_string_equal(failure.title, "the command ended with exit code 75");
    assert_int_equal(failure.transient, 1);
}

/* ---- stderr ---- */

static void the_tail_is_the_end_of_the_stream(void **state)
{
    (void)state;
    /* All ways to cut the same stream give the same tail. */
    enum { BYTES = 3 * RV_EXEC_TAIL_BYTES };
    static char stream[BYTES];
    for (int i = 0; i < BYTES; i++)
        stream[i] = (char)('a' + i % 23);
    for (size_t piece = 1; piece <= BYTES; piece += piece < 40 ? 1 : 997) {
        struct rv_exec_tail tail = {.len = 0};
        for (size_t at = 0; at < BYTES; at += piece)
            rv_exec_tail_add(&tail, stream + at, BYTES - at < piece ? BYTES - at : piece);
        struct rv_str text = rv_exec_tail_text(&tail);
        assert_int_equal(text.len, RV_EXEC_TAIL_BYTES);
        assert_memory_equal(text.at, stream + BYTES - text.len, text.len);
    }
}

static void the_tail_begins_with_a_whole_character(void **state)
{
    (void)state;
    struct rv_exec_tail tail = {.len = 0};
    for (int i = 0; i < RV_EXEC_TAIL_BYTES; i++)
        rv_exec_tail_add(&tail, "\xe2\x82\xac", 3);
    rv_exec_tail_add(&tail, " \n", 2);
    struct rv_str text = rv_exec_tail_text(&tail);
    assert_int_equal(text.len % 3, 0);
    assert_memory_equal(text.at, "\xe2\x82\xac", 3);
    struct rv_exec_tail empty = {.len = 0};
    assert_int_equal(rv_exec_tail_text(&empty).len, 0);
    rv_exec_tail_add(&empty, "\n \n", 3);
    assert_int_equal(rv_exec_tail_text(&empty).len, 0);
}

/* ---- the environment ---- */

static const char *find(char **environment, const char *name)
{
    size_t len = strlen(name);
    const char *found = NULL;
    for (size_t i = 0; environment[i] != NULL; i++) {
        if (strncmp(environment[i], name, len) != 0 || environment[i][len] != '=')
            continue;
        assert_null(found); /* none is there twice */
        found = environment[i] + len + 1;
    }
    return found;
}

static const struct rv_exec_facts facts = {.agent = "inventory",
                                           .task = "T",
                                           .step = "T-1",
                                           .reference = "/do/0/x",
                                           .key = "T-1",
                                           .complete_by = "2026-11-21T01:30:00.000Z",
                                           .traceparent = "",
                                           .tracestate = "",
                                           .attempt = 2,
                                           .fence = 17,
                                           .remaining_ms = 9873};

static void a_command_knows_what_it_is_to_do(void **state)
{
    (void)state;
    static char path[] = "PATH=/bin", fence[] = "REEVE_FENCE=3", key[] = "REEVE_API_KEY=secret",
                trace[] = "TRACEPARENT=outer", vendors[] = "TRACESTATE=v=1",
                fenced[] = "REEVE_FENCED=1";
    char *inherited[] = {path, fence, key, trace, vendors, fenced, NULL};
    char **environment = rv_exec_environment(&arena, inherited, &facts);
    assert_string_equal(find(environment, "PATH"), "/bin");
    assert_string_equal(find(environment, "REEVE_FENCED"), "1");
    assert_string_equal(find(environment, "REEVE_FENCE"), "17");
    assert_string_equal(find(environment, "REEVE_AGENT"), "inventory");
    assert_string_equal(find(environment, "REEVE_TASK"), "T");
    assert_string_equal(find(environment, "REEVE_STEP"), "T-1");
    assert_string_equal(find(environment, "REEVE_REFERENCE"), "/do/0/x");
    assert_string_equal(find(environment, "REEVE_ATTEMPT"), "2");
    assert_string_equal(find(environment, "REEVE_IDEMPOTENCY_KEY"), "T-1");
    assert_string_equal(find(environment, "REEVE_REMAINING_MS"), "9873");
    assert_string_equal(find(environment, "REEVE_COMPLETE_BY"), "2026-11-21T01:30:00.000Z");
    assert_null(find(environment, "REEVE_API_KEY"));
    assert_null(find(environment, "TRACEPARENT"));
    assert_null(find(environment, "TRACESTATE"));
    struct rv_exec_facts traced = facts;
    traced.traceparent = "00-1-2-01";
    traced.tracestate = "w=2";
    environment = rv_exec_environment(&arena, inherited, &traced);
    assert_string_equal(find(environment, "TRACEPARENT"), "00-1-2-01");
    assert_string_equal(find(environment, "TRACESTATE"), "w=2");
}

static void file_make(const char *folder, const char *name, mode_t mode, const char *text)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(chmod(path, mode), 0);
}

static void commands_are_found_as_a_shell_finds_them(void **state)
{
    (void)state;
    char folder[] = "/tmp/reeve-exec-XXXXXX";
    char list[256];
    char path[256];
    const char *why;
    assert_non_null(mkdtemp(folder));
    file_make(folder, "tool", 0755, "#!/bin/sh\n");
    file_make(folder, "text", 0644, "");
    snprintf(list, sizeof list, "/nowhere:%s:/bin", folder);
    snprintf(path, sizeof path, "%s/tool", folder);
    assert_string_equal(rv_exec_find(&arena, "tool", list, &why), path);
    assert_string_equal(rv_exec_find(&arena, path, "", &why), path);
    assert_null(rv_exec_find(&arena, "tool", "/nowhere", &why));
    assert_non_null(strstr(why, "\"tool\" was not found in PATH"));
    assert_null(rv_exec_find(&arena, "tool", NULL, &why));
    assert_null(rv_exec_find(&arena, "", list, &why));
    assert_null(rv_exec_find(&arena, "text", list, &why));
    assert_non_null(strstr(why, "chmod +x"));
    assert_null(rv_exec_find(&arena, folder, list, &why));
    assert_non_null(strstr(why, "directory"));
    snprintf(path, sizeof path, "%s/text/tool", folder);
    assert_null(rv_exec_find(&arena, path, list, &why));
    assert_int_equal(chdir(folder), 0);
    assert_string_equal(rv_exec_find(&arena, "tool", ":/bin", &why), "./tool");
    assert_int_equal(unlink("tool"), 0);
    assert_int_equal(unlink("text"), 0);
    assert_int_equal(chdir("/"), 0);
    assert_int_equal(rmdir(folder), 0);
}

static void what_cannot_be_executed_is_told_with_its_cure(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *said; /* NULL: it can be executed */
    } rows[] = {
        {"#!/bin/sh\necho\n", NULL},
        {"#! \t/bin/sh -e\n", NULL},
        {"#!/bin/sh", NULL},
        {"#!/usr/bin/env sh\n", NULL},
        {"#!/usr/bin/env -S sh -e\n", NULL},
        {"#!/usr/bin/env A=b sh\n", NULL},
        {"\177ELF", NULL},
        {"#!/bin/sh\r\necho\r\n", "sed -i"},
        {"#!/usr/bin/env sh\r\n", "CR LF"},
        {"#!/no/such/sh\n", "interpreter /no/such/sh does not exist or is not executable"},
        {"#!/etc/passwd\n", "interpreter /etc/passwd does not exist or is not executable"},
        {"#!/bin\n", "interpreter /bin does not exist"},
        {"#!/usr/bin/env no-such-language -x\n", "\"no-such-language\" was not found in PATH"},
        {"#!\n", "names no interpreter"},
        {"echo hello\n", "is a script without a #! line"},
        {"\r\n#!/bin/sh\n", "is a script without a #! line"},
        {"", "is empty"},
    };
    char folder[] = "/tmp/reeve-exec-XXXXXX";
    char path[256];
    const char *why;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/tool", folder);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        file_make(folder, "tool", 0755, rows[i].text);
        const char *found = rv_exec_find(&arena, path, "/usr/bin:/bin", &why);
        if ((found == NULL) != (rows[i].said != NULL) ||
            (rows[i].said != NULL && strstr(why, rows[i].said) == NULL))
            fail_msg("%s: %s", rows[i].text, found != NULL ? "found" : why);
        assert_int_equal(unlink(path), 0);
    }
    assert_int_equal(rmdir(folder), 0);
    assert_null(rv_exec_find(&arena, "/dev/null", "/bin", &why));
    assert_non_null(strstr(why, "is not a regular file"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_command_that_succeeds_gives_its_output),
        cmocka_unit_test(output_that_is_no_json_is_told_with_its_place),
        cmocka_unit_test(failures_leave_the_effect_unknown_unless_nothing_was_started),
        cmocka_unit_test(a_command_may_say_more_on_its_last_line),
        cmocka_unit_test(a_word_that_cannot_be_used_does_not_count),
        cmocka_unit_test(exit_code_75_is_transient_and_its_title_gives_no_advice),
        cmocka_unit_test(the_tail_is_the_end_of_the_stream),
        cmocka_unit_test(the_tail_begins_with_a_whole_character),
        cmocka_unit_test(a_command_knows_what_it_is_to_do),
        cmocka_unit_test(commands_are_found_as_a_shell_finds_them),
        cmocka_unit_test(what_cannot_be_executed_is_told_with_its_cure),
    };
    return cmocka_run_group_tests(tests, arena_open, arena_close);
}
