#include "base/str.h"

#include <stdlib.h>

char *rv_str_dup(struct rv_str text)
{
    char *copy = malloc(text.len + 1);
    if (copy == NULL)
        return NULL;
    if (text.len > 0)
        memcpy(copy, text.at, text.len);
    copy[text.len] = '\0';
    return copy;
}

void rv_percent_encode(char c, char ret_text[RV_PERCENT_BYTES])
{
    static const char digits[] = "0123456789ABCDEF";
    unsigned char byte = (unsigned char)c;
    bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                 c == '-' || c == '.' || c == '_' || c == '~';
    memcpy(ret_text, plain ? (char[]){c, '\0', '\0', '\0'}
                           : (char[]){'%', digits[byte >> 4], digits[byte & 15], '\0'},
           RV_PERCENT_BYTES);
}
