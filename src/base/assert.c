#include "base/assert.h"

#include <stddef.h>
#include <stdlib.h>

static rv_assert_handler assert_handler;

void rv_assert_set_handler(rv_assert_handler handler)
{
    assert_handler = handler;
}

void rv_assert_failed(const char *condition, const char *file, int line)
{
    if (assert_handler != NULL)
        assert_handler(condition, file, line);
    abort();
}
