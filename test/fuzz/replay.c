/* Runs one fuzz target over every file of a folder: what libFuzzer once found stays fixed, and gcc
 * suffices to hold it. One TAP result a file; a crash ends the program and so breaks its plan. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int is_seed(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

/* Gives the target exactly as many bytes as the file has, so that ASan sees one byte too far. */
static int replay(const char *folder, const char *name)
{
    char path[4096];
    int length = snprintf(path, sizeof path, "%s/%s", folder, name);
    if (length < 0 || (size_t)length >= sizeof path)
        return -1;
    FILE *file = fopen(path, "rb");
    if (file == NULL)
        return -1;
    int result = -1;
    if (fseek(file, 0, SEEK_END) == 0) {
        long bytes = ftell(file);
        uint8_t *data = bytes < 0 ? NULL : malloc(bytes > 0 ? (size_t)bytes : 1);
        rewind(file);
        if (data != NULL && fread(data, 1, (size_t)bytes, file) == (size_t)bytes)
            result = LLVMFuzzerTestOneInput(data, (size_t)bytes);
        free(data);
    }
    fclose(file);
    return result;
}

int main(int argc, char **argv)
{
    struct dirent **seeds = NULL;
    int count = argc == 2 ? scandir(argv[1], &seeds, is_seed, alphasort) : -1;
    if (count <= 0) {
        printf("1..1\nnot ok 1 - no seed in %s\n", argc == 2 ? argv[1] : "(no folder named)");
        return 1;
    }
    int failed = 0;
    printf("1..%d\n", count);
    for (int i = 0; i < count; i++) {
        printf("# %s\n", seeds[i]->d_name);
        fflush(stdout);
        int result = replay(argv[1], seeds[i]->d_name);
        printf("%sok %d - %s\n", result == 0 ? "" : "not ", i + 1, seeds[i]->d_name);
        failed += result != 0;
        free(seeds[i]);
    }
    free(seeds);
    return failed != 0;
}
