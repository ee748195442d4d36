#include "base/err.h"

struct err_row {
    const char *text;
    enum rv_err_family family;
    int http;
    int exit_code;
};

/* clang-format off */
static const struct err_row err_rows[RV_ERR_COUNT] = {
    [RV_OK] = {"done", RV_FAMILY_NONE, 200, 0},
#define RV_ERR_ROW(name, family, text, http, exit_code)                                            \
    [RV_ERR_##name] = {text, RV_FAMILY_##family, http, exit_code},
    RV_ERR_TABLE(RV_ERR_ROW)
#undef RV_ERR_ROW
};
/* clang-format on */

static const struct err_row err_unknown = {"unknown error", RV_FAMILY_STOP, 500, 1};

static const struct err_row *err_row(enum rv_err err)
{
    return (unsigned)err < RV_ERR_COUNT ? &err_rows[err] : &err_unknown;
}

const char *rv_err_text(enum rv_err err)
{
    return err_row(err)->text;
}

enum rv_err_family rv_err_family(enum rv_err err)
{
    return err_row(err)->family;
}

int rv_err_http(enum rv_err err)
{
    return err_row(err)->http;
}

int rv_err_exit(enum rv_err err)
{
    return err_row(err)->exit_code;
}
