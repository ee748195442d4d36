/* `reeve backup FILE`: the server's store comes over HTTP into FILE.partial, which becomes FILE
 * when it is whole, sound and on the disk. The partial file is locked by whoever writes it, so that
 * one without a lock is what a killed command left, and is begun anew. */
#include "cli/run_priv.h"
#include "cli/server_priv.h"
#include "cli/text_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { WHY_BYTES_MAX = 4096, REFUSAL_BYTES_MAX = 64 * 1024 };

struct backup {
    struct cli *cli;
    const char *file;    /* borrowed */
    const char *partial; /* on the arena, as all below */
    const char *log;     /* of SQLite, while the copy is looked at */
    const char *lock;
    const char *folder;
    int fd; /* of the partial file; -1: none that is ours */
    int64_t bytes;
    int write_errno;       /* 0: all that came was written */
    struct rv_buf refusal; /* what came in its place */
    size_t findings;
    struct rv_str finding; /* the first; on the arena */
};

/* Why no more bytes fit; NULL: it is another error. */
static const char *full_text(int number)
{
    if (number == ENOSPC)
        return "the disk is full";
    if (number == EDQUOT)
        return "the disk quota is used up";
    return number == EFBIG ? "the maximum file size (ulimit -f) is reached" : NULL;
}

static int errno_tell(const struct backup *backup, const char *path, int number)
{
    const struct cli *cli = backup->cli;
    const char *full = full_text(number);
    if (full != NULL)
        return cli_tell(cli, CLI_UNREACHABLE,
                        "%s cannot be written because %s; make room, or choose another disk, and "
                        "repeat the backup",
                        path, full);
    if (number == ENOENT || number == ENOTDIR)
        return cli_tell(cli, CLI_NOT_FOUND,
                        "%s: the folder \"%s\" does not exist, or is not a folder; create it first",
                        path, backup->folder);
    if (number == EACCES || number == EPERM || number == EROFS)
        return cli_tell(cli, CLI_REFUSED, "%s: no permission to write: %s", path, strerror(number));
    return cli_tell(cli, CLI_UNREACHABLE, "%s: %s", path, strerror(number));
}

static bool names_make(struct backup *backup)
{
    struct rv_arena *arena = &backup->cli->arena;
    const char *slash = strrchr(backup->file, '/');
    int folder_bytes = slash == NULL ? 0 : slash == backup->file ? 1 : (int)(slash - backup->file);
    backup->partial = rv_arena_printf(arena, "%s.partial", backup->file).at;
    backup->log = rv_arena_printf(arena, "%s.partial-wal", backup->file).at;
    backup->lock = rv_arena_printf(arena, "%s.partial.lock", backup->file).at;
    backup->folder = slash == NULL ? "."
                                   : rv_arena_printf(arena, "%.*s", folder_bytes, backup->file).at;
    return backup->partial && backup->log && backup->lock && backup->folder;
}

static int exists_tell(const struct backup *backup)
{
    return cli_tell(backup->cli, CLI_REFUSED,
                    "%s already exists and will not be overwritten: choose another name",
                    backup->file);
}

/* What was left by a command that was killed is taken over, and never by two. */
static int partial_open(struct backup *backup)
{
    struct stat about, named;
    if (lstat(backup->file, &about) == 0)
        return exists_tell(backup);
    int fd = open(backup->partial, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
    if (fd < 0 && errno == ELOOP)
        return cli_tell(backup->cli, CLI_REFUSED, "%s is a symbolic link: remove it",
                        backup->partial);
    if (fd < 0)
        return errno_tell(backup, backup->partial, errno);
    int code = CLI_DONE;
    if (flock(fd, LOCK_EX | LOCK_NB) != 0)
        code = cli_tell(backup->cli, CLI_REFUSED,
                        "another backup is writing %s: wait until it has ended", backup->partial);
    else if (fstat(fd, &about) != 0 || lstat(backup->partial, &named) != 0 ||
             about.st_ino != named.st_ino || about.st_dev != named.st_dev)
        code = cli_tell(backup->cli, CLI_REFUSED, "%s was replaced by another backup: try again",
                        backup->partial);
    else if (!S_ISREG(about.st_mode))
        code = cli_tell(backup->cli, CLI_REFUSED, "%s is not a regular file: remove it",
                        backup->partial);
    else if (fchmod(fd, 0600) != 0 || ftruncate(fd, 0) != 0 ||
             (unlink(backup->log) != 0 && errno != ENOENT))
        code = errno_tell(backup, backup->partial, errno);
    if (code != CLI_DONE) {
        close(fd);
        return code;
    }
    backup->fd = fd;
    return CLI_DONE;
}

/* ---- the copy comes ---- */

static int bytes_take(const char *bytes, size_t count, void *to)
{
    static const char begin[] = "SQLite format 3";
    struct backup *backup = to;
    bool store = backup->bytes > 0 || (backup->refusal.len == 0 && bytes[0] == begin[0]);
    if (!store) {
        rv_buf_add(&backup->refusal, bytes, count);
        return 0;
    }
    while (count > 0) {
        ssize_t n = write(backup->fd, bytes, count);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            backup->write_errno = n < 0 ? errno : ENOSPC;
            return 1;
        }
        bytes += n;
        count -= (size_t)n;
        backup->bytes += n;
    }
    return 0;
}

/* The server ends an answer whose rest it cannot read: whether its store is damaged, its status
 * tells. */
static bool damage_tell(struct backup *backup)
{
    struct cli *cli = backup->cli;
    struct rv_json status;
    size_t count = 0;
    if (!cli_peek(cli, RV_STR("/v1/status"), &status))
        return false;
    const struct rv_json *store = rv_json_get(&status, RV_STR("store"));
    const struct rv_json *items = cli_items(store, "problems", &count);
    for (size_t i = 0; i < count; i++) {
        if (!rv_str_is(cli_str(&items[i], "problem"), "damaged"))
            continue;
        struct rv_str cure = cli_text_clean(&cli->arena, cli_str(&items[i], "cure"));
        (void)cli_tell(cli, CLI_FAILED,
                       "the server's store is damaged, and the copy was deleted: %.*s",
                       RV_STR_FMT(cure));
        return true;
    }
    return false;
}

static int copy_fetch(struct backup *backup)
{
    struct cli *cli = backup->cli;
    struct rv_client *client = cli_client(cli, false);
    if (client == NULL)
        return CLI_USAGE;
    struct rv_call call = {
        .path = "/v1/backup", .timeout_ms = -1, .on_bytes = bytes_take, .user = backup};
    struct rv_answer answer;
    int result = cli_request(client, &call, &answer);
    struct cli_answer said = {.status = answer.status,
                              .text = rv_arena_str(&cli->arena, rv_buf_str(&backup->refusal))};
    rv_answer_free(&answer);
    if (backup->write_errno != 0)
        return errno_tell(backup, backup->partial, backup->write_errno);
    if (result == RV_RESULT_UNREACHABLE && backup->bytes > 0 && damage_tell(backup))
        return CLI_FAILED;
    if (result == RV_RESULT_UNREACHABLE && backup->bytes > 0)
        return cli_tell(cli, CLI_UNREACHABLE,
                        "the copy stopped after %lld bytes: the server's log contains the reason. "
                        "Check that the server is running, then try again",
                        (long long)backup->bytes);
    if (result == RV_RESULT_UNREACHABLE)
        return cli_unreachable(cli, client);
    if (result == RV_RESULT_OK && backup->bytes > 0)
        return CLI_DONE;
    if (result != RV_RESULT_OK && result != RV_RESULT_REFUSED)
        return cli_tell(cli, CLI_UNREACHABLE, "%s", rv_client_error(client));
    int code = cli_answer_read(cli, &said);
    return code != CLI_DONE ? code : cli_stranger_tell(cli);
}

/* ---- and is looked at ---- */

static void found(void *self, struct rv_str task, struct rv_str what, struct rv_str cure)
{
    struct backup *backup = self;
    (void)cure;
    if (backup->findings++ == 0)
        backup->finding = rv_arena_printf(&backup->cli->arena, "%s%.*s%s%.*s",
                                          task.at ? "task " : "", RV_STR_FMT(task),
                                          task.at ? ": " : "", RV_STR_FMT(what));
}

static int copy_check(struct backup *backup, struct rv_cli_check *check)
{
    struct cli *cli = backup->cli;
    struct rv_buf why;
    rv_buf_init(&why, WHY_BYTES_MAX);
    *check = (struct rv_cli_check){.found = found, .self = backup};
    enum rv_err err = cli->server->check(backup->partial, check, &why);
    int code = CLI_DONE;
    if (err != RV_OK)
        code = cli_tell(cli, rv_err_exit(err), "the copy is complete, but cannot be verified: %.*s",
                        RV_STR_FMT(rv_buf_str(&why)));
    else if (backup->findings > 0)
        code = cli_tell(cli, CLI_FAILED,
                        "the copy is damaged and was deleted: %.*s%s. The disk of the copy or the "
                        "server's store is the cause: repeat the backup on another disk; if it "
                        "fails again, stop the server and run `reeve check --store FILE` on its "
                        "machine",
                        RV_STR_FMT(backup->finding), backup->findings > 1 ? ", and more" : "");
    rv_buf_done(&why);
    return code;
}

/* Not over a file that has come there meanwhile. File systems that cannot say so have links. */
static int file_name(struct backup *backup)
{
    int failed = renameat2(AT_FDCWD, backup->partial, AT_FDCWD, backup->file, RENAME_NOREPLACE);
    if (failed && (errno == EINVAL || errno == ENOSYS)) {
        failed = link(backup->partial, backup->file);
        if (!failed)
            failed = unlink(backup->partial);
    }
    if (failed && errno == EEXIST)
        return exists_tell(backup);
    return failed ? errno_tell(backup, backup->file, errno) : CLI_DONE;
}

/* On the disk before it has its name, and so has its name. */
static int file_settle(struct backup *backup)
{
    if (fsync(backup->fd) != 0)
        return errno_tell(backup, backup->partial, errno);
    int code = file_name(backup);
    if (code != CLI_DONE)
        return code;
    int folder = open(backup->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0 || fsync(folder) != 0)
        code = errno_tell(backup, backup->folder, errno);
    if (folder >= 0)
        close(folder);
    return code;
}

static void sum_print(const struct backup *backup, const struct rv_cli_check *check)
{
    if (!cli_has(backup->cli, CLI_OPTION_JSON)) {
        printf("%s: %lld bytes, %lld workflow%s, %lld task%s: sound\n", backup->file,
               (long long)backup->bytes, (long long)check->workflows,
               check->workflows == 1 ? "" : "s", (long long)check->tasks,
               check->tasks == 1 ? "" : "s");
        return;
    }
    struct rv_buf line;
    rv_buf_init(&line, REFUSAL_BYTES_MAX);
    rv_buf_lit(&line, "{\"file\":");
    rv_json_write_string(&line, rv_str_of(backup->file));
    rv_buf_printf(&line, ",\"bytes\":%lld,\"workflows\":%lld,\"tasks\":%lld}",
                  (long long)backup->bytes, (long long)check->workflows, (long long)check->tasks);
    cli_json_print(rv_buf_str(&line));
    rv_buf_done(&line);
}

int cli_backup(struct cli *cli)
{
    struct backup backup = {.cli = cli, .file = cli->words.args[0], .fd = -1};
    struct rv_cli_check check;
    if (!names_make(&backup))
        return rv_err_exit(RV_ERR_MEMORY);
    int code = partial_open(&backup);
    if (code != CLI_DONE)
        return code;
    rv_buf_init(&backup.refusal, REFUSAL_BYTES_MAX);
    code = copy_fetch(&backup);
    if (code == CLI_DONE)
        code = copy_check(&backup, &check);
    if (code == CLI_DONE)
        code = file_settle(&backup);
    if (code == CLI_DONE)
        sum_print(&backup, &check);
    else
        unlink(backup.partial);
    unlink(backup.lock);
    unlink(backup.log);
    close(backup.fd);
    rv_buf_done(&backup.refusal);
    return code;
}
