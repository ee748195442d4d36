/* One connection: it reads requests one after the other, and the next only when the one before has
 * its answer, at least in the queue. Several answers may wait there for the socket. */
#include "base/assert.h"
#include "base/os/clock.h"
#include "door/door_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum { LINGER_BYTES = 16 * 1024 * 1024 };

static void host_over(struct rv_door_conn *conn, void **request, bool begun)
{
    const struct rv_door_host *host = &conn->door->options.host;
    void *over = *request;
    *request = NULL;
    if (over != NULL)
        host->over(host->self, over, begun);
}

enum rv_err conn_open(struct rv_door *door, int fd, bool plain, struct rv_door_conn **ret_conn)
{
    rv_assert(fd >= 0);
    rv_assert(!door->closing);
    rv_assert(door->counts.open <= door->options.connections_max);
    struct rv_door_conn *conn = calloc(1, sizeof *conn);
    if (conn == NULL)
        return RV_ERR_MEMORY;
    conn->watch = WATCH_CONN;
    conn->door = door;
    conn->fd = fd;
    conn->due.owner = conn;
    conn->state = CONN_READ;
    rv_http_reader_init(&conn->reader, door->options.body_max);
    rv_buf_init(&conn->rest, DOOR_READ_BYTES);
    enum rv_err err = rv_dues_reserve(&door->dues, (size_t)door->counts.open + 1);
    if (door->tls != NULL && !plain)
        conn->state = CONN_SHAKE;
    if (err != RV_OK) {
        conn_free(conn);
        return err;
    }
    conn->after = door->all;
    if (door->all != NULL)
        door->all->before = conn;
    door->all = conn;
    door->counts.open++;
    door->counts.taken++;
    limits_debt_settle(conn);
    *ret_conn = conn;
    return RV_OK;
}

void conn_free(struct rv_door_conn *conn)
{
    rv_assert(!conn->queued);
    rv_assert(!conn->shaking);
    rv_assert(conn->first == NULL);
    rv_assert(conn->due.place == 0);
    tls_free(conn);
    rv_http_reader_done(&conn->reader);
    rv_buf_done(&conn->rest);
    free(conn);
}

/* The host has what it must give back first. */
static bool host_owes(const struct rv_door_conn *conn)
{
    return conn->state == CONN_WAIT || (conn->state == CONN_OPEN && conn->more_told);
}

void conn_cut(struct rv_door_conn *conn)
{
    struct rv_door *door = conn->door;
    if (conn->state == CONN_DEAD)
        return;
    if (host_owes(conn) && !door->closing) {
        conn_leave(conn, true);
        return;
    }
    bool lingers = conn->state == CONN_LINGER;
    rv_assert(door->counts.open > 0);
    rv_assert(!lingers || door->counts.lingering > 0);
    rv_assert(conn->before == NULL ? door->all == conn : conn->before->after == conn);
    rv_assert(conn->after == NULL || conn->after->before == conn);
    conn->state = CONN_DEAD;
    shake_left(conn);
    door->counts.lingering -= lingers;
    rv_due_clear(&door->dues, &conn->due);
    queue_drop(conn);
    host_over(conn, &conn->open_owner, true);
    host_over(conn, &conn->request, false);
    close(conn->fd);
    if (conn->before != NULL)
        conn->before->after = conn->after;
    else
        door->all = conn->after;
    if (conn->after != NULL)
        conn->after->before = conn->before;
    conn->before = NULL;
    conn->after = door->dead;
    door->dead = conn;
    door->counts.open--;
    gate_left(door, conn);
}

void conn_leave(struct rv_door_conn *conn, bool broken)
{
    const struct rv_door_host *host = &conn->door->options.host;
    bool news = !conn->left;
    rv_assert(conn->state != CONN_DEAD);
    conn->readable = true;
    conn->left = true;
    conn->broken = conn->broken || broken;
    if (news && host_owes(conn))
        host->left(host->self, conn->state == CONN_WAIT ? conn->request : conn->open_owner);
}

bool rv_door_hurries(const struct rv_door_conn *conn)
{
    return conn->spare;
}

bool rv_door_left(const struct rv_door_conn *conn)
{
    return conn->left;
}

void conn_refuse(struct rv_door_conn *conn, int status, const char *detail)
{
    const struct rv_door_host *host = &conn->door->options.host;
    static const struct rv_door_field later = {"Retry-After", {"1", 1}};
    struct rv_buf body;
    rv_assert(conn->state == CONN_READ);
    rv_assert(status >= 400);
    rv_buf_init(&body, DOOR_SMALL_BYTES);
    host_over(conn, &conn->request, false);
    host->problem(host->self, conn, status, detail, &body);
    rv_door_answer(conn, &(struct rv_door_answer){.status = status,
                                                  .close = true,
                                                  .fields = &later,
                                                  .fields_count = status == 503,
                                                  .type = "application/problem+json",
                                                  .body = &body});
    rv_buf_done(&body);
    conn->unread = true;
}

/* ---- answers ---- */

static bool body_comes(const struct rv_door_conn *conn)
{
    const struct rv_http_request *request = &conn->reader.request;
    return conn->state == CONN_READ && conn->body_next && (request->chunked || request->length > 0);
}

static void head_write(const struct rv_door_conn *conn, struct door_piece *piece,
                       const struct rv_door_answer *answer, bool close)
{
    struct rv_http_answer head = {
        .status = answer->status,
        .minor = conn->minor,
        .close = close,
        .head_only = conn->head_only,
        .chunked = answer->open && !answer->sized,
        .length = answer->open           ? answer->length
                  : answer->body != NULL ? answer->body->len
                                         : 0,
        .type = answer->type,
        .date = conn->door->date,
    };
    rv_http_write_head(&piece->head, &head);
    for (size_t i = 0; i < answer->fields_count; i++)
        rv_http_write_field(&piece->head, answer->fields[i].name, answer->fields[i].value);
    rv_http_write_end(&piece->head);
}

/* A small body is copied, so that the host keeps its buffer and one part is sent. */
static void body_take(struct door_piece *piece, struct rv_buf *body)
{
    if (body->len <= DOOR_SMALL_BYTES) {
        rv_buf_add_str(&piece->head, rv_buf_str(body));
        return;
    }
    piece->body = *body;
    rv_buf_init(body, body->bytes_max);
}

void rv_door_answer(struct rv_door_conn *conn, const struct rv_door_answer *answer)
{
    bool early = body_comes(conn);
    bool close = answer->close || conn->close || early;
    rv_assert(!answer->open || !conn->spare);
    rv_assert(conn->state == CONN_READ || conn->state == CONN_WAIT);
    rv_assert(!answer->open || answer->owner != NULL);
    rv_assert(!answer->open || answer->body == NULL);
    rv_assert(conn->open_owner == NULL);
    bool joins = answer->owner == NULL && !answer->open;
    struct door_piece *piece = joins ? queue_join(conn) : queue_add(conn);
    if (piece == NULL) {
        rv_door_drop(conn, answer->owner);
        return;
    }
    size_t before = queue_bytes(piece);
    head_write(conn, piece, answer, close);
    if (answer->body != NULL && !conn->head_only)
        body_take(piece, answer->body);
    conn->broken = conn->broken || piece->head.failed != RV_OK;
    conn->request = NULL;
    conn->answered = true;
    conn->close = close;
    conn->unread = conn->unread || early;
    conn->state = close ? CONN_CLOSE : CONN_READ;
    if (answer->open && !conn->head_only) {
        conn->state = CONN_OPEN;
        conn->open_owner = answer->owner;
        conn->more_told = false;
        conn->chunked = !answer->sized && conn->minor > 0;
        conn->close = close || (!answer->sized && conn->minor == 0);
    } else {
        piece->owner = answer->owner;
    }
    queue_count(conn, piece, before);
    door_push(conn);
}

void rv_door_add(struct rv_door_conn *conn, struct rv_buf *bytes)
{
    if (conn->state != CONN_OPEN)
        return; /* the answer to a HEAD */
    rv_assert(bytes->len > 0);
    rv_assert(conn->open_owner != NULL);
    struct door_piece *piece = queue_add(conn);
    conn->more_told = false;
    door_push(conn);
    if (piece == NULL) {
        conn->broken = true;
        return;
    }
    if (conn->chunked) {
        rv_buf_printf(&piece->head, "%zx\r\n", bytes->len);
        piece->tail = RV_STR("\r\n");
    }
    conn->broken = conn->broken || piece->head.failed != RV_OK;
    piece->body = *bytes;
    rv_buf_init(bytes, bytes->bytes_max);
    queue_count(conn, piece, 0);
}

void rv_door_end(struct rv_door_conn *conn, bool whole)
{
    rv_assert(conn->state != CONN_DEAD);
    rv_assert(!whole || conn->state == CONN_OPEN);
    struct door_piece *piece = whole ? queue_add(conn) : NULL;
    conn->more_told = false;
    door_push(conn);
    if (piece == NULL) {
        conn->broken = true;
        return;
    }
    if (conn->chunked)
        piece->tail = RV_STR("0\r\n\r\n");
    piece->owner = conn->open_owner;
    conn->open_owner = NULL;
    conn->state = conn->close ? CONN_CLOSE : CONN_READ;
    queue_count(conn, piece, 0);
}

void rv_door_drop(struct rv_door_conn *conn, void *owner)
{
    rv_assert(conn->state == CONN_READ || conn->state == CONN_WAIT);
    conn->request = owner;
    conn->answered = true;
    conn->state = CONN_CLOSE;
    conn->broken = true;
    door_push(conn);
}

/* ---- requests ---- */

static void head_come(struct rv_door_conn *conn)
{
    const struct rv_door_host *host = &conn->door->options.host;
    const struct rv_http_request *request = &conn->reader.request;
    bool expects = request->expects;
    rv_assert(conn->state == CONN_READ);
    rv_assert(conn->request == NULL);
    rv_assert(!conn->body_next);
    conn->minor = request->minor;
    conn->close = request->close || conn->spare;
    conn->head_only = rv_str_is(request->method, "HEAD");
    conn->body_next = true;
    limits_debt_begin(conn, DEBT_BODY);
    conn->answered = false;
    void *made = host->head(host->self, conn, request);
    if (conn->answered)
        return;
    conn->request = made;
    if (made == NULL) {
        conn_refuse(conn, 503, "out of memory for this request; try again");
        return;
    }
    struct door_piece *piece = expects ? queue_add(conn) : NULL;
    if (piece != NULL) {
        piece->tail = RV_STR("HTTP/1.1 100 Continue\r\n\r\n");
        queue_count(conn, piece, 0);
    }
}

static void end_come(struct rv_door_conn *conn)
{
    const struct rv_door_host *host = &conn->door->options.host;
    rv_assert(conn->state == CONN_READ);
    rv_assert(conn->body_next);
    rv_assert(conn->request != NULL || conn->answered);
    rv_http_reader_next(&conn->reader);
    conn->body_next = false;
    limits_debt_begin(conn, DEBT_NONE);
    if (conn->request == NULL)
        return; /* it was answered at its head */
    conn->state = CONN_WAIT;
    host->end(host->self, conn->request);
}

/* Requests cost what their answers cost, however few bytes they have; a body costs its bytes. */
static bool turn_over(const struct rv_door_conn *conn)
{
    return !conn->body_next && rv_clock_mono_us() >= conn->door->turn_until;
}

static bool feed_goes_on(const struct rv_door_conn *conn, enum rv_http_event last)
{
    return last != RV_HTTP_MORE && conn->state == CONN_READ && conn->unsent <= DOOR_UNSENT_MAX &&
           !conn->broken && !(last == RV_HTTP_END && turn_over(conn));
}

/* Up to where the connection owes an answer, or its turn is over. What it has taken. */
static size_t conn_feed(struct rv_door_conn *conn, struct rv_str input)
{
    const struct rv_door_host *host = &conn->door->options.host;
    struct rv_str in = input;
    enum rv_http_event event = RV_HTTP_HEAD;
    while (feed_goes_on(conn, event)) {
        size_t taken;
        event = rv_http_reader_feed(&conn->reader, in, &taken);
        rv_assert(taken <= in.len);
        in = (struct rv_str){in.at + taken, in.len - taken};
        switch (event) {
        case RV_HTTP_MORE:
            break;
        case RV_HTTP_HEAD:
            head_come(conn);
            break;
        case RV_HTTP_BODY:
            rv_assert(conn->body_next);
            rv_assert(conn->request != NULL);
            host->body(host->self, conn->request, conn->reader.piece);
            break;
        case RV_HTTP_END:
            end_come(conn);
            break;
        case RV_HTTP_REFUSED:
            conn->minor = 1;
            conn->head_only = false;
            conn_refuse(conn, conn->reader.refusal.status, conn->reader.refusal.detail);
            break;
        }
    }
    return input.len - in.len;
}

static void rest_keep(struct rv_door_conn *conn, struct rv_str input)
{
    bool wanted = conn->state == CONN_READ || conn->state == CONN_WAIT || conn->state == CONN_OPEN;
    if (!wanted || input.len == 0)
        return;
    rv_assert(conn->rest.len == 0);
    rv_assert(conn->rest_at == 0);
    rv_buf_add_str(&conn->rest, input);
    conn->broken = conn->broken || conn->rest.failed != RV_OK;
}

static bool rest_there(const struct rv_door_conn *conn)
{
    return conn->rest.len > conn->rest_at;
}

static void rest_feed(struct rv_door_conn *conn)
{
    struct rv_str rest = rv_buf_str(&conn->rest);
    size_t at = conn->rest_at;
    conn->rest_at += conn_feed(conn, (struct rv_str){rest.at + at, rest.len - at});
    rv_assert(conn->rest_at <= conn->rest.len);
    if (rest_there(conn))
        return;
    rv_buf_done(&conn->rest);
    rv_buf_init(&conn->rest, DOOR_READ_BYTES);
    conn->rest_at = 0;
}

/* The peer sends nothing more; what it has asked is answered. */
static void input_end(struct rv_door_conn *conn)
{
    rv_assert(conn->state == CONN_READ);
    conn->left = true;
    conn->readable = false;
    host_over(conn, &conn->request, false);
    conn->state = CONN_CLOSE;
}

static size_t read_room(const struct rv_door_conn *conn)
{
    uint64_t rest = conn->body_next ? rv_http_reader_rest(&conn->reader) : 0;
    if (rest <= DOOR_HEAD_BYTES)
        return DOOR_HEAD_BYTES;
    return rest < DOOR_READ_BYTES ? (size_t)rest : DOOR_READ_BYTES;
}

/* Bytes that came; 0: none for now. */
static size_t input_read(struct rv_door_conn *conn, size_t max)
{
    rv_assert(max <= DOOR_READ_BYTES);
    ssize_t got = conn->readable ? wire_read(conn, conn->door->input, max) : -1;
    if (!conn->readable || (got < 0 && errno == EINTR))
        return 0;
    if (got < 0)
        conn->broken = conn->broken || errno != EAGAIN;
    if (got == 0)
        input_end(conn);
    if (got < 0 || (conn->tls == NULL && (size_t)got < max && !conn->left))
        conn->readable = false;
    return got > 0 ? (size_t)got : 0;
}

static bool input_take(struct rv_door_conn *conn, size_t *turn)
{
    if (rest_there(conn)) {
        rest_feed(conn);
        return true;
    }
    size_t got = input_read(conn, read_room(conn));
    if (got == 0)
        return false;
    *turn += got;
    size_t fed = conn_feed(conn, (struct rv_str){conn->door->input, got});
    rest_keep(conn, (struct rv_str){conn->door->input + fed, got - fed});
    return true;
}

/* ---- the end ---- */

/* An answer to a request that was not read to its end would be lost to the reset that a close
 * sends: so the peer is left time to read it, and what it sends is thrown away. */
static void conn_finish(struct rv_door_conn *conn)
{
    rv_assert(conn->state == CONN_CLOSE);
    rv_assert(conn->unsent == 0);
    bool unread = conn->unread || conn->readable || rest_there(conn);
    if (conn->tls != NULL)
        tls_bye(conn);
    if (conn->left || !unread || shutdown(conn->fd, SHUT_WR) != 0) {
        conn_cut(conn);
        return;
    }
    conn->state = CONN_LINGER;
    conn->door->counts.lingering++;
    conn->readable = true; /* what is there already makes no event of its own */
    door_push(conn);
}

static void linger_read(struct rv_door_conn *conn)
{
    rv_assert(conn->state == CONN_LINGER);
    rv_assert(conn->first == NULL);
    for (int turn = 0; turn < DOOR_TURN_BYTES / DOOR_READ_BYTES && conn->readable; turn++) {
        ssize_t got = recv(conn->fd, conn->door->input, DOOR_READ_BYTES, 0);
        conn->taken += got > 0 ? (size_t)got : 0;
        if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR) ||
            conn->taken > LINGER_BYTES) {
            conn_cut(conn);
            return;
        }
        conn->readable = got > 0;
    }
    if (conn->readable)
        door_push(conn);
}

/* The open answer goes on, or waits for its host. */
static bool open_goes_on(struct rv_door_conn *conn)
{
    const struct rv_door_host *host = &conn->door->options.host;
    if (conn->state != CONN_OPEN || conn->first != NULL || conn->more_told)
        return false;
    rv_assert(conn->open_owner != NULL);
    conn->more_told = true;
    host->more(host->self, conn->open_owner);
    return !conn->more_told;
}

static bool input_wanted(const struct rv_door_conn *conn, size_t turn)
{
    return conn->state == CONN_READ && !conn->broken && conn->unsent <= DOOR_UNSENT_MAX &&
           turn < DOOR_TURN_BYTES && !turn_over(conn);
}

static void conn_flow(struct rv_door_conn *conn)
{
    size_t turn = 0;
    conn->door->turn_until = rv_clock_mono_us() + DOOR_TURN_US;
    do {
        while (input_wanted(conn, turn) && input_take(conn, &turn))
            continue;
        conn->broken = conn->broken || !queue_send(conn);
    } while (!conn->broken &&
             (open_goes_on(conn) || (input_wanted(conn, turn) && rest_there(conn))));
    if (conn->state == CONN_READ && (conn->readable || rest_there(conn)) && conn->unsent == 0)
        door_push(conn);
}

void conn_run(struct rv_door_conn *conn)
{
    if (conn->state == CONN_DEAD || conn->state == CONN_SHAKE)
        return;
    if (conn->state == CONN_LINGER)
        linger_read(conn);
    else
        conn_flow(conn);
    if (conn->broken)
        conn_cut(conn);
    else if (conn->state == CONN_CLOSE && conn->first == NULL)
        conn_finish(conn);
    limits_debt_settle(conn);
}
