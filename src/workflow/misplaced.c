/* What the DSL permits but nothing reads: Reeve's properties at a wrong level, members that $undo
 * does not have, types of errors that do not exist. Publication refuses them, since a saga whose
 * undo was written in the wrong place fails only when it is needed. Definitions in a store keep
 * them. */
#include "base/suggest.h"
#include "workflow/load_priv.h"

static const char *const reeve_keys[] = {"compensate", "completeBy", "failures", "lease",
                                         "noEffect",   "pivot",      NULL};

static const char *reeve_key(struct rv_str key)
{
    for (size_t i = 0; reeve_keys[i] != NULL; i++) {
        if (rv_str_is(key, reeve_keys[i]))
            return reeve_keys[i];
    }
    return NULL;
}

static bool holds_reeve_key(const struct rv_json *object)
{
    for (uint32_t i = 0; object->type == RV_JSON_OBJECT && i < object->len; i++) {
        if (reeve_key(rv_json_str(&object->u.members[i].key)) != NULL)
            return true;
    }
    return false;
}

enum rv_err rv_load_metadata(struct rv_load *load, const struct rv_json *metadata)
{
    static const char *const names[] = {"reeve", NULL};
    size_t path = load->path.len;
    for (uint32_t i = 0; i < metadata->len && !load->published; i++) {
        const struct rv_json_member *member = &metadata->u.members[i];
        struct rv_str key = rv_json_str(&member->key);
        const char *meant = reeve_key(key);
        enum rv_err err = RV_OK;
        if (meant != NULL)
            err = rv_load_invalid_name(
                load, key,
                "%s has no effect directly under metadata; write it under metadata.reeve", meant);
        else if (!rv_str_is(key, "reeve") && rv_suggest(key, names) != NULL &&
                 holds_reeve_key(&member->value))
            err = rv_load_invalid_name(load, key,
                                       "unknown property \"%.*s\" under metadata; "
                                       "did you mean \"reeve\"?",
                                       RV_STR_FMT(key));
        RV_TRY(rv_load_past(load, err, path));
    }
    return RV_OK;
}

const char *rv_load_level_of(struct rv_str key)
{
    if (reeve_key(key) != NULL)
        return "metadata.reeve";
    return rv_str_is(key, "reeve") ? "metadata" : NULL;
}

enum rv_err rv_load_with_metadata(struct rv_load *load, const struct rv_json *with)
{
    const struct rv_json *reeve = rv_json_at(with, RV_STR("/metadata/reeve"));
    if (reeve == NULL || load->published || !holds_reeve_key(reeve))
        return RV_OK;
    size_t path = load->path.len;
    (void)rv_load_push(load, RV_STR("with"));
    enum rv_err err = rv_load_invalid_name(load, RV_STR("metadata"),
                                           "metadata.reeve has no effect under `with`, which is "
                                           "the agent's input; indent it one level less, beside "
                                           "`call`");
    return rv_load_past(load, err, path);
}

/* ---- $undo ---- */

static bool is_name_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* Strings of jq, with the interpolations in them, as far as they decide what is text. */
enum { NESTED_MAX = 32 };
struct misplaced_lexer {
    bool in_string;
    unsigned nested;             /* interpolations that are open */
    unsigned parens[NESTED_MAX]; /* open parentheses in each */
};

/* Moves over one character; false when it is text or the string nests too deep. */
static bool lexer_code(struct misplaced_lexer *lexer, struct rv_str jq, size_t *at)
{
    rv_assert(*at < jq.len);
    rv_assert(lexer->nested < NESTED_MAX);
    char c = jq.at[*at];
    if (lexer->in_string) {
        if (c == '\\' && *at + 1 < jq.len) {
            (*at)++;
            if (jq.at[*at] == '(' && lexer->nested + 1 < NESTED_MAX) {
                lexer->parens[++lexer->nested] = 0;
                lexer->in_string = false;
            }
        } else if (c == '"') {
            lexer->in_string = false;
        }
        return false;
    }
    if (c == '"') {
        lexer->in_string = true;
    } else if (c == '(') {
        lexer->parens[lexer->nested]++;
    } else if (c == ')' && lexer->nested > 0 && lexer->parens[lexer->nested] == 0) {
        lexer->nested--;
        lexer->in_string = true;
    } else if (c == ')' && lexer->parens[lexer->nested] > 0) {
        lexer->parens[lexer->nested]--;
    }
    return true;
}

/* The member that `$undo.name` or `$undo["name"]` names, when it begins there. */
static bool undo_member(struct rv_str rest, struct rv_str *ret_name)
{
    static const char opening[] = "$undo";
    size_t at = sizeof opening - 1;
    if (rest.len <= at + 1 || memcmp(rest.at, opening, at) != 0)
        return false;
    bool bracket = rest.len > at + 2 && rest.at[at] == '[' && rest.at[at + 1] == '"';
    bool quoted = rest.len > at + 2 && rest.at[at] == '.' && rest.at[at + 1] == '"';
    if (!bracket && rest.at[at] != '.')
        return false;
    at += bracket || quoted ? 2 : 1;
    size_t end = at;
    while (end < rest.len && is_name_char(rest.at[end]))
        end++;
    *ret_name = (struct rv_str){rest.at + at, end - at};
    return end > at && (!(bracket || quoted) || (end < rest.len && rest.at[end] == '"'));
}

enum rv_err rv_load_undo_members(struct rv_load *load, struct rv_str jq, size_t offset)
{
    static const char *const members[] = {"outcome",        "input", "output",
                                          "idempotencyKey", "fence", NULL};
    struct misplaced_lexer lexer = {0};
    for (size_t at = 0; at < jq.len && !load->published; at++) {
        size_t from = at;
        struct rv_str name;
        if (!lexer_code(&lexer, jq, &at) ||
            !undo_member((struct rv_str){jq.at + from, jq.len - from}, &name))
            continue;
        size_t i = 0;
        while (members[i] != NULL && !rv_str_is(name, members[i]))
            i++;
        if (members[i] != NULL)
            continue;
        const char *near = rv_str_is(name, "key") ? "idempotencyKey" : rv_suggest(name, members);
        enum rv_err err = rv_load_invalid(load, NULL,
                                          "$undo has no member \"%.*s\"; %s%s%soutcome, input, "
                                          "output, idempotencyKey and fence",
                                          RV_STR_FMT(name), near ? "did you mean $undo." : "",
                                          near ? near : "", near ? "? It has " : "it has ");
        rv_assert(name.at > jq.at);
        load->fault->offset = offset + (size_t)(name.at - jq.at);
        return err;
    }
    return RV_OK;
}

/* ---- types of errors ---- */

enum rv_err rv_load_error_type(struct rv_load *load, struct rv_str type)
{
    struct rv_str name = rv_error_standard_name(type);
    if (load->published || name.at == NULL)
        return RV_OK;
    const char *const *known = rv_error_standard_names();
    size_t i = 0;
    while (known[i] != NULL && !rv_str_is(name, known[i]))
        i++;
    const char *near = rv_suggest(name, known);
    if (known[i] != NULL || near == NULL)
        return RV_OK;
    return rv_load_invalid(load, NULL,
                           "no standard error has the type \"%.*s\", so this filter matches "
                           "nothing; did you mean \"%s\"?",
                           RV_STR_FMT(name), near);
}
