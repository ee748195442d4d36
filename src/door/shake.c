/* TLS handshakes. Each costs a thousand times what a request costs, and tens of KiB until it is
 * over: so many are under way at most, and they get half of the thread. A connection takes neither
 * before all of its hello has come.
 *
 * One address must not keep the others out. Its first few handshakes wait in one queue and all more
 * of them, a crowd, in another; the two take turns with those that are under way. Where no place is
 * left, the oldest of a crowd makes room for one that is in none. */
#include "base/assert.h"
#include "base/os/clock.h"
#include "door/door_priv.h"

enum {
    SHAKES_MAX = 1000,   /* under way at a time */
    ADDRESS_SHAKES = 32, /* begun or waiting: more of an address are a crowd */
    SHAKE_OLD_MS = 1000, /* so long under way, one makes room for another */
    SHAKE_US = 2000      /* of handshakes in a turn; as long they rest after it */
};

/* ---- addresses ---- */

static uint64_t *address_count(const struct rv_door_conn *conn)
{
    return conn->shake_counted ? rv_map_find(&conn->door->shakers, gate_peer_key(conn), 0) : NULL;
}

/* From its hello to the end of its handshake. */
static void address_enter(struct rv_door_conn *conn)
{
    struct rv_door *door = conn->door;
    rv_assert(conn->state == CONN_SHAKE);
    if (!gate_peer_counts(conn))
        return;
    uint64_t key = gate_peer_key(conn);
    uint64_t *count = rv_map_find(&door->shakers, key, 0);
    if (count != NULL)
        (*count)++;
    conn->shake_counted = count != NULL || rv_map_put(&door->shakers, key, 0, 1) == RV_OK;
}

static void address_leave(struct rv_door_conn *conn)
{
    uint64_t *count = address_count(conn);
    rv_assert(count != NULL || !conn->shake_counted);
    rv_assert(count == NULL || *count > 0);
    if (count != NULL && --*count == 0)
        (void)rv_map_remove(&conn->door->shakers, gate_peer_key(conn), 0);
    conn->shake_counted = false;
}

static bool is_crowd(const struct rv_door_conn *conn)
{
    const uint64_t *count = address_count(conn);
    return count != NULL && *count > ADDRESS_SHAKES;
}

/* ---- places ---- */

static void shake_enter(struct rv_door_conn *conn)
{
    struct rv_door *door = conn->door;
    rv_assert(!conn->shaking);
    rv_assert(conn->shake_after == NULL);
    rv_assert(door->shaking_count < SHAKES_MAX);
    conn->shaking = true;
    conn->shake_before = door->shaking_last;
    if (door->shaking_last != NULL)
        door->shaking_last->shake_after = conn;
    else
        door->shaking_first = conn;
    door->shaking_last = conn;
    door->shaking_count++;
    limits_debt_begin(conn, DEBT_SHAKE);
}

static void shake_leave(struct rv_door_conn *conn)
{
    struct rv_door *door = conn->door;
    rv_assert(door->shaking_count > 0);
    rv_assert(conn->shake_before != NULL || door->shaking_first == conn);
    rv_assert(conn->shake_after != NULL || door->shaking_last == conn);
    conn->shaking = false;
    if (conn->shake_before != NULL)
        conn->shake_before->shake_after = conn->shake_after;
    else
        door->shaking_first = conn->shake_after;
    if (conn->shake_after != NULL)
        conn->shake_after->shake_before = conn->shake_before;
    else
        door->shaking_last = conn->shake_before;
    door->shaking_count--;
}

void shake_left(struct rv_door_conn *conn)
{
    if (conn->shaking)
        shake_leave(conn);
    address_leave(conn);
}

static struct rv_door_conn *crowd_oldest(const struct rv_door *door)
{
    struct rv_door_conn *conn = door->shaking_first;
    while (conn != NULL && !is_crowd(conn))
        conn = conn->shake_after;
    return conn;
}

/* Ms until one gets a place that is not in a crowd; 0: there is one, or one that is made. */
static int64_t place_ms(const struct rv_door *door, bool crowd)
{
    if (door->shaking_count < SHAKES_MAX)
        return 0;
    rv_assert(door->shaking_first != NULL);
    int64_t rest_ms = SHAKE_OLD_MS - (door->now - door->shaking_first->since);
    return rest_ms <= 0 || (!crowd && crowd_oldest(door) != NULL) ? 0 : rest_ms;
}

static void place_make(struct rv_door *door, bool crowd)
{
    struct rv_door_conn *leaves = crowd ? NULL : crowd_oldest(door);
    if (door->shaking_count >= SHAKES_MAX)
        conn_cut(leaves != NULL ? leaves : door->shaking_first);
}

/* Ms until the first of the queue may begin; 0: now. Negative: nobody waits. */
static int64_t queue_ms(const struct rv_door *door, enum door_shakes queue)
{
    const struct rv_door_conn *first = door->shakes[queue].first;
    if (first == NULL)
        return -1;
    return queue <= SHAKES_BEGUN || first->state == CONN_DEAD
               ? 0
               : place_ms(door, queue == SHAKES_CROWD);
}

/* 1: done; 0: not yet; -1: it failed. `queue`: from which it was taken. */
static int shake_step(struct rv_door_conn *conn, enum door_shakes queue)
{
    struct rv_door *door = conn->door;
    if (conn->state != CONN_SHAKE || conn->broken)
        return -1;
    if (conn->tls != NULL)
        return tls_shake(conn);
    int there = tls_hello_there(conn);
    if (there <= 0)
        return there;
    if (queue == SHAKES_NEW) {
        address_enter(conn);
        conn_list_add(&door->shakes[is_crowd(conn) ? SHAKES_CROWD : SHAKES_FEW], conn);
        return 0;
    }
    rv_assert(queue == SHAKES_FEW || queue == SHAKES_CROWD);
    place_make(door, queue == SHAKES_CROWD);
    shake_enter(conn);
    return tls_begin(conn) == RV_OK ? tls_shake(conn) : -1;
}

/* To look for a hello costs next to nothing; the other queues take turns. */
static struct rv_door_conn *shake_next(struct rv_door *door, enum door_shakes *ret_queue)
{
    bool any = door->shakes[SHAKES_NEW].first != NULL;
    *ret_queue = SHAKES_NEW;
    for (int i = SHAKES_BEGUN; i < SHAKES_QUEUES && !any; i++) {
        door->shakes_turn = door->shakes_turn % (SHAKES_QUEUES - 1) + 1;
        *ret_queue = (enum door_shakes)door->shakes_turn;
        any = queue_ms(door, *ret_queue) == 0;
    }
    return any ? conn_list_take(&door->shakes[*ret_queue]) : NULL;
}

void shake_run(struct rv_door *door)
{
    bool any = false;
    for (int i = 0; i < SHAKES_QUEUES; i++)
        any = any || door->shakes[i].first != NULL;
    int64_t began = any ? rv_clock_mono_us() : 0, now = began;
    if (began < door->shake_at)
        return;
    struct rv_door_conn *conn;
    enum door_shakes queue;
    while (now - began < SHAKE_US && (conn = shake_next(door, &queue)) != NULL) {
        int done = shake_step(conn, queue);
        now = rv_clock_mono_us();
        if (conn->state == CONN_DEAD || done == 0)
            continue;
        if (done < 0) {
            conn_cut(conn);
            continue;
        }
        rv_assert(conn->state == CONN_SHAKE);
        rv_assert(conn->tls != NULL);
        shake_left(conn);
        conn->state = CONN_READ;
        door_push(conn);
    }
    if (now > began)
        door->shake_at = now + (now - began);
}

int64_t shake_wait_ms(const struct rv_door *door, int64_t most)
{
    int64_t wait_ms = most;
    for (int i = 0; i < SHAKES_QUEUES; i++) {
        int64_t ms = queue_ms(door, (enum door_shakes)i);
        wait_ms = ms >= 0 && ms < wait_ms ? ms : wait_ms;
    }
    if (wait_ms == 0) {
        wait_ms = (door->shake_at - rv_clock_mono_us() + 999) / 1000;
        wait_ms = wait_ms > 0 ? wait_ms : 0;
    }
    return wait_ms < most ? wait_ms : most;
}
