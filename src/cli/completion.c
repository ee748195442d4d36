/* What a shell offers behind `reeve`: the commands, and the options of each. Three dialects of the
 * same tables; what is data in them (help texts) is quoted as the dialect wants it. */
#include "base/assert.h"
#include "cli/manual_priv.h"
#include "cli/run_priv.h"

#include <stdio.h>

enum { SCRIPT_BYTES_MAX = 256 * 1024 };

/* One option of one command, whatever table it is from. */
typedef void (*each_option)(struct rv_buf *buf, const struct cli_command *command, const char *flag,
                            const char *value, const char *help);

static void options_walk(struct rv_buf *buf, const struct cli_command *command, each_option each)
{
    if (command->options & CLI_RAW) {
        for (const struct cli_serve_row *row = cli_serve_rows; row->flag != NULL; row++)
            each(buf, command, row->flag, row->value, row->help);
        each(buf, command, "--help", NULL, "show help for this command");
        return;
    }
    uint64_t options = cli_command_shown(command);
    for (unsigned i = 0; i < CLI_OPTION_COUNT; i++) {
        const struct cli_option_row *row = cli_option_row((enum cli_option)i);
        if (options >> i & 1)
            each(buf, command, row->flag, row->value,
                 cli_option_help(command->name, (enum cli_option)i));
    }
}

/* Single quotes around it; within, `quote` for a quote, a backslash before each of `marked`. */
static void quoted_add(struct rv_buf *buf, const char *text, const char *quote, const char *marked)
{
    rv_buf_add_char(buf, '\'');
    for (; *text != '\0'; text++) {
        if (*text == '\'') {
            rv_buf_add_str(buf, rv_str_of(quote));
            continue;
        }
        if (strchr(marked, *text) != NULL)
            rv_buf_add_char(buf, '\\');
        rv_buf_add_char(buf, *text);
    }
    rv_buf_add_char(buf, '\'');
}

static bool is_file(const char *value)
{
    return strcmp(value, "FILE") == 0 || strcmp(value, "PATH") == 0;
}

/* ---- bash ---- */

static void bash_option(struct rv_buf *buf, const struct cli_command *command, const char *flag,
                        const char *value, const char *help)
{
    (void)command;
    (void)value;
    (void)help;
    rv_buf_printf(buf, " %s", flag);
}

static void bash_write(struct rv_buf *buf)
{
    rv_buf_lit(buf, "# bash completion of reeve: . <(reeve completion bash)\n"
                    "_reeve()\n{\n"
                    "    local word=${COMP_WORDS[COMP_CWORD]} options=\n"
                    "    COMPREPLY=()\n"
                    "    if ((COMP_CWORD == 1)); then\n"
                    "        COMPREPLY=($(compgen -W \"");
    for (const struct cli_command *command = cli_commands(); command->name != NULL; command++)
        rv_buf_printf(buf, "%s%s", command == cli_commands() ? "" : " ", command->name);
    rv_buf_lit(buf, "\" -- \"$word\"))\n        return\n    fi\n"
                    "    case ${COMP_WORDS[1]} in\n");
    for (const struct cli_command *command = cli_commands(); command->name != NULL; command++) {
        rv_buf_printf(buf, "    %s) options=\"", command->name);
        options_walk(buf, command, bash_option);
        rv_buf_lit(buf, "\" ;;\n");
    }
    rv_buf_lit(buf, "    esac\n"
                    "    if [[ $word == -* ]]; then\n"
                    "        COMPREPLY=($(compgen -W \"$options\" -- \"$word\"))\n"
                    "    fi\n}\n"
                    "complete -o default -F _reeve reeve\n");
}

/* ---- zsh ---- */

static void zsh_option(struct rv_buf *buf, const struct cli_command *command, const char *flag,
                       const char *value, const char *help)
{
    struct rv_buf text;
    (void)command;
    rv_buf_init(&text, SCRIPT_BYTES_MAX);
    rv_buf_printf(&text, "%s[", flag);
    for (; *help != '\0'; help++) {
        if (strchr("[]\\:", *help) != NULL)
            rv_buf_add_char(&text, '\\');
        rv_buf_add_char(&text, *help);
    }
    rv_buf_add_char(&text, ']');
    if (value != NULL)
        rv_buf_printf(&text, ":%s:%s", value, is_file(value) ? "_files" : " ");
    rv_buf_add_char(&text, '\0');
    rv_buf_lit(buf, " \\\n            ");
    if (text.failed == RV_OK)
        quoted_add(buf, text.at, "'\\''", "");
    else
        buf->failed = text.failed;
    rv_buf_done(&text);
}

static void zsh_write(struct rv_buf *buf)
{
    rv_buf_lit(buf, "#compdef reeve\n"
                    "# zsh completion of reeve: reeve completion zsh >~/.zfunc/_reeve\n"
                    "_reeve() {\n"
                    "    local -a commands\n"
                    "    commands=(\n");
    for (const struct cli_command *command = cli_commands(); command->name != NULL; command++) {
        rv_buf_printf(buf, "        %s:", command->name);
        quoted_add(buf, command->help, "'\\''", "");
        rv_buf_lit(buf, "\n");
    }
    rv_buf_lit(buf, "    )\n"
                    "    if ((CURRENT == 2)); then\n"
                    "        _describe -t commands command commands\n"
                    "        return\n"
                    "    fi\n"
                    "    local command=$words[2]\n"
                    "    shift words\n"
                    "    ((CURRENT--))\n"
                    "    case $command in\n");
    for (const struct cli_command *command = cli_commands(); command->name != NULL; command++) {
        rv_buf_printf(buf, "    %s)\n        _arguments", command->name);
        options_walk(buf, command, zsh_option);
        rv_buf_lit(buf, " \\\n            '*:argument:_files'\n        ;;\n");
    }
    rv_buf_lit(buf, "    esac\n}\n"
                    "if [ \"$funcstack[1]\" = _reeve ]; then\n    _reeve \"$@\"\n"
                    "else\n    compdef _reeve reeve\nfi\n");
}

/* ---- fish ---- */

static void fish_option(struct rv_buf *buf, const struct cli_command *command, const char *flag,
                        const char *value, const char *help)
{
    rv_assert(flag[0] == '-' && flag[1] == '-');
    rv_buf_printf(buf, "complete -c reeve -n '__fish_seen_subcommand_from %s' -l %s", command->name,
                  flag + 2);
    if (value != NULL)
        rv_buf_add_str(buf, rv_str_of(is_file(value) ? " -r -F" : " -x"));
    rv_buf_lit(buf, " -d ");
    quoted_add(buf, help, "\\'", "\\");
    rv_buf_lit(buf, "\n");
}

static void fish_write(struct rv_buf *buf)
{
    rv_buf_lit(buf, "# fish completion of reeve: reeve completion fish | source\n");
    for (const struct cli_command *command = cli_commands(); command->name != NULL; command++) {
        rv_buf_printf(buf, "complete -c reeve -n __fish_use_subcommand -f -a %s -d ",
                      command->name);
        quoted_add(buf, command->help, "\\'", "\\");
        rv_buf_lit(buf, "\n");
        options_walk(buf, command, fish_option);
    }
}

bool cli_completion_write(struct rv_buf *buf, struct rv_str shell)
{
    if (rv_str_is(shell, "bash"))
        bash_write(buf);
    else if (rv_str_is(shell, "zsh"))
        zsh_write(buf);
    else if (rv_str_is(shell, "fish"))
        fish_write(buf);
    else
        return false;
    return true;
}

int cli_completion(struct cli *cli)
{
    struct rv_buf buf;
    const char *shell = cli->words.args[0];
    int code = CLI_DONE;
    rv_buf_init(&buf, SCRIPT_BYTES_MAX);
    if (!cli_completion_write(&buf, rv_str_of(shell)))
        code = cli_tell(cli, CLI_USAGE, "\"%s\": unknown shell; shells: bash, zsh, fish", shell);
    else if (buf.failed != RV_OK)
        code = cli_tell(cli, CLI_UNREACHABLE, "out of memory");
    else
        fwrite(buf.at, 1, buf.len, stdout);
    rv_buf_done(&buf);
    return code;
}
