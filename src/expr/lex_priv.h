/* lex_priv.h - the words of an expression, one at a time. */
#ifndef RV_EXPR_LEX_PRIV_H
#define RV_EXPR_LEX_PRIV_H

#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>

enum token_kind {
    TOKEN_END,
    TOKEN_NAME,     /* a name or keyword */
    TOKEN_FIELD,    /* .name; `text` without the dot */
    TOKEN_VARIABLE, /* $name; `text` without the dollar */
    TOKEN_FORMAT,   /* @name; `text` with the @ */
    TOKEN_NUMBER,
    TOKEN_QUOTE,  /* the start of a string; lex_string reads on */
    TOKEN_SIGN,   /* an operator or a bracket */
    TOKEN_UNKNOWN /* a character that no expression holds */
};

struct token {
    enum token_kind kind;
    size_t offset;
    struct rv_str text;
};

struct lexer {
    struct rv_str text;
    size_t next;
};

struct token lex_next(struct lexer *lexer);

/* How a piece of a string ended. */
enum string_end { STRING_CLOSED, STRING_EXPRESSION, STRING_BAD_ESCAPE, STRING_UNTERMINATED };

/* How many bytes the piece has at most that lex_string reads next. */
size_t lex_string_room(const struct lexer *lexer);
/* Reads on inside a string, up to its closing quote or "\(", which is passed. `bytes` has that
 * room; *ret_len says how much was written. On the two errors `next` stands at the offending byte.
 */
enum string_end lex_string(struct lexer *lexer, char *bytes, size_t *ret_len);

#endif
