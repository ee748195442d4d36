#include "scheduler/batch/registered.h"

enum { UNKNOWN = -1 };

void registered_forget(struct registered *registered)
{
    for (int i = 0; i < RV_REGISTRY_COUNT; i++)
        registered->seen[i] = registered->known[i] = UNKNOWN;
}

void registered_see(struct registered *registered, const struct rv_wants *wants, bool shared)
{
    for (int i = 0; i < RV_REGISTRY_COUNT; i++) {
        if (wants != NULL)
            registered->seen[i] = wants->registry[i];
        else if (shared)
            registered->seen[i] = UNKNOWN;
    }
}

bool registered_changed(const struct registered *registered, enum rv_registry kind)
{
    return registered->seen[kind] == UNKNOWN || registered->seen[kind] != registered->known[kind];
}

void registered_know(struct registered *registered, enum rv_registry kind)
{
    registered->known[kind] = registered->seen[kind];
}
