/* The DSL's own material: its examples load or are refused as not supported, its invalid fixtures
 * are refused, and the scenarios of its conformance kit that need no unsupported part run. */
#include "flow_kit.h"

#include "base/buf.h"
#include "base/limits.h"
#include "yaml/yaml.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static char root[1024];

static bool find_root(void)
{
    const char *given = getenv("REEVE_OPEN_WORKFLOW");
    const char *source = getenv("REEVE_SOURCE");
    if (given != NULL)
        snprintf(root, sizeof root, "%s", given);
    else
        snprintf(root, sizeof root, "%s/../shared/open-workflow", source ? source : ".");
    DIR *dir = opendir(root);
    if (dir == NULL)
        return false;
    closedir(dir);
    return true;
}

static char *read_text(const char *folder, const char *name)
{
    char path[2048];
    snprintf(path, sizeof path, "%s/%s/%s", root, folder, name);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    char *text = calloc(1, RV_DEFINITION_BYTES_MAX);
    assert_non_null(text);
    assert_true(fread(text, 1, RV_DEFINITION_BYTES_MAX - 1, file) > 0);
    fclose(file);
    return text;
}

/* Calls `each` for the files of a folder, by name; how many there were. */
static size_t for_each(const char *folder, const char *ending,
                       void (*each)(const char *folder, const char *name))
{
    char path[2048];
    snprintf(path, sizeof path, "%s/%s", root, folder);
    struct dirent **entries = NULL;
    int count = scandir(path, &entries, NULL, alphasort);
    assert_true(count >= 0);
    size_t seen = 0;
    for (int i = 0; i < count; i++) {
        const char *name = entries[i]->d_name;
        size_t len = strlen(name);
        if (len > strlen(ending) && strcmp(name + len - strlen(ending), ending) == 0) {
            each(folder, name);
            seen++;
        }
        free(entries[i]);
    }
    free(entries);
    return seen;
}

static size_t examples_loaded;

static void load_example(const char *folder, const char *name)
{
    static struct kit kit;
    char *text = read_text(folder, name);
    if (kit_load(&kit, text)) {
        examples_loaded++;
    } else {
        const char *told = kit_text(&kit, kit.fault.message);
        if (kit.err != RV_ERR_UNSUPPORTED || strstr(told, "(around)") != NULL)
            print_error("%s: %s\n", name, told);
        assert_int_equal(kit.err, RV_ERR_UNSUPPORTED);
        assert_true(kit.fault.unsupported);
        assert_null(strstr(told, "(around)"));
    }
    kit_done(&kit);
    free(text);
}

static void test_examples(void **state)
{
    (void)state;
    assert_in_range(for_each("examples", ".yaml", load_example), 40, 1000);
    assert_in_range(examples_loaded, 5, 1000);
}

static void refuse_invalid(const char *folder, const char *name)
{
    static struct kit kit;
    char *text = read_text(folder, name);
    bool taken = kit_load(&kit, text);
    if (taken || kit.err != RV_ERR_INVALID)
        print_error("%s: %d\n", name, (int)kit.err);
    assert_false(taken);
    assert_int_equal(kit.err, RV_ERR_INVALID);
    kit_done(&kit);
    free(text);
}

static void test_invalid(void **state)
{
    (void)state;
    assert_in_range(for_each("invalid", ".yaml", refuse_invalid), 3, 1000);
}

enum { SCENARIOS_MAX = 100, LINES_MAX = 100 };

/* One line of a scenario with the text block below it, if any. */
struct line {
    char *text;
    char *block; /* NULL: none */
};

struct scenario {
    char name[320];
    bool supported;
    bool calls; /* it needs an HTTP server: test/e2e runs it */
    struct line lines[LINES_MAX];
    size_t count;
};

static struct scenario scenarios[SCENARIOS_MAX];
static size_t scenarios_count;

static char *trimmed(char *line)
{
    while (*line == ' ')
        line++;
    size_t len = strlen(line);
    while (len > 0 && (line[len - 1] == ' ' || line[len - 1] == '\r'))
        line[--len] = '\0';
    return line;
}

/* A text block between lines of three quotes, without its indentation; *next moves behind it. */
static char *read_block(char **next, size_t indent)
{
    struct rv_buf block;
    rv_buf_init(&block, RV_DEFINITION_BYTES_MAX);
    char *line;
    while ((line = strsep(next, "\n")) != NULL && strncmp(trimmed(line), "\"\"\"", 3) != 0) {
        size_t n = strspn(line, " ");
        rv_buf_printf(&block, "%s\n", line + (n < indent ? n : indent));
    }
    rv_buf_add_char(&block, '\0');
    return block.at; /* lives as long as the program */
}

static void read_feature(const char *folder, const char *name)
{
    char *text = read_text(folder, name);
    struct scenario *scenario = NULL;
    for (char *next = text, *line; (line = strsep(&next, "\n")) != NULL;) {
        size_t indent = strspn(line, " ");
        char *words = trimmed(line);
        if (strncmp(words, "Scenario:", 9) == 0) {
            assert_true(scenarios_count < SCENARIOS_MAX);
            scenario = &scenarios[scenarios_count++];
            snprintf(scenario->name, sizeof scenario->name, "%s %s", name, words + 10);
        } else if (scenario == NULL || *words == '#' || *words == '\0') {
            continue;
        } else if (strncmp(words, "\"\"\"", 3) == 0) {
            assert_true(scenario->count > 0);
            scenario->lines[scenario->count - 1].block = read_block(&next, indent);
        } else {
            assert_true(scenario->count < LINES_MAX);
            scenario->lines[scenario->count++].text = strdup(words);
        }
    }
    free(text);
}

static char *yaml_to_json(const char *yaml)
{
    struct rv_arena arena;
    rv_arena_init(&arena, 0);
    struct rv_json value;
    struct rv_yaml_fault fault;
    assert_int_equal(
        rv_yaml_parse(&arena, rv_str_of(yaml), RV_DEFINITION_BYTES_MAX, &value, &fault), RV_OK);
    struct rv_buf buf;
    rv_buf_init(&buf, RV_DEFINITION_BYTES_MAX);
    rv_json_write(&buf, &value);
    rv_buf_add_char(&buf, '\0');
    rv_arena_done(&arena);
    return buf.at;
}

/* Where in the order of runs the task of that name stands: 0 is the first, -1 nowhere. */
static int position(const struct kit *kit, const char *name, size_t len, int *ret_last)
{
    int found = -1;
    int n = 0;
    for (const char *at = kit->trace; (at = strstr(at, "\"/")) != NULL; n++) {
        const char *end = strchr(at + 1, '"');
        if ((size_t)(end - at) > len && memcmp(end - len, name, len) == 0 && end[-len - 1] == '/')
            found = n;
        at = end + 1;
    }
    *ret_last = n - 1;
    return found;
}

static void check_order(const struct kit *kit, const char *words)
{
    const char *should = strstr(words, " should run ");
    assert_non_null(should);
    int last;
    int at = position(kit, words, (size_t)(should - words), &last);
    const char *when = should + strlen(" should run ");
    assert_true(at >= 0);
    if (strcmp(when, "first") == 0) {
        assert_int_equal(at, 0);
    } else if (strcmp(when, "last") == 0) {
        assert_int_equal(at, last);
    } else {
        assert_memory_equal(when, "after ", 6);
        assert_true(position(kit, when + 6, strlen(when + 6), &last) < at);
    }
}

static void check_line(struct kit *kit, const struct line *line)
{
    const char *words = line->text;
    words += strncmp(words, "Then ", 5) == 0 ? 5 : strncmp(words, "And ", 4) == 0 ? 4 : 0;
    char *json = line->block != NULL ? yaml_to_json(line->block) : NULL;
    if (strncmp(words, "the workflow should complete with output", 40) == 0) {
        kit_expect_output(kit, json);
    } else if (strcmp(words, "the workflow should complete") == 0) {
        assert_int_equal(kit->stop.kind, RV_FLOW_DONE);
    } else if (strncmp(words, "the workflow should fault with error", 36) == 0) {
        kit_expect_error(kit, json);
    } else if (strcmp(words, "the workflow should fault") == 0) {
        assert_int_equal(kit->stop.kind, RV_FLOW_RAISED);
    } else {
        check_order(kit, words);
    }
    free(json);
}

/* The block of the line that has these words, or NULL. */
static const char *block_of(const struct scenario *scenario, const char *words)
{
    for (size_t i = 0; i < scenario->count; i++) {
        if (strstr(scenario->lines[i].text, words) != NULL)
            return scenario->lines[i].block;
    }
    return NULL;
}

/* Tells by its name what becomes of a scenario: it runs, or its definition is refused. */
static void sort_scenario(struct scenario *scenario)
{
    static struct kit kit;
    scenario->supported = kit_load(&kit, block_of(scenario, "with definition"));
    for (uint32_t n = 1; scenario->supported && n <= rv_definition_nodes(kit.definition); n++)
        scenario->calls = scenario->calls || rv_definition_endpoint(kit.definition, n).at != NULL;
    size_t len = strlen(scenario->name);
    if (!scenario->supported)
        snprintf(scenario->name + len, sizeof scenario->name - len,
                 " (refused: not supported yet)");
    else if (scenario->calls)
        snprintf(scenario->name + len, sizeof scenario->name - len,
                 " (loads; e2e/open_workflow runs it)");
    kit_done(&kit);
}

static void test_scenario(void **state)
{
    const struct scenario *scenario = *state;
    static struct kit kit;
    const char *given = block_of(scenario, "input is");
    char *input = given != NULL ? yaml_to_json(given) : NULL;
    assert_int_equal(kit_load(&kit, block_of(scenario, "with definition")), scenario->supported);
    size_t i = 0;
    while (i < scenario->count && strncmp(scenario->lines[i].text, "When", 4) != 0)
        i++;
    if (scenario->supported && !scenario->calls) {
        kit_run(&kit, input != NULL ? input : "{}");
        for (i++; i < scenario->count; i++)
            check_line(&kit, &scenario->lines[i]);
    } else if (!scenario->supported) {
        assert_int_equal(kit.err, RV_ERR_UNSUPPORTED);
    }
    kit_done(&kit);
    free(input);
}

static void test_scenarios(void **state)
{
    (void)state;
    size_t supported = 0;
    for (size_t i = 0; i < scenarios_count; i++)
        supported += scenarios[i].supported;
    assert_in_range(supported, 14, scenarios_count);
}

int main(void)
{
    if (!find_root()) {
        printf("1..0 # SKIP the DSL's examples and conformance kit are not at %s; "
               "set REEVE_OPEN_WORKFLOW\n",
               root);
        return 0;
    }
    static struct CMUnitTest tests[SCENARIOS_MAX + 3];
    tests[0] = (struct CMUnitTest)cmocka_unit_test(test_examples);
    tests[1] = (struct CMUnitTest)cmocka_unit_test(test_invalid);
    tests[2] = (struct CMUnitTest)cmocka_unit_test(test_scenarios);
    for_each("ctk/features", ".feature", read_feature);
    for (size_t i = 0; i < scenarios_count; i++) {
        sort_scenario(&scenarios[i]);
        tests[i + 3] = (struct CMUnitTest){
            .name = scenarios[i].name, .test_func = test_scenario, .initial_state = &scenarios[i]};
    }
    return _cmocka_run_group_tests("open_workflow", tests, scenarios_count + 3, NULL, NULL);
}
