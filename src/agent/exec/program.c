#include "agent/exec/program.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* As much as the kernel reads of a first line. */
enum { HEAD_BYTES = 256 };

/* ---- the file ---- */

static const char *access_wrong(struct rv_arena *arena, const char *path, const struct stat *about)
{
    if (S_ISDIR(about->st_mode))
        return rv_arena_printf(arena, "%s is a directory; give the path of a program", path).at;
    if (!S_ISREG(about->st_mode))
        return rv_arena_printf(arena, "%s is not a regular file; give the path of a program", path)
            .at;
    if (access(path, X_OK) == 0)
        return NULL;
    if ((about->st_mode & (S_IXUSR | S_IXGRP | S_IXOTH)) == 0)
        return rv_arena_printf(arena, "%s is not executable; run chmod +x %s", path, path).at;
    return rv_arena_printf(arena,
                           "%s: the user of this process has no permission to execute the file; "
                           "check the owner and the mode of the file (ls -l), and check whether "
                           "the file system is mounted with noexec",
                           path)
        .at;
}

static const char *path_wrong(struct rv_arena *arena, const char *path, int number)
{
    const char *cure = number == EACCES
                           ? "a folder in the path is not searchable; run chmod +x on that folder"
                       : strchr(path, ' ') != NULL
                           ? "give the command and its arguments as separate words"
                           : "check the path";
    return rv_arena_printf(arena, "%s: %s; %s", path, strerrordesc_np(number), cure).at;
}

/* ---- its first line ---- */

/* The next word; blanks are space and tab, as for the kernel. */
static struct rv_str word_take(struct rv_str *line)
{
    while (line->len > 0 && (line->at[0] == ' ' || line->at[0] == '\t'))
        *line = (struct rv_str){line->at + 1, line->len - 1};
    struct rv_str word = {line->at, 0};
    while (word.len < line->len && word.at[word.len] != ' ' && word.at[word.len] != '\t')
        word.len++;
    *line = (struct rv_str){line->at + word.len, line->len - word.len};
    return word;
}

static bool file_runs(const char *path)
{
    struct stat about;
    return path != NULL && stat(path, &about) == 0 && S_ISREG(about.st_mode) &&
           access(path, X_OK) == 0;
}

/* As "env" looks for it. */
static bool search_finds(struct rv_arena *arena, struct rv_str name, const char *search)
{
    if (memchr(name.at, '/', name.len) != NULL)
        return file_runs(rv_arena_str(arena, name).at);
    for (const char *at = search; at != NULL;) {
        size_t len = strcspn(at, ":");
        if (file_runs(rv_arena_printf(arena, "%.*s%s%.*s", (int)len, at, len > 0 ? "/" : "./",
                                      RV_STR_FMT(name))
                          .at))
            return true;
        at = at[len] == ':' ? at + len + 1 : NULL;
    }
    return false;
}

static bool is_env(struct rv_str path)
{
    static const char env[] = "/env";
    return path.len >= sizeof env - 1 &&
           memcmp(path.at + path.len - (sizeof env - 1), env, sizeof env - 1) == 0;
}

/* `line`: what follows "#!", without its line end. */
static const char *line_wrong(struct rv_arena *arena, const char *path, struct rv_str line,
                              const char *search)
{
    struct rv_str interpreter = word_take(&line);
    struct rv_str name = word_take(&line);
    if (interpreter.len == 0)
        return rv_arena_printf(arena,
                               "%s: the first line names no interpreter; write #! and the path of "
                               "the interpreter, such as #!/bin/sh",
                               path)
            .at;
    if (!file_runs(rv_arena_str(arena, interpreter).at))
        return rv_arena_printf(arena,
                               "%s: the interpreter %.*s does not exist or is not executable; "
                               "install it or change the first line",
                               path, RV_STR_FMT(interpreter))
            .at;
    /* Options and variables of env are its own affair. */
    if (!is_env(interpreter) || name.len == 0 || name.at[0] == '-' ||
        memchr(name.at, '=', name.len) != NULL || search_finds(arena, name, search))
        return NULL;
    return rv_arena_printf(arena,
                           "%s: the interpreter \"%.*s\" was not found in PATH; install it or "
                           "change the first line",
                           path, RV_STR_FMT(name))
        .at;
}

/* A text without "#!"; other contents are for the kernel, which may know more than ELF. */
static const char *text_wrong(struct rv_arena *arena, const char *path, struct rv_str head)
{
    if (head.len == 0)
        return rv_arena_printf(arena, "%s: is empty", path).at;
    if (memchr(head.at, '\0', head.len) != NULL || head.at[0] == 0x7f)
        return NULL;
    return rv_arena_printf(arena,
                           "%s is a script without a #! line; add #! and the path of the "
                           "interpreter as the first line, such as #!/bin/sh",
                           path)
        .at;
}

static const char *head_wrong(struct rv_arena *arena, const char *path, struct rv_str head,
                              const char *search)
{
    if (head.len < 2 || head.at[0] != '#' || head.at[1] != '!')
        return text_wrong(arena, path, head);
    const char *end = memchr(head.at, '\n', head.len);
    struct rv_str line = {head.at + 2, (size_t)((end ? end : head.at + head.len) - head.at) - 2};
    if (line.len > 0 && line.at[line.len - 1] == '\r')
        return rv_arena_printf(arena,
                               "%s: the lines end with CR LF, and the CR becomes part of the "
                               "interpreter's name; run sed -i 's/\\r$//' %s",
                               path, path)
            .at;
    return line_wrong(arena, path, line, search);
}

const char *rv_program_wrong(struct rv_arena *arena, const char *path, const char *search,
                             bool *ret_absent)
{
    char head[HEAD_BYTES];
    struct stat about;
    *ret_absent = false;
    if (stat(path, &about) != 0) {
        *ret_absent = errno == ENOENT || errno == ENOTDIR;
        return path_wrong(arena, path, errno);
    }
    const char *wrong = access_wrong(arena, path, &about);
    if (wrong != NULL)
        return wrong;
    /* What may be executed but not read is not looked into. */
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, head, sizeof head) : -1;
    if (fd >= 0)
        close(fd);
    return n < 0 ? NULL : head_wrong(arena, path, (struct rv_str){head, (size_t)n}, search);
}
