/* What the session reports: the server's refusals and absences, with their cures. */
#include "client/session_priv.h"

#include "base/assert.h"
#include "base/format.h"

#include <stdarg.h>
#include <stdio.h>

void rv_session_log(const struct rv_session *session, enum rv_log_level level, const char *format,
                    ...)
{
    if (session->options.log == NULL)
        return;
    char message[1024];
    va_list args;
    va_start(args, format);
    int len = rv_format(message, sizeof message, format, args);
    va_end(args);
    for (int i = 0; i < len && i < (int)sizeof message - 1; i++)
        if (message[i] == '\0') /* in what the server said */
            message[i] = ' ';
    session->options.log(session->options.log_user, level, message);
}

void rv_session_log_lost(const struct rv_session *session, const char *why, unsigned failures)
{
    rv_assert(failures > 0);
    rv_session_log(session, RV_LOG_WARNING,
                   "no response from the server (%s), consecutive failure %u; the client retries",
                   why, failures);
}

void rv_session_log_postponed(const struct rv_session *session, int status, struct rv_str why,
                              unsigned failures)
{
    rv_session_log(session, RV_LOG_WARNING,
                   "the server cannot process the request now: %d %.*s (consecutive failure %u; "
                   "the client retries)",
                   status, RV_STR_FMT(why), failures);
}

void rv_session_log_stranger(const struct rv_session *session, int status, unsigned failures)
{
    rv_assert(failures > 0);
    static const char cure[] = "set REEVE_URL to the address that \"reeve serve\" prints";
    struct rv_str server = session->server;
    if (status == 200)
        rv_session_log(session, RV_LOG_ERROR,
                       "%.*s answers, but it is not a Reeve server; %s (consecutive failure %u; "
                       "the client retries)",
                       RV_STR_FMT(server), cure, failures);
    else
        rv_session_log(session, RV_LOG_ERROR,
                       "%.*s answered with status %d and without a Reeve error message, so it may "
                       "not be a Reeve server; %s (consecutive failure %u; the client retries)",
                       RV_STR_FMT(server), status, cure, failures);
}

/* What its problem does not say. */
static const char *cure_of(int status)
{
    if (status == 401 || status == 403)
        return "";
    if (status == 413)
        return "; the body of the request exceeds the server's limit";
    return "; possible cause: agent and server have different versions";
}

void rv_session_log_refused(const struct rv_session *session, int status, struct rv_str why)
{
    rv_assert(status >= 400);
    rv_assert(status < 500);
    rv_session_log(session, RV_LOG_ERROR, "the server refused the request: %d %.*s%s", status,
                   RV_STR_FMT(why), cure_of(status));
}
