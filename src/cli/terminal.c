#include "cli/terminal_priv.h"

#include "base/os/clock.h"
#include "cli/text_priv.h"

#include <sys/ioctl.h>
#include <unistd.h>

enum { WIDTH_DEFAULT = 80, WIDTH_MIN = 20, PACE_MS = 100 };

static size_t width_of(int fd)
{
    struct winsize size;
    if (ioctl(fd, TIOCGWINSZ, &size) != 0 || size.ws_col == 0)
        return WIDTH_DEFAULT;
    return size.ws_col < WIDTH_MIN ? WIDTH_MIN : size.ws_col;
}

size_t cli_width(const struct cli *cli)
{
    return cli->terminal ? width_of(STDOUT_FILENO) : 0;
}

size_t cli_width_err(const struct cli *cli)
{
    return cli->terminal_err ? width_of(STDERR_FILENO) : 0;
}

void cli_line_write(struct cli *cli, FILE *to, struct rv_str text, size_t width)
{
    struct rv_arena_mark mark = rv_arena_mark(&cli->arena);
    struct rv_str clean = cli_text_clean(&cli->arena, text);
    /* The last column stays free: many terminals go to the next line when it is written. */
    struct rv_str cut = cli_text_cut(&cli->arena, clean, width > 1 ? width - 1 : 1);
    fprintf(to, "\r%.*s\033[K", RV_STR_FMT(cut));
    fflush(to);
    rv_arena_release(&cli->arena, mark);
}

void cli_line_clear(FILE *to)
{
    fputs("\r\033[K", to);
    fflush(to);
}

bool cli_pace_due(struct cli_pace *pace)
{
    int64_t now = rv_clock_mono_ms();
    if (pace->written_ms != 0 && now - pace->written_ms < PACE_MS)
        return false;
    pace->written_ms = now;
    return true;
}
