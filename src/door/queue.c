/* What a connection has yet to send: pieces in order, as many as possible in one call. A piece of
 * an answer whose loss matters has an owner, who hears when it is sent or dropped. */
#include "base/assert.h"
#include "door/door_priv.h"

#include <errno.h>
#include <malloc.h>
#include <stdlib.h>

enum {
    IOV_MAX_COUNT = 48,
    PIECES_KEPT = 256,
    HEAD_BYTES_MAX = 32 * 1024,
    HEAD_BYTES_KEPT = 8 * 1024,   /* of a free piece */
    TRIM_BYTES = 32 * 1024 * 1024 /* of answers that waited at once */
};

struct door_piece *queue_add(struct rv_door_conn *conn)
{
    struct rv_door *door = conn->door;
    struct door_piece *piece = door->pieces;
    rv_assert(conn->state != CONN_DEAD);
    rv_assert((conn->first == NULL) == (conn->last == NULL));
    rv_assert((piece == NULL) == (door->pieces_count == 0));
    if (piece != NULL) {
        rv_assert(queue_bytes(piece) == 0);
        rv_assert(piece->owner == NULL);
        door->pieces = piece->next;
        door->pieces_count--;
    } else {
        piece = calloc(1, sizeof *piece);
        if (piece == NULL)
            return NULL;
        rv_buf_init(&piece->head, HEAD_BYTES_MAX);
        rv_buf_init(&piece->body, 0);
    }
    piece->next = NULL;
    if (conn->last != NULL)
        conn->last->next = piece;
    else
        conn->first = piece;
    conn->last = piece;
    return piece;
}

/* Bytes that are the owner's alone, and parts behind the head, end a piece. */
struct door_piece *queue_join(struct rv_door_conn *conn)
{
    struct door_piece *last = conn->last;
    bool open = last != NULL && last->owner == NULL && last->body.len == 0 && last->tail.len == 0;
    return open && last->head.len < HEAD_BYTES_KEPT / 2 ? last : queue_add(conn);
}

size_t queue_bytes(const struct door_piece *piece)
{
    return piece->head.len + piece->body.len + piece->tail.len;
}

void queue_count(struct rv_door_conn *conn, const struct door_piece *piece, size_t before)
{
    rv_assert(piece == conn->last);
    rv_assert(queue_bytes(piece) >= before);
    size_t bytes = queue_bytes(piece) - before;
    if (conn->unsent == 0 && bytes > 0)
        conn->door->counts.busy++;
    conn->unsent += bytes;
    conn->door->answers_bytes += bytes;
    rv_assert(conn->unsent <= conn->door->answers_bytes);
    if (conn->door->answers_bytes > conn->door->answers_peak)
        conn->door->answers_peak = conn->door->answers_bytes;
}

static void piece_free(struct door_piece *piece)
{
    rv_buf_done(&piece->head);
    rv_buf_done(&piece->body);
    free(piece);
}

/* What slow readers have filled goes back to the system when they have read it, or are gone. */
static void memory_return(struct rv_door *door)
{
    if (door->answers_peak < TRIM_BYTES || door->answers_bytes > door->answers_peak / 8)
        return;
    door->answers_peak = 0;
    (void)malloc_trim(0);
}

static void bytes_leave(struct rv_door_conn *conn, size_t bytes)
{
    struct rv_door *door = conn->door;
    rv_assert(bytes <= conn->unsent);
    rv_assert(conn->unsent <= door->answers_bytes);
    rv_assert(conn->unsent == 0 || door->counts.busy > 0);
    conn->unsent -= bytes;
    door->answers_bytes -= bytes;
    if (conn->unsent == 0 && bytes > 0)
        door->counts.busy--;
}

/* Takes the first piece off, and tells its owner. */
static void piece_end(struct rv_door_conn *conn, bool begun)
{
    struct rv_door *door = conn->door;
    struct door_piece *piece = conn->first;
    void *owner = piece->owner;
    rv_assert(piece->next != NULL || conn->last == piece);
    rv_assert(door->pieces_count <= PIECES_KEPT);
    conn->first = piece->next;
    if (conn->first == NULL)
        conn->last = NULL;
    rv_buf_done(&piece->body);
    memory_return(door);
    if (door->pieces_count == PIECES_KEPT || piece->head.room > HEAD_BYTES_KEPT) {
        piece_free(piece);
    } else {
        rv_buf_reset(&piece->head);
        *piece = (struct door_piece){.head = piece->head, .next = door->pieces};
        door->pieces = piece;
        door->pieces_count++;
    }
    if (owner != NULL)
        door->options.host.over(door->options.host.self, owner, begun);
}

void queue_drop(struct rv_door_conn *conn)
{
    while (conn->first != NULL) {
        bytes_leave(conn, queue_bytes(conn->first) - conn->first->sent);
        piece_end(conn, conn->first->sent > 0);
    }
    rv_assert(conn->unsent == 0);
}

void queue_free(struct rv_door *door)
{
    while (door->pieces != NULL) {
        struct door_piece *piece = door->pieces;
        door->pieces = piece->next;
        piece_free(piece);
    }
}

/* The part behind the first `skip` bytes; less to skip remains. */
static int part_add(struct iovec *iov, int count, struct rv_str part, size_t *skip)
{
    rv_assert(count < IOV_MAX_COUNT);
    if (*skip >= part.len) {
        *skip -= part.len;
        return count;
    }
    iov[count].iov_base = (void *)(uintptr_t)(part.at + *skip);
    iov[count].iov_len = part.len - *skip;
    *skip = 0;
    return count + 1;
}

static int queue_gather(const struct rv_door_conn *conn, struct iovec *iov, size_t *ret_bytes)
{
    int count = 0;
    *ret_bytes = 0;
    for (const struct door_piece *piece = conn->first; piece != NULL && count + 3 <= IOV_MAX_COUNT;
         piece = piece->next) {
        size_t skip = piece->sent;
        rv_assert(skip <= queue_bytes(piece));
        *ret_bytes += queue_bytes(piece) - skip;
        count = part_add(iov, count, rv_buf_str(&piece->head), &skip);
        count = part_add(iov, count, rv_buf_str(&piece->body), &skip);
        count = part_add(iov, count, piece->tail, &skip);
        rv_assert(skip == 0);
    }
    return count;
}

/* So many bytes more are with the socket. */
static void queue_advance(struct rv_door_conn *conn, size_t bytes)
{
    bytes_leave(conn, bytes);
    while (conn->first != NULL) {
        size_t rest = queue_bytes(conn->first) - conn->first->sent;
        if (bytes < rest) {
            conn->first->sent += bytes;
            return;
        }
        bytes -= rest;
        piece_end(conn, true);
    }
    rv_assert(bytes == 0);
}

bool queue_send(struct rv_door_conn *conn)
{
    while (conn->first != NULL && conn->writable) {
        struct iovec iov[IOV_MAX_COUNT];
        size_t bytes;
        int count = queue_gather(conn, iov, &bytes);
        ssize_t sent = bytes > 0 ? wire_write(conn, iov, count) : 0;
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0 && errno != EAGAIN)
            return false;
        if (sent < 0 || (conn->tls == NULL && (size_t)sent < bytes))
            conn->writable = false;
        if (sent < 0)
            return true;
        rv_assert((size_t)sent <= bytes);
        conn->taken += (size_t)sent;
        queue_advance(conn, (size_t)sent);
    }
    return true;
}
