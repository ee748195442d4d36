/* jitter.h - how long to pause before something is tried again. */
#ifndef RV_CLIENT_JITTER_H
#define RV_CLIENT_JITTER_H

#include "base/prng.h"

#include <stdint.h>

/* Full jitter: uniform in [0, min(cap_ms, base_ms * 2^failures)]. Whole waves of callers that
 * failed together come back spread out, which equal or half jitter does less well. */
int64_t rv_jitter_ms(struct rv_prng *prng, int64_t base_ms, int64_t cap_ms, unsigned failures);

#endif
