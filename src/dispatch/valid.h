/* valid.h - whether the counts of what is known of agents agree with its lists. */
#ifndef RV_DISPATCH_VALID_H
#define RV_DISPATCH_VALID_H

struct agents;

/* The rule that is broken; NULL: none. O(all that is known). */
const char *dispatch_broken(const struct agents *agents);

#endif
