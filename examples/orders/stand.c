#include "stand.h"

#include <stddef.h>

const char *shop_stand_wrong(enum shop_end end, const struct shop_stand *stand)
{
    if (stand->done > 1)
        return "was done more than once";
    if (stand->undone > 1)
        return "was undone more than once";
    if (stand->undone > stand->done)
        return "was undone without having been done";
    switch (end) {
    case SHOP_PROCESSED:
        if (stand->done == 0)
            return "is processed, but was never done";
        return stand->undone ? "is processed, but was undone" : NULL;
    case SHOP_COMPENSATED:
        return stand->done != stand->undone ? "is undone, but what was done stays" : NULL;
    case SHOP_ERROR:
        return NULL;
    case SHOP_OTHER:
    case SHOP_END_COUNT:
        break;
    }
    return "has no end";
}
