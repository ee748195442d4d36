#include "base/bucket.h"

#include "base/assert.h"
#include "base/time.h"

/* A rate of n a second is n thousandths of a token a millisecond. */
enum { TOKEN = 1000 };

/* What is there at `now`. A clock that stands, or seems to go back, gives nothing. */
static int64_t level_at(const struct rv_bucket *bucket, int64_t now)
{
    int64_t full = (int64_t)bucket->per_second * TOKEN;
    int64_t ms = now - bucket->at;
    rv_assert(bucket->level >= 0);
    rv_assert(bucket->level <= full);
    if (ms <= 0)
        return bucket->level;
    if (ms >= RV_SECOND_MS)
        return full;
    int64_t level = bucket->level + ms * (int64_t)bucket->per_second;
    return level < full ? level : full;
}

void rv_bucket_set(struct rv_bucket *bucket, uint32_t per_second, int64_t now)
{
    int64_t full = (int64_t)per_second * TOKEN;
    int64_t level = level_at(bucket, now);
    if (per_second == bucket->per_second)
        return;
    *bucket = (struct rv_bucket){per_second, now, level < full ? level : full};
}

bool rv_bucket_take(struct rv_bucket *bucket, int64_t now)
{
    if (bucket->per_second == 0)
        return true;
    bucket->level = level_at(bucket, now);
    if (now > bucket->at)
        bucket->at = now;
    if (bucket->level < TOKEN)
        return false;
    bucket->level -= TOKEN;
    return true;
}

void rv_bucket_hold(struct rv_bucket *bucket, int64_t until)
{
    if (until > bucket->at)
        bucket->at = until;
}

int64_t rv_bucket_next_at(const struct rv_bucket *bucket, int64_t now)
{
    int64_t lacks = TOKEN - level_at(bucket, now);
    if (bucket->per_second == 0 || lacks <= 0)
        return now;
    int64_t rate = bucket->per_second;
    int64_t from = now > bucket->at ? now : bucket->at;
    return from + (lacks + rate - 1) / rate;
}
