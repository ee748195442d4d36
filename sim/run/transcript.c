#include "sim/run/transcript.h"

#include "base/assert.h"

#include <stdlib.h>
#include <string.h>

/* Columns of a line: the instant, then who speaks. */
enum { SPEAKER_AT = 14 };

static bool speaks(const char *line, const char *speaker)
{
    return strlen(line) > SPEAKER_AT && strncmp(line + SPEAKER_AT, speaker, strlen(speaker)) == 0;
}

/* What happens to a server or to the store happens to every task; what they do for another task
 * does not. */
static bool matters(const char *line, const char *task)
{
    if (task[0] == '\0' || strstr(line, task) != NULL)
        return true;
    if (speaks(line, "world") || speaks(line, "VIOLATED"))
        return strstr(line, " workflow ") == NULL;
    bool common = speaks(line, "server") || speaks(line, "store");
    return common && strstr(line, " task ") == NULL && strstr(line, " step ") == NULL &&
           strstr(line, " poll ") == NULL && strstr(line, "\"task\"") == NULL;
}

void transcript_tail(FILE *in, const char *task, size_t lines, const char *before, FILE *out)
{
    long *starts = calloc(lines, sizeof *starts);
    rv_assert(starts != NULL);
    char *line = NULL;
    size_t room = 0, count = 0;
    rewind(in);
    for (long at = 0; getline(&line, &room, in) >= 0; at = ftell(in))
        if (matters(line, task))
            starts[count++ % lines] = at;
    for (size_t i = count > lines ? count - lines : 0; i < count; i++) {
        if (fseek(in, starts[i % lines], SEEK_SET) == 0 && getline(&line, &room, in) >= 0)
            fprintf(out, "%s%s", before, line);
    }
    free(line);
    free(starts);
}

bool transcript_same(FILE *wanted, FILE *got, size_t skip, const char *before, FILE *out)
{
    char *a = NULL, *b = NULL;
    size_t a_room = 0, b_room = 0;
    bool same = true;
    rewind(wanted);
    rewind(got);
    for (size_t number = 1; same; number++) {
        ssize_t a_len = getline(&a, &a_room, wanted), b_len = getline(&b, &b_room, got);
        if (a_len < 0 && b_len < 0)
            break;
        same = number <= skip || (a_len == b_len && strcmp(a, b) == 0);
        if (!same)
            fprintf(out, "%sline %zu: %s%sbut here: %s", before, number,
                    a_len < 0 ? "is not there\n" : a, before, b_len < 0 ? "nothing\n" : b);
    }
    free(a);
    free(b);
    return same;
}
