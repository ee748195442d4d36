#include "workflow.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BYTES_MAX = 64 * 1024, NAME_BYTES = 64, PATH_BYTES = 4096 };

/* What was read before. */
static struct text {
    char name[NAME_BYTES];
    char bytes[BYTES_MAX];
    struct text *next;
} * texts;

static void fail(const char *path)
{
    perror(path);
    abort();
}

const char *workflow_file(const char *name)
{
    for (const struct text *text = texts; text != NULL; text = text->next)
        if (strcmp(text->name, name) == 0)
            return text->bytes;
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%s/%s.yaml", WORKFLOWS_FOLDER, name);
    FILE *file = fopen(path, "r");
    struct text *text = calloc(1, sizeof *text);
    if (file == NULL || text == NULL || strlen(name) >= NAME_BYTES)
        fail(path);
    size_t len = fread(text->bytes, 1, BYTES_MAX, file);
    if (len == 0 || len == BYTES_MAX || ferror(file))
        fail(path);
    fclose(file);
    snprintf(text->name, sizeof text->name, "%s", name);
    text->next = texts;
    texts = text;
    return text->bytes;
}
