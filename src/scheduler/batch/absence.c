/* The server's own absence, which is nobody's failure (RULES 9): it did not run, or nothing
 * could be written. */
#include "scheduler/batch/absence.h"

#include "base/assert.h"
#include "scheduler/batch/log.h"
#include "scheduler/batch/state.h"

/* A look at the clock that comes so much later than it should have is an absence. */
enum { ABSENCE_SLACK_MS = 500 };

/* The two oldest become one: what came due between them, and is not looked at yet, waits because of
 * the absences since. */
static void absence_add(struct rv_scheduler *s, int64_t from, int64_t until, int64_t gone_from)
{
    rv_assert(s->absences_count <= ABSENCES_MAX);
    if (s->absences_count == ABSENCES_MAX) {
        s->absences[0].until = s->absences[1].until;
        memmove(&s->absences[1], &s->absences[2], (ABSENCES_MAX - 2) * sizeof s->absences[0]);
        s->absences_count--;
    }
    rv_assert(s->absences_count < ABSENCES_MAX);
    s->absences[s->absences_count++] = (struct absence){from, until, gone_from};
}

void absence_of_other(struct rv_scheduler *s, int64_t since)
{
    rv_assert(s->looked);
    /* Its tasks come in pieces. */
    for (size_t i = 0; i < s->absences_count; i++) {
        if (s->absences[i].from == since && s->absences[i].gone_from == since) {
            s->absences[i].until = s->batch.now;
            return;
        }
    }
    absence_add(s, since, s->batch.now, since);
}

int64_t absence_ms(const struct rv_scheduler *s)
{
    return s->options.scan_interval_ms + ABSENCE_SLACK_MS;
}

bool absence_between(const struct rv_scheduler *s, int64_t from, int64_t until)
{
    return until - from > absence_ms(s);
}

static void absence_log(struct rv_scheduler *s, int64_t ms)
{
    log_event_number(s, RV_LOG_WARNING, "absence", "ms", ms);
}

int64_t absence_note(struct rv_scheduler *s)
{
    int64_t now = s->batch.now;
    int64_t gone = now - s->last_now;
    int64_t first_gone = 0;
    bool late = absence_between(s, s->last_now, now);
    /* What came due before this process first looked, no process has looked at: one that had been
     * there would have decided it. The last one may have lived for a moment only. */
    if (!s->looked || late)
        absence_add(s, s->looked ? s->last_now : 0, now, s->last_now);
    if (s->last_now != 0 && gone > 0 && (!s->looked || late))
        absence_log(s, gone);
    if (!s->looked) {
        s->first_now = now;
        first_gone = s->last_now != 0 ? gone : 0;
    }
    s->looked = true;
    if (now > s->last_now)
        s->moved_mono = s->batch.mono_now;
    if (!s->unwritable)
        s->unwritable_from = s->last_now;
    s->last_now = now;
    return first_gone;
}

/* While nothing can be written no reply can be taken: the server is as good as absent, from the
 * last look before the first refusal until the next write. Reads alone tell nothing. */
bool absence_lasts(const struct rv_scheduler *s)
{
    return s->full || (s->unwritable && absence_between(s, s->unwritable_from, s->batch.now));
}

void absence_refusal_note(struct rv_scheduler *s, enum rv_err err)
{
    if (rv_err_family(err) == RV_FAMILY_RETRY || s->batch.lost)
        s->unwritable = true;
    if (err == RV_ERR_FULL || err == RV_ERR_DISPLACED) {
        s->full = s->full || err == RV_ERR_FULL;
        /* The role is renewed an interval from now: a write that finds out if there is space. */
        s->supervisor.role_until = s->batch.now + s->options.role_lease_ms / 4 +
                                   s->options.scan_interval_ms;
    } else if (s->unwritable && s->batch.wrote) {
        if (absence_lasts(s)) {
            absence_add(s, s->unwritable_from, s->batch.now, s->unwritable_from);
            absence_log(s, s->batch.now - s->unwritable_from);
        }
        s->full = s->unwritable = false;
    }
}

static const struct absence *absence_of(const struct rv_scheduler *s, int64_t at)
{
    for (size_t i = 0; i < s->absences_count; i++)
        if (at > s->absences[i].from && at <= s->absences[i].until)
            return &s->absences[i];
    return NULL;
}

bool absence_covers(const struct rv_scheduler *s, int64_t at)
{
    return (absence_lasts(s) && at > s->unwritable_from) || absence_of(s, at) != NULL;
}

int64_t absence_uncounted(const struct rv_scheduler *s, int64_t at)
{
    const struct absence *absence = absence_of(s, at);
    int64_t from = absence != NULL ? absence->gone_from : s->unwritable_from;
    if (!absence_covers(s, at))
        return 0;
    return from != 0 && from < at ? from : at - 1; /* it was over already, and nobody looked */
}

int64_t absence_calm_since(const struct rv_scheduler *s)
{
    int64_t since = s->first_now;
    for (size_t i = 0; i < s->absences_count; i++)
        since = s->absences[i].until > since ? s->absences[i].until : since;
    return absence_lasts(s) ? s->batch.now : since;
}

int64_t absence_since(const struct rv_scheduler *s, int64_t since, int64_t at)
{
    const struct absence *absence = absence_of(s, at);
    int64_t from = absence != NULL ? absence->until : 0;
    return since < s->first_now && from < s->first_now ? s->first_now : from;
}
