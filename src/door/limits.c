/* The deadlines of a connection. A deadline starts when the connection begins to owe something (a
 * head, a body, the reading of an answer); single bytes from a slow client do not restart it. When
 * a deadline moves later, its entry in the heap stays and is checked when its old time comes, so a
 * busy connection does not change the heap. */
#include "base/assert.h"
#include "door/door_priv.h"

enum { LINGER_MS = 2000, SPARE_MS = 200, TAKEN_BYTES = 64 * 1024 };

static int64_t debt_ms(const struct rv_door_conn *conn)
{
    const struct rv_door_limits *limits = &conn->door->options.limits;
    int64_t ms = INT64_MAX;
    switch (conn->debt) {
    case DEBT_NONE:
        return INT64_MAX;
    case DEBT_SHAKE:
        ms = limits->handshake_ms;
        break;
    case DEBT_IDLE:
        ms = limits->idle_ms;
        break;
    case DEBT_HEAD:
        ms = limits->head_ms;
        break;
    case DEBT_BODY:
        ms = limits->body_ms;
        break;
    case DEBT_WRITE:
        ms = limits->write_ms;
        break;
    case DEBT_LINGER:
        ms = LINGER_MS;
        break;
    }
    return conn->spare && ms > SPARE_MS ? SPARE_MS : ms;
}

static int64_t deadline(const struct rv_door_conn *conn)
{
    int64_t ms = debt_ms(conn);
    rv_assert(ms > 0);
    rv_assert(conn->since <= conn->door->now);
    return ms == INT64_MAX ? INT64_MAX : conn->since + ms;
}

void limits_debt_begin(struct rv_door_conn *conn, enum conn_debt debt)
{
    conn->debt = debt;
    conn->since = conn->door->now;
    conn->taken = 0;
}

static enum conn_debt debt_of(struct rv_door_conn *conn)
{
    switch (conn->state) {
    case CONN_SHAKE:
        return DEBT_SHAKE;
    case CONN_LINGER:
        return DEBT_LINGER;
    case CONN_READ:
        if (conn->unsent > 0)
            return DEBT_WRITE;
        if (conn->body_next)
            return DEBT_BODY;
        return conn->rest.len == conn->rest_at && rv_http_reader_idle(&conn->reader) ? DEBT_IDLE
                                                                                     : DEBT_HEAD;
    case CONN_WAIT:
        (void)rv_http_reader_idle(&conn->reader); /* thousands wait, each for minutes */
        return conn->unsent > 0 ? DEBT_WRITE : DEBT_NONE;
    case CONN_OPEN:
    case CONN_CLOSE:
    case CONN_DEAD:
        return conn->unsent > 0 ? DEBT_WRITE : DEBT_NONE;
    }
    return DEBT_NONE;
}

void limits_debt_settle(struct rv_door_conn *conn)
{
    if (conn->state == CONN_DEAD)
        return;
    enum conn_debt debt = debt_of(conn);
    if (debt != conn->debt || (debt == DEBT_WRITE && conn->taken >= TAKEN_BYTES))
        limits_debt_begin(conn, debt);
    int64_t at = deadline(conn);
    if (at != INT64_MAX && (conn->due.place == 0 || at < conn->due.at))
        rv_due_set(&conn->door->dues, &conn->due, at);
    rv_assert(at == INT64_MAX || conn->due.place != 0);
    rv_assert(at == INT64_MAX || conn->due.at <= at);
}

static void debt_fail(struct rv_door_conn *conn)
{
    if (conn->debt == DEBT_HEAD)
        conn_refuse(conn, 408, "the head of the request did not arrive in time");
    else if (conn->debt == DEBT_BODY)
        conn_refuse(conn, 408, "the body of the request did not arrive in time");
    else
        conn_cut(conn);
}

void limits_debts_collect(struct rv_door *door)
{
    struct rv_due *due;
    while ((due = rv_dues_first(&door->dues)) != NULL && due->at <= door->now) {
        struct rv_door_conn *conn = due->owner;
        rv_assert(due == &conn->due);
        rv_assert(conn->state != CONN_DEAD);
        int64_t at = deadline(conn);
        rv_due_clear(&door->dues, due);
        if (at > door->now && at != INT64_MAX)
            rv_due_set(&door->dues, due, at);
        else if (at <= door->now)
            debt_fail(conn);
    }
}

int64_t limits_debts_wait_ms(const struct rv_door *door, int64_t most)
{
    const struct rv_due *due = rv_dues_first(&door->dues);
    int64_t wait = due != NULL ? due->at - door->now : most;
    wait = wait < most ? wait : most;
    return wait > 0 ? wait : 0;
}
