#include "api/put.h"

#include "base/assert.h"
#include "base/time.h"
#include "json/json.h"

void rv_put_comma(struct rv_buf *buf)
{
    if (buf->len == 0)
        return;
    char last = buf->at[buf->len - 1];
    if (last != '{' && last != '[')
        rv_buf_add_char(buf, ',');
}

void rv_put_open(struct rv_buf *buf, char bracket)
{
    rv_assert(bracket == '{' || bracket == '[');
    /* After a name stands its value: no comma. */
    if (buf->len > 0 && buf->at[buf->len - 1] != ':')
        rv_put_comma(buf);
    rv_buf_add_char(buf, bracket);
}

void rv_put_name(struct rv_buf *buf, const char *name)
{
    rv_assert(name[0] != '\0');
    rv_put_comma(buf);
    rv_buf_add_char(buf, '"');
    rv_buf_add_str(buf, rv_str_of(name));
    rv_buf_lit(buf, "\":");
}

void rv_put_open_in(struct rv_buf *buf, const char *name, char bracket)
{
    rv_put_name(buf, name);
    rv_buf_add_char(buf, bracket);
}

void rv_put_text(struct rv_buf *buf, const char *name, struct rv_str text)
{
    rv_put_name(buf, name);
    rv_json_write_string(buf, text);
}

void rv_put_text_if(struct rv_buf *buf, const char *name, struct rv_str text)
{
    if (text.at != NULL)
        rv_put_text(buf, name, text);
}

void rv_put_int(struct rv_buf *buf, const char *name, int64_t number)
{
    rv_put_name(buf, name);
    rv_buf_add_int(buf, number);
}

void rv_put_bool(struct rv_buf *buf, const char *name, bool truth)
{
    rv_put_name(buf, name);
    if (truth)
        rv_buf_lit(buf, "true");
    else
        rv_buf_lit(buf, "false");
}

void rv_put_raw_if(struct rv_buf *buf, const char *name, struct rv_str json)
{
    if (json.at == NULL)
        return;
    rv_put_name(buf, name);
    rv_buf_add_str(buf, json);
}

/* For texts without anything to escape. */
static void put_plain(struct rv_buf *buf, const char *name, struct rv_str text)
{
    rv_put_name(buf, name);
    rv_buf_add_char(buf, '"');
    rv_buf_add_str(buf, text);
    rv_buf_add_char(buf, '"');
}

void rv_put_instant_if(struct rv_buf *buf, const char *name, int64_t at)
{
    char text[RV_INSTANT_TEXT_BYTES];
    if (at != 0)
        put_plain(buf, name, rv_instant_text(at, text));
}

void rv_put_task(struct rv_buf *buf, const char *name, struct rv_task_id id)
{
    char text[RV_ID_TEXT_BYTES];
    put_plain(buf, name, rv_task_text(id, text));
}

void rv_put_step(struct rv_buf *buf, const char *name, struct rv_step_id id)
{
    char text[RV_STEP_TEXT_BYTES];
    put_plain(buf, name, rv_step_text(id, text));
}

void rv_put_workflow(struct rv_buf *buf, const struct rv_workflow_row *row)
{
    char name[512];
    size_t len = 0;
    const struct rv_str parts[] = {row->space, RV_STR("/"), row->name, RV_STR(":"), row->version};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        size_t n = parts[i].len < sizeof name - len ? parts[i].len : sizeof name - len;
        if (n > 0)
            memcpy(name + len, parts[i].at, n);
        len += n;
    }
    rv_put_text(buf, "workflow", (struct rv_str){name, len});
}

void rv_put_token(struct rv_buf *buf, const char *name, uint64_t token)
{
    char text[16];
    for (int i = 15; i >= 0; i--) {
        text[i] = "0123456789abcdef"[token & 15];
        token >>= 4;
    }
    put_plain(buf, name, (struct rv_str){text, sizeof text});
}
