/* histogram.h - how long something took, counted in buckets of fixed bounds. */
#ifndef RV_BASE_HISTOGRAM_H
#define RV_BASE_HISTOGRAM_H

#include <stdint.h>

/* The bounds are those of Prometheus and what lies below and above: 0.1 ms to 5 min. */
enum { RV_HISTOGRAM_BOUNDS = 20 };
extern const int64_t rv_histogram_bounds_us[RV_HISTOGRAM_BOUNDS];

/* Zeroed: nothing was counted. */
struct rv_histogram {
    uint64_t buckets[RV_HISTOGRAM_BOUNDS + 1]; /* each up to its bound; the last above all */
    uint64_t sum_us;
};

/* What is negative, since clocks are read apart, counts as nothing. */
void rv_histogram_add(struct rv_histogram *histogram, int64_t us);

#endif
