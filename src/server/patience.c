#include "server/patience.h"

#include "base/os/clock.h"

void rv_patience_init(struct rv_patience *patience)
{
    atomic_init(&patience->until, INT64_MAX);
}

void rv_patience_tell(void *self, int64_t until)
{
    struct rv_patience *patience = self;
    atomic_store(&patience->until, until);
}

bool rv_patience_over(void *self)
{
    struct rv_patience *patience = self;
    return rv_clock_mono_ms() > atomic_load(&patience->until);
}
