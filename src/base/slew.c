#include "base/slew.h"

void rv_slew_begin(struct rv_slew *slew, int64_t wall, int64_t mono, int64_t floor)
{
    int64_t from = wall > floor ? wall : floor;
    *slew = (struct rv_slew){.shown = from, .base = from, .base_mono = mono};
}

int64_t rv_slew_read(struct rv_slew *slew, int64_t wall, int64_t mono)
{
    int64_t gone = mono - slew->base_mono;
    int64_t now = slew->base + gone;
    int64_t most = gone / RV_SLEW_DIVISOR;
    if (most > 0) {
        int64_t off = wall - now;
        now += off > most ? most : off < -most ? -most : off;
        slew->base = now;
        slew->base_mono = mono;
    }
    if (now > slew->shown)
        slew->shown = now;
    return slew->shown;
}

int64_t rv_slew_follow(struct rv_slew *slew, int64_t wall)
{
    if (wall > slew->shown)
        slew->shown = wall;
    return slew->shown;
}
