/* I-32: an idle server writes once per lease of its role: it renews that role when three quarters
 * of it are over, and writes nothing between two renewals. */
#include "sim/check/check.h"

#include "sim/world/world.h"

/* What was still under way when the last task ended: late replies, renewals. */
enum { LEFT_OVER_MAX = 10 };

void check_idle(struct world *w, const struct bounds *before, bool waits)
{
    uint64_t claims = w->bounds.claims - before->claims;
    uint64_t writes = w->bounds.writes - before->writes;
    /* One more may have been on its way to the store when the last task ended. */
    uint64_t renewals = w->knobs.quiet_ms / (w->knobs.role_ms - w->knobs.role_ms / 4) + 2;
    if (claims > renewals)
        world_violate(w, "I-32", "the role was renewed %llu times in %u ms, %llu would do",
                      (unsigned long long)claims, w->knobs.quiet_ms, (unsigned long long)renewals);
    /* Where a target never answers, one probe follows the other. */
    bool nothing_happens = w->knobs.operators == 0 && !waits;
    if (nothing_happens && writes > LEFT_OVER_MAX)
        world_violate(w, "I-32", "%llu commits in %u ms in which nothing happens",
                      (unsigned long long)writes, w->knobs.quiet_ms);
}
