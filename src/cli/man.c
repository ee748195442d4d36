/* The manual page reeve(1), from the same tables as the help. */
#include "base/assert.h"
#include "cli/manual_priv.h"
#include "cli/run_priv.h"

#include <string.h>

const struct cli_serve_row cli_serve_rows[] = {
#define RV_SERVE_OPTION(name, flag, variable, value, otherwise, help)                              \
    {flag, variable, value, otherwise, help},
#include "cli/tbl/serve.def"
#undef RV_SERVE_OPTION
    {NULL, NULL, NULL, NULL, NULL},
};

/* Text as roff has it: no escapes, no requests, hyphens that can be copied. */
static void roff_add(struct rv_buf *buf, const char *text)
{
    bool begins = true;
    for (; *text != '\0'; text++) {
        if (begins && (*text == '.' || *text == '\''))
            rv_buf_lit(buf, "\\&");
        begins = *text == '\n';
        if (*text == '\\')
            rv_buf_lit(buf, "\\e");
        else if (*text == '-')
            rv_buf_lit(buf, "\\-");
        else if (*text == '\'')
            rv_buf_lit(buf, "\\(aq");
        else
            rv_buf_add_char(buf, *text);
    }
}

/* ".TP", the flag with its value, the help. */
static void option_add(struct rv_buf *buf, const char *flag, const char *value, const char *help)
{
    rv_buf_lit(buf, ".TP\n\\fB");
    roff_add(buf, flag);
    rv_buf_lit(buf, "\\fR");
    if (value != NULL) {
        rv_buf_lit(buf, " \\fI");
        roff_add(buf, value);
        rv_buf_lit(buf, "\\fR");
    }
    rv_buf_lit(buf, "\n");
    roff_add(buf, help);
    rv_buf_lit(buf, "\n");
}

static void options_add(struct rv_buf *buf, const char *command, uint64_t options)
{
    for (unsigned i = 0; i < CLI_OPTION_COUNT; i++) {
        const struct cli_option_row *row = cli_option_row((enum cli_option)i);
        if (options >> i & 1)
            option_add(buf, row->flag, row->value, cli_option_help(command, (enum cli_option)i));
    }
}

static void serve_add(struct rv_buf *buf)
{
    for (const struct cli_serve_row *row = cli_serve_rows; row->flag != NULL; row++) {
        option_add(buf, row->flag, row->value, row->help);
        rv_buf_lit(buf, "(variable ");
        roff_add(buf, row->variable);
        if (row->otherwise != NULL) {
            rv_buf_lit(buf, ", default ");
            roff_add(buf, row->otherwise);
        }
        rv_buf_lit(buf, ")\n");
    }
}

static void command_add(struct rv_buf *buf, const struct cli_command *command)
{
    rv_buf_lit(buf, ".SS reeve ");
    roff_add(buf, command->name);
    if (command->args[0] != '\0') {
        rv_buf_add_char(buf, ' ');
        roff_add(buf, command->args);
    }
    rv_assert(command->help[0] >= 'a' && command->help[0] <= 'z');
    rv_buf_printf(buf, "\n%c", command->help[0] - 'a' + 'A');
    roff_add(buf, command->help + 1);
    rv_buf_lit(buf, ".\n");
    if (command->more[0] != '\0') {
        rv_buf_lit(buf, ".PP\n.nf\n");
        roff_add(buf, command->more);
        rv_buf_lit(buf, ".fi\n");
    }
    if (command->options & CLI_RAW)
        serve_add(buf);
    else
        options_add(buf, command->name, command->options);
}

#define HEAD                                                                                       \
    ".SH NAME\n"                                                                                   \
    "reeve \\- runs tasks that span several services to completion, or undoes them\n"              \
    ".SH SYNOPSIS\n.B reeve\n.I COMMAND\n[\\fIARGUMENT\\fR ...] [\\fIOPTION\\fR ...]\n"            \
    ".SH DESCRIPTION\n"                                                                            \
    "Reeve runs the steps of a task on agents, retries failed steps, undoes tasks that cannot "    \
    "complete, survives the crash of any component, and raises alerts for conditions that need "   \
    "an operator.\n"                                                                               \
    "Options may precede or follow arguments; \\fB\\-\\-\\fR ends them; "                          \
    "\\fB\\-\\-name=value\\fR is the same as \\fB\\-\\-name value\\fR.\n"                          \
    ".SH COMMANDS\n"

#define TAIL                                                                                       \
    ".SH EXIT STATUS\n"                                                                            \
    ".TP\n0\nsuccess\n"                                                                            \
    ".TP\n1\nthe task failed, was undone or was cancelled, or the store is damaged\n"              \
    ".TP\n2\nusage error, or invalid input\n"                                                      \
    ".TP\n3\ntask, step, workflow, alert, selection, API key, file or folder not found\n"          \
    ".TP\n4\nrefused in this state or for this API key, or a port or store is in use\n"            \
    ".TP\n5\nthe server is unreachable or not ready, or a store cannot be used\n"                  \
    ".TP\n6\nthe task needs an operator\n"                                                         \
    ".SH ENVIRONMENT\n"                                                                            \
    ".TP\nREEVE_URL\naddress of the server, unless \\-\\-url is given\n"                           \
    ".TP\nREEVE_API_KEY\nAPI key for all requests\n"                                               \
    ".TP\nREEVE_CA_FILE\ncertificates to verify an https server with, instead of the "             \
    "system\\(aqs\n"                                                                               \
    ".TP\nNO_COLOR\ndisables colours if set and not empty\n"                                       \
    ".PP\nEach option of \\fBreeve serve\\fR has an environment variable; "                        \
    "the option takes precedence.\n"

void cli_man_write(struct rv_buf *buf)
{
    rv_buf_printf(buf, ".TH REEVE 1 \"\" \"Reeve %s\" \"Reeve\"\n", rv_version());
    rv_buf_lit(buf, HEAD);
    for (const struct cli_command *command = cli_commands(); command->name != NULL; command++)
        command_add(buf, command);
    rv_buf_lit(buf, ".SH COMMON OPTIONS\n");
    options_add(buf, NULL, CLI_COMMON);
    rv_buf_lit(buf, TAIL);
}
