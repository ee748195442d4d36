/* bucket.h - a token bucket: so many a second, and at most one second's worth at once. */
#ifndef RV_BASE_BUCKET_H
#define RV_BASE_BUCKET_H

#include <stdbool.h>
#include <stdint.h>

/* Pure arithmetic over the instants that it is told. In any window of w milliseconds at most
 * per_second * (1 + w / 1000) tokens are taken. It begins empty: whoever forgets a bucket and makes
 * it again, as a restart does, cannot give more by that. All zero: no limit. */
struct rv_bucket {
    uint32_t per_second; /* 0: any number */
    int64_t at;          /* the instant of `level` */
    int64_t level;       /* thousandths of a token */
};

enum { RV_BUCKET_RATE_MAX = 1000000 };

/* From `now` on so many a second. A bucket that had another rate keeps what it has, as far as it
 * holds it. */
void rv_bucket_set(struct rv_bucket *bucket, uint32_t per_second, int64_t now);
/* Whether there is a token at `now`, and then it is taken. */
bool rv_bucket_take(struct rv_bucket *bucket, int64_t now);
/* Nothing is added before `until`: what was taken now is recorded with that instant. */
void rv_bucket_hold(struct rv_bucket *bucket, int64_t until);
/* From when on there is a token; `now` or earlier: there is one. */
int64_t rv_bucket_next_at(const struct rv_bucket *bucket, int64_t now);

#endif
