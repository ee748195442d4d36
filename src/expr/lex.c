#include "expr/lex_priv.h"

#include "expr/utf8_priv.h"

#include <stdint.h>

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_name_start(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_name(char c)
{
    return is_name_start(c) || is_digit(c);
}

static char char_at(const struct lexer *lexer, size_t at)
{
    return at < lexer->text.len ? lexer->text.at[at] : '\0';
}

static void skip_blank(struct lexer *lexer)
{
    for (; lexer->next < lexer->text.len; lexer->next++) {
        char c = lexer->text.at[lexer->next];
        if (c == '#') {
            while (lexer->next < lexer->text.len && lexer->text.at[lexer->next] != '\n')
                lexer->next++;
        } else if (c != ' ' && c != '\t' && c != '\n' && c != '\r') {
            return;
        }
    }
}

/* A name may hold "::" between its parts, as those of modules do. */
static size_t name_end(const struct lexer *lexer, size_t at)
{
    for (;;) {
        while (is_name(char_at(lexer, at)))
            at++;
        if (char_at(lexer, at) != ':' || char_at(lexer, at + 1) != ':' ||
            !is_name_start(char_at(lexer, at + 2)))
            return at;
        at += 2;
    }
}

static size_t number_end(const struct lexer *lexer, size_t at)
{
    while (is_digit(char_at(lexer, at)))
        at++;
    if (char_at(lexer, at) == '.') {
        at++;
        while (is_digit(char_at(lexer, at)))
            at++;
    }
    char e = char_at(lexer, at);
    if (e == 'e' || e == 'E') {
        char sign = char_at(lexer, at + 1);
        size_t digits = at + (sign == '+' || sign == '-' ? 2 : 1);
        if (is_digit(char_at(lexer, digits))) {
            at = digits;
            while (is_digit(char_at(lexer, at)))
                at++;
        }
    }
    return at;
}

/* Longest first. */
static size_t sign_len(const struct lexer *lexer, size_t at)
{
    static const char signs[][4] = {
        "//=", "|=", "+=", "-=", "*=", "/=", "%=", "==", "!=", "<=", ">=", "//", ".."};
    for (size_t i = 0; i < sizeof signs / sizeof signs[0]; i++) {
        size_t len = strlen(signs[i]);
        if (lexer->text.len - at >= len && memcmp(lexer->text.at + at, signs[i], len) == 0)
            return len;
    }
    return strchr(".[]{}()|,:;=<>+-*/%?", lexer->text.at[at]) && lexer->text.at[at] != '\0';
}

static struct token token_upto(struct lexer *lexer, enum token_kind kind, size_t start, size_t skip,
                               size_t end)
{
    lexer->next = end;
    return (struct token){kind, start, {lexer->text.at + start + skip, end - start - skip}};
}

struct token lex_next(struct lexer *lexer)
{
    skip_blank(lexer);
    size_t at = lexer->next;
    if (at >= lexer->text.len)
        return (struct token){TOKEN_END, lexer->text.len, {"", 0}};
    char c = lexer->text.at[at];
    char after = char_at(lexer, at + 1);
    if (is_name_start(c))
        return token_upto(lexer, TOKEN_NAME, at, 0, name_end(lexer, at));
    if (is_digit(c) || (c == '.' && is_digit(after)))
        return token_upto(lexer, TOKEN_NUMBER, at, 0, number_end(lexer, at));
    if (c == '"')
        return token_upto(lexer, TOKEN_QUOTE, at, 0, at + 1);
    if (c == '.' && is_name_start(after)) {
        size_t end = at + 1;
        while (is_name(char_at(lexer, end)))
            end++;
        return token_upto(lexer, TOKEN_FIELD, at, 1, end);
    }
    if (c == '$' && is_name_start(after))
        return token_upto(lexer, TOKEN_VARIABLE, at, 1, name_end(lexer, at + 1));
    if (c == '@' && is_name(after)) {
        size_t end = at + 1;
        while (is_name(char_at(lexer, end)))
            end++;
        return token_upto(lexer, TOKEN_FORMAT, at, 0, end);
    }
    size_t sign = sign_len(lexer, at);
    if (sign > 0)
        return token_upto(lexer, TOKEN_SIGN, at, 0, at + sign);
    size_t end = at + 1;
    while (end < lexer->text.len && ((unsigned char)lexer->text.at[end] & 0xC0) == 0x80)
        end++;
    return token_upto(lexer, TOKEN_UNKNOWN, at, 0, end);
}

static bool lex_hex4(const struct lexer *lexer, size_t at, uint32_t *ret_code)
{
    uint32_t code = 0;
    for (size_t i = 0; i < 4; i++) {
        int digit = rv_hex_digit(char_at(lexer, at + i));
        if (digit < 0)
            return false;
        code = code * 16 + (uint32_t)digit;
    }
    *ret_code = code;
    return true;
}

/* \uXXXX at `next` (the backslash); two of them when they are a surrogate pair. */
static bool lex_unicode(struct lexer *lexer, char *bytes, size_t *len)
{
    uint32_t code;
    if (!lex_hex4(lexer, lexer->next + 2, &code))
        return false;
    size_t used = 6;
    if (code >= 0xD800 && code < 0xDC00) {
        uint32_t low;
        if (char_at(lexer, lexer->next + 6) != '\\' || char_at(lexer, lexer->next + 7) != 'u' ||
            !lex_hex4(lexer, lexer->next + 8, &low) || low < 0xDC00 || low > 0xDFFF)
            return false;
        code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
        used = 12;
    } else if (code >= 0xDC00 && code <= 0xDFFF) {
        return false;
    }
    *len += utf8_put(bytes + *len, code);
    lexer->next += used;
    return true;
}

size_t lex_string_room(const struct lexer *lexer)
{
    size_t at = lexer->next;
    while (at < lexer->text.len && lexer->text.at[at] != '"') {
        bool escape = lexer->text.at[at] == '\\';
        if (escape && char_at(lexer, at + 1) == '(')
            break;
        at += escape ? 2 : 1;
    }
    return at - lexer->next; /* what is written is never longer than its escape */
}

enum string_end lex_string(struct lexer *lexer, char *bytes, size_t *ret_len)
{
    static const char names[] = "\"\\/bfnrt";
    static const char meant[] = "\"\\/\b\f\n\r\t";
    size_t len = 0;
    while (lexer->next < lexer->text.len) {
        char c = lexer->text.at[lexer->next];
        if (c == '"' || (c == '\\' && char_at(lexer, lexer->next + 1) == '(')) {
            lexer->next += c == '"' ? 1 : 2;
            *ret_len = len;
            return c == '"' ? STRING_CLOSED : STRING_EXPRESSION;
        }
        if (c != '\\') {
            bytes[len++] = c;
            lexer->next++;
            continue;
        }
        char escaped = char_at(lexer, lexer->next + 1);
        const char *found = escaped ? strchr(names, escaped) : NULL;
        if (found != NULL) {
            bytes[len++] = meant[found - names];
            lexer->next += 2;
        } else if (escaped != 'u' || !lex_unicode(lexer, bytes, &len)) {
            return STRING_BAD_ESCAPE;
        }
    }
    return STRING_UNTERMINATED;
}
