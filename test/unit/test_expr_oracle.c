/* jq expressions against the jq program: random expressions on random inputs, from a seed, within
 * the part of the language in which jq 1.6 does what the jq manual says. (Its `try` also catches
 * what is raised behind it, so each one stands in an array of its own here.) A batch goes through
 * one jq process. Without jq on the machine the test is skipped.
 *
 * REEVE_SEED=N runs another seed than the fixed one. */
#include "base/limits.h"
#include "base/prng.h"
#include "expr/expr.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <spawn.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

extern char **environ;

enum { BATCHES = 12, CASES = 120, DEPTH_MAX = 4, OUTPUTS_MAX = 20, FILE_BYTES_MAX = 1 << 24 };

/* clang-format off */
/* What can stand for an expression: %e an expression, %g a generator, %s a string, %n a number,
 * %t the text of a number or of none, %k a name. A `g` in front marks those with any number of
 * outputs. */
static const char *const forms[] = {
    ".", ".", ".%k", ".%k", ".%k.%k", ".[%n]", ".[%n:]", ".[:%n]", ".[%n:%n]", ".%k?", ".[%n]?",
    "%n", "%s", "null", "true", "false", "[]", "{}", "[%g]", "[%g, %g]", "[.[]?]", "[.[] | %e]",
    "{%k: %e}", "{%k: %e, %k: %e}", "{(%e | tostring): %e}", "{%k}", "{%s: %e}", "(%e + %e)",
    "(%e - %e)", "(%e * 3)", "([%e | numbers] | map(. * %n))", "(%e / %s)", "(%e * %e)",
    "(%e %% 3)", "(%n / 4)", "(%e == %e)",
    "(%e != %e)", "(%e < %e)", "(%e <= %e)", "(%e > %e)", "(%e and %e)", "(%e or %e)",
    "(%e // %e)", "(%g // %e)", "(%e | not)", "(-%e)", "\"<\\(%e)-\\(%e)>\"",
    "(if %e then %e else %e end)", "(if %e then %e elif %e then %e else %e end)",
    "([try %e catch \"c\"] | .[])", "(%e | %e)", "(%e | %e)", "(%e as $x | [$x, %e])",
    "(%e as [$x, $y] | [$y, $x])", "(%e as {%k: $x} | [$x, .])",
    "(%e as {$a, b: [$c]} | [$a, $c])", "(reduce %g as $x (%e; . + $x))",
    "(reduce %g as $x (null; [., $x] | length))", "[foreach %g as $x (0; . + 1; [., $x])]",
    "[limit(2; %g)]", "[first(%g)]", "[label $f | %g | if . == %e then ., break $f else . end]",
    "(def f: %e; [f, f])", "(def f(g): [g, (%e | g)]; f(%e))", "(def f($x): [$x, %e]; f(%e))",
    "[range(%n)]", "[range(%n; %n)]", "[range(0; 7; 2)]", "length", "(%e | length)", "keys",
    "(%e | keys)", "(%e | keys_unsorted)", "(%e | has(%e))", "(%e | contains(%e))",
    "(%e | inside(%e))", "(%e | add)", "(%e | any)", "(%e | all)", "any(%g; . == %n)",
    "all([%g][]; . == %s)", "(%e | any(. == %n))", "isempty(%g)", "(%e | join(\",\"))",
    "(%e | split(\"a\"))", "(%e | startswith(\"a\"))", "(%e | endswith(\"b\"))",
    "(%e | ltrimstr(\"a\"))", "(%e | rtrimstr(\"b\"))", "(%e | ascii_upcase)", "(%e | explode)",
    "(%e | explode | implode)", "(%e | tostring)", "(%e | tojson)", "(%e | tojson | fromjson)",
    "(%e | type)", "(%e | to_entries)", "(%e | objects | to_entries | from_entries)",
    "(%e | objects | with_entries(.value |= [.]))", "(%e | min)", "(%e | max)", "(%e | sort)",
    "(%e | unique)", "([%g] | reverse)", "(%e | sort_by(%e))", "(%e | group_by(%e))",
    "(%e | unique_by(%e))", "(%e | min_by(%e))", "(%e | max_by(%e))", "(%e | flatten)",
    "(%e | flatten(1))", "(%e | map(%g))", "(%e | map_values([%e]))", "(%e | map(select(%e)))",
    "(%e | indices(%e))", "(%e | index(\"a\"))", "(%e | rindex(\"a\"))", "[paths]",
    "[paths(type == \"number\")]", "[leaf_paths]", "[path(.%k)]", "[path(.[]?)]", "[path(..)]",
    "getpath([%s, %n])", "([try setpath([%s, %n]; %e) catch \"c\"] | .[])", "del(.%k)",
    "del(.[%n])", "del(.[%n, %n])", "del(.[]? | select(. == %e))", "delpaths([[%s], [%s, %n]])",
    "(.%k = %e)", "(.%k |= %e)", "(.%k += %e)", "(.%k //= %e)", "(.[%n] = %e)", "(.[]? += 1)",
    "(.[%n:%n] = [%e])", "(.[]? |= [.])", "((.%k, .%k) = %n)", "(.. |= .)", "(.%k.%k |= %e)",
    "((.[]? | select(type == \"number\")) |= . + 1)", "(%e | floor)",
    "(%e | length | sqrt | floor)", "(%e | test(\"a\"))", "@json", "(%e | @base64)",
    "(%e | @base64 | @base64d)", "[.[]? | @text]", "(%e | @csv)", "(%e | @tsv)", "(%e | @sh)",
    "(%e | arrays | transpose)", "[.[]? | scalars]", "[.. | numbers]",
    "[recurse(if type == \"number\" and . < 5 then . + 1 else empty end)]",
    "[%g | nulls, booleans, strings]", "(%e | ascii_downcase)", "(%e | in([1, 2]))", "first(%g)",
    "last(%g)", "(%e | first)", "(%e | last)", "(%e | nth(1))", "[..]", "(%e | tonumber)",
    "(%e | fromjson)", "(%e | utf8bytelength)", "error([%e])", "([%e?] | .[])",
    "(def f($x; $y): [$x, x, $y, y]; f(%g; %g))", "(def f($x): [$x, (%e | x)]; f(%g))",
    "(def f($x; x): [$x, x]; f(%g; %e))", "[foreach %g as $x (%e; %g; [$x, .])]",
    "[foreach %g as $x (%e; %g)]", "(reduce %g as $x (%e; %g))", "(%t | tonumber)",
    "([%e, nan, %n] | @csv, @tsv)", "(%e | arrays, objects, numbers | reverse)", "(%e | @html)",
    "(%e | has(%n))", "(.[1.7] = %e)", "(%e | @uri)",
    "(%e | unique | bsearch(%e))", "(%e * -1)", "(%e | nth(0; .[], 1))",
    "[nth(2; 1, 2, 3, 4)]", "([try {(.[]?): %e} catch \"c\"] | .[])", "{\"\\(%e)\"}",
};

static const char *const generators[] = {
    ".[]", ".[]?", "(%e, %e)", "(%e, %e, %e)", "(.[]? | %e)", "..", "range(3)", "empty",
    "(%g | %e)", "(%g | select(%e))", "(%e | .[]?)", "(%g as $x | ($x, %e))", "recurse",
    "(if %g then %e else %e end)", "(%g + %g)", "(%g | (., %e))", "limit(3; %g)", "%e",
    "\"\\(%g)\\(%g)\"", "{%k: (%g), %k: (%g)}", "[%e, %g]", "(%g == %e)", "(%g and %g)",
    ".[(%g)]?", "(.[%n]?, .%k?)", "path(.[]?)", "([try %g catch \"c\"] | .[])", "(%g // %g)",
    "{\"\\(%g)\"}", "{%k: %g, \"\\(%g)\"}",
};

static const char *const strings[] = {
    "\"a\"", "\"b\"", "\"ab\"", "\"\"", "\"a,b\"", "\"1\"", "\"x y\"", "\"<'&\"",
};
/* Numbers and what is nearly one. */
static const char *const texts[] = {
    "\".89\"", "\"1.\"", "\"01\"", "\"+1\"", "\"-.5\"", "\"1.e2\"", "\"00\"", "\"- 1\"",
    "\" 1 \"", "\"1e\"", "\".\"", "\"1..\"", "\"1.5.\"", "\"+-1\"", "\"\"", "\"-01.50E+3\"",
    "\"[1]\"", "\"1 2\"", "\"0x1\"", "\"true\"", "\"e1\"", "\"..5\"", "\"+.5e-1\"",
};
/* clang-format on */
static const char *const numbers[] = {"0", "1", "2", "-1", "3", "10", "0.5", "-2", "-0.5"};
static const char *const wholes[] = {"0", "1", "2", "-1", "3", "-2"};
static const char *const names[] = {"a", "b", "c"};

#define PICK(prng, list) ((list)[rv_prng_below((prng), sizeof(list) / sizeof *(list))])

static void write_form(struct rv_prng *prng, struct rv_buf *buf, bool generator, unsigned depth)
{
    static const char *const leaves[] = {".", ".a", ".b", ".[0]?", ".[]?", "1", "\"a\"", "null"};
    const char *form = depth == 0  ? PICK(prng, leaves)
                       : generator ? PICK(prng, generators)
                                   : PICK(prng, forms);
    bool indexes = strchr(form, '[') != NULL;
    for (; *form != '\0'; form++) {
        if (*form != '%') {
            rv_buf_add_char(buf, *form);
            continue;
        }
        form++;
        if (*form == 'e' || *form == 'g')
            write_form(prng, buf, *form == 'g', depth - 1);
        else if (*form == 's')
            rv_buf_add_str(buf, rv_str_of(PICK(prng, strings)));
        else if (*form == 't')
            rv_buf_add_str(buf, rv_str_of(PICK(prng, texts)));
        else if (*form == 'k')
            rv_buf_add_str(buf, rv_str_of(PICK(prng, names)));
        else if (*form == 'n')
            rv_buf_add_str(buf, rv_str_of(indexes ? PICK(prng, wholes) : PICK(prng, numbers)));
        else
            rv_buf_add_char(buf, *form);
    }
}

static void write_input(struct rv_prng *prng, struct rv_buf *buf, unsigned depth)
{
    uint64_t kind = rv_prng_below(prng, depth == 0 ? 4 : 8);
    if (kind == 0)
        rv_buf_lit(buf, "null");
    else if (kind == 1)
        rv_buf_add_str(buf, rv_prng_below(prng, 2) ? RV_STR("true") : RV_STR("false"));
    else if (kind == 2)
        rv_buf_add_str(buf, rv_str_of(PICK(prng, wholes)));
    else if (kind == 3)
        rv_buf_add_str(buf, rv_str_of(PICK(prng, strings)));
    else {
        bool object = kind > 5;
        uint64_t count = rv_prng_below(prng, 4);
        rv_buf_add_char(buf, object ? '{' : '[');
        for (uint64_t i = 0; i < count; i++) {
            if (i > 0)
                rv_buf_add_char(buf, ',');
            if (object)
                rv_buf_printf(buf, "\"%s\":", names[i]);
            write_input(prng, buf, depth - 1);
        }
        rv_buf_add_char(buf, object ? '}' : ']');
    }
}

struct test_case {
    struct rv_str text;
    struct rv_str input;
};

static void make_case(struct rv_prng *prng, struct rv_arena *arena, struct test_case *ret_case)
{
    struct rv_buf buf;
    rv_buf_init(&buf, FILE_BYTES_MAX);
    unsigned depth = 1 + (unsigned)rv_prng_below(prng, DEPTH_MAX);
    write_form(prng, &buf, rv_prng_below(prng, 4) == 0, depth);
    ret_case->text = rv_arena_str(arena, rv_buf_str(&buf));
    rv_buf_reset(&buf);
    write_input(prng, &buf, 3);
    ret_case->input = rv_arena_str(arena, rv_buf_str(&buf));
    rv_buf_done(&buf);
}

static void write_file(const char *path, struct rv_str bytes)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes.at, 1, bytes.len, file), bytes.len);
    assert_int_equal(fclose(file), 0);
}

static void read_file(const char *path, struct rv_buf *buf)
{
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    for (size_t n = 1; n > 0; buf->len += n) {
        char *at = rv_buf_reserve(buf, 65536);
        assert_non_null(at);
        n = fread(at, 1, 65536, file);
    }
    fclose(file);
}

/* False when there is no jq. */
static bool run_jq(const char *program, const char *output)
{
    char *const argv[] = {(char[]){"jq"}, (char[]){"-nc"}, (char[]){"-f"},
                          (char *)(uintptr_t)program, NULL};
    posix_spawn_file_actions_t actions;
    pid_t pid;
    int status;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, output, O_WRONLY | O_CREAT | O_TRUNC,
                                     0600);
    int failed = posix_spawnp(&pid, "jq", &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (failed != 0)
        return false;
    while (waitpid(pid, &status, 0) < 0)
        assert_int_equal(errno, EINTR);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
        return false;
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        fail_msg("jq failed on %s (status %d)", program, status);
    return true;
}

/* One line for each case: {"o": outputs} or {"e": 1}. */
static void write_program(struct rv_buf *program, const struct test_case *cases)
{
    rv_buf_reset(program);
    for (int i = 0; i < CASES; i++)
        rv_buf_printf(program, "%s(%.*s | try {o: [limit(%d; %.*s)]} catch {e: 1})\n",
                      i > 0 ? "," : "", RV_STR_FMT(cases[i].input), OUTPUTS_MAX,
                      RV_STR_FMT(cases[i].text));
    assert_int_equal(program->failed, RV_OK);
}

/* A difference is printed; all of a run are worth seeing at once. */
static bool same_as_jq(const struct test_case *test_case, const struct rv_json *theirs)
{
    struct rv_arena arena;
    struct rv_expr *expr;
    struct rv_expr_fault fault;
    struct rv_expr_budget budget = {.fuel = RV_FUEL_PER_EXPRESSION};
    struct rv_json input, ours;
    rv_arena_init(&arena, RV_EXPRESSION_BYTES_MAX);
    struct rv_str text = rv_arena_printf(&arena, "[limit(%d; %.*s)]", OUTPUTS_MAX,
                                         RV_STR_FMT(test_case->text));
    if (rv_expr_compile(&arena, text, NULL, 0, &expr, &fault) != RV_OK)
        fail_msg("%.*s: %.*s", RV_STR_FMT(test_case->text), RV_STR_FMT(fault.message));
    assert_int_equal(rv_json_parse(&arena, test_case->input, 64, &input, NULL), RV_OK);
    enum rv_err err = rv_expr_eval(expr, &input, NULL, &budget, &arena, &ours, &fault);
    const struct rv_json *outputs = rv_json_get(theirs, RV_STR("o"));
    bool same = err == RV_OK ? outputs != NULL && rv_json_equal(&ours, outputs)
                             : err == RV_ERR_INVALID && outputs == NULL;
    if (!same) {
        struct rv_buf shown;
        rv_buf_init(&shown, FILE_BYTES_MAX);
        rv_json_write(&shown, theirs);
        rv_buf_lit(&shown, ", we ");
        if (err == RV_OK)
            rv_json_write(&shown, &ours);
        else
            rv_buf_add_str(&shown, fault.message);
        print_message("# %.*s of %.*s: jq gives %.*s\n", RV_STR_FMT(test_case->text),
                      RV_STR_FMT(test_case->input), RV_STR_FMT(rv_buf_str(&shown)));
        rv_buf_done(&shown);
    }
    rv_arena_done(&arena);
    return same;
}

static unsigned count_differences(const struct test_case *cases, struct rv_str lines)
{
    unsigned differences = 0;
    struct rv_arena arena;
    rv_arena_init(&arena, 0);
    for (int i = 0; i < CASES; i++) {
        const char *end = memchr(lines.at, '\n', lines.len);
        struct rv_json theirs;
        assert_non_null(end);
        struct rv_str line = {lines.at, (size_t)(end - lines.at)};
        assert_int_equal(rv_json_parse(&arena, line, 64, &theirs, NULL), RV_OK);
        differences += !same_as_jq(&cases[i], &theirs);
        lines.at += line.len + 1;
        lines.len -= line.len + 1;
    }
    assert_int_equal(lines.len, 0);
    rv_arena_done(&arena);
    return differences;
}

static void random_expressions_give_what_jq_gives(void **state)
{
    (void)state;
    const char *given = getenv("REEVE_SEED");
    uint64_t seed = given ? strtoull(given, NULL, 0) : 20261121;
    char program_path[] = "/tmp/reeve-oracle-XXXXXX";
    char output_path[] = "/tmp/reeve-oracle-XXXXXX";
    struct rv_prng prng;
    struct rv_buf program, output;
    bool there = true;
    unsigned differences = 0;
    print_message("# seed %llu\n", (unsigned long long)seed);
    close(mkstemp(program_path));
    close(mkstemp(output_path));
    rv_prng_init(&prng, seed);
    rv_buf_init(&program, FILE_BYTES_MAX);
    rv_buf_init(&output, FILE_BYTES_MAX);
    for (int i = 0; i < BATCHES && there; i++) {
        struct test_case cases[CASES];
        struct rv_arena arena;
        rv_arena_init(&arena, 0);
        for (int j = 0; j < CASES; j++)
            make_case(&prng, &arena, &cases[j]);
        write_program(&program, cases);
        write_file(program_path, rv_buf_str(&program));
        there = run_jq(program_path, output_path);
        rv_buf_reset(&output);
        if (there) {
            read_file(output_path, &output);
            differences += count_differences(cases, rv_buf_str(&output));
        }
        rv_arena_done(&arena);
    }
    unlink(program_path);
    unlink(output_path);
    rv_buf_done(&program);
    rv_buf_done(&output);
    if (!there) {
        print_message("# no jq program on this machine\n");
        skip();
    }
    assert_int_equal(differences, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_expressions_give_what_jq_gives),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
