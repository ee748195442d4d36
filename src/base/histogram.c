#include "base/histogram.h"

const int64_t rv_histogram_bounds_us[RV_HISTOGRAM_BOUNDS] = {
    100,    250,    500,     1000,    2500,    5000,     10000,    25000,    50000,     100000,
    250000, 500000, 1000000, 2500000, 5000000, 10000000, 30000000, 60000000, 120000000, 300000000};

void rv_histogram_add(struct rv_histogram *histogram, int64_t us)
{
    unsigned i = 0;
    if (us < 0)
        us = 0;
    while (i < RV_HISTOGRAM_BOUNDS && us > rv_histogram_bounds_us[i])
        i++;
    histogram->buckets[i]++;
    histogram->sum_us += (uint64_t)us;
}
