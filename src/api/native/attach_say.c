/* attach_say: messages to an attached client. */
#include "api/native/attach_internal.h"

#define FRAME_HEAD 9 /* stream and offset before the bytes */

int say_text(struct attach *a, const struct buf *json)
{
    return a->ws ? ws_send(a->ws, WS_TEXT, buf_str(json)) : 0;
}

void say_exec(struct attach *a, const char *type)
{
    AUTO(buf_done) struct buf json = {0};
    struct jw w = {.to = &json};

    jw_object(&w);
    jw_kc(&w, "type", type);
    jw_key(&w, "exec");
    exec_write_json(&w, a->x);
    if (a->run && strcmp(type, "started") == 0) {
        jw_key(&w, "sandbox");
        sandbox_write_brief(&w, exec_sandbox(a->x));
    }
    jw_object_end(&w);
    (void)!say_text(a, &json); /* few and small: only output and screens wait */
}

void say_error(struct attach *a, const struct err *e)
{
    AUTO(buf_done) struct buf json = {0}, error = {0};
    struct jw w = {.to = &json};
    struct str inner;

    json_error(&error, e); /* {"error": {…}}: its member is ours too */
    inner = str_skip(buf_str(&error), 1);
    jw_object(&w);
    jw_kc(&w, "type", "error");
    buf_add_char(&json, ',');
    buf_add_str(&json, inner);
    (void)!say_text(a, &json);
}

void say_role(struct attach *a)
{
    AUTO(buf_done) struct buf json = {0};
    struct jw w = {.to = &json};

    jw_object(&w);
    jw_kc(&w, "type", "role");
    jw_kc(&w, "role", op_attach_roles[a->seat.role == CONSOLE_CONTROLLER]);
    jw_object_end(&w);
    (void)!say_text(a, &json);
}

void say_members(struct attach *a)
{
    AUTO(buf_done) struct buf json = {0};
    struct jw w = {.to = &json};
    struct exec_info i;

    exec_info(a->x, &i);
    jw_object(&w);
    jw_kc(&w, "type", "members");
    members_write(&w, a->api, i.id);
    jw_object_end(&w);
    (void)!say_text(a, &json);
}

void say_lag(struct attach *a, int64_t ms)
{
    AUTO(buf_done) struct buf json = {0};
    struct jw w = {.to = &json};
    struct exec_info i;

    exec_info(a->x, &i);
    jw_object(&w);
    jw_kc(&w, "type", "lag");
    jw_kint(&w, "ms", ms);
    jw_kint(&w, "bytes", a->raw ? i64_max(i.out_end - a->sent[0], 0) : 0);
    jw_object_end(&w);
    (void)!say_text(a, &json);
}

int say_bytes(struct attach *a, enum exec_which stream, int64_t offset, struct str bytes)
{
    unsigned char head[FRAME_HEAD] = {(unsigned char)stream};

    for (int i = 0; i < 8; i++)
        head[1 + i] = (unsigned char)((uint64_t)offset >> (56 - 8 * i));
    buf_clear(&a->frame);
    buf_add(&a->frame, head, sizeof head);
    buf_add_str(&a->frame, bytes);
    a->sent[stream == EXEC_STDERR] = offset + (int64_t)bytes.n;
    return ws_send(a->ws, WS_BINARY, buf_str(&a->frame));
}

int say_gap(struct attach *a, enum exec_which stream, int64_t from, int64_t to)
{
    AUTO(buf_done) struct buf json = {0};
    struct jw w = {.to = &json};

    jw_object(&w);
    jw_kc(&w, "type", "gap");
    jw_kc(&w, "stream", op_streams[stream == EXEC_STDERR]);
    jw_kint(&w, "from", from);
    jw_kint(&w, "to", to);
    jw_object_end(&w);
    return say_text(a, &json);
}

int say_size(struct attach *a, int64_t offset, int rows, int cols)
{
    AUTO(buf_done) struct buf json = {0};
    struct jw w = {.to = &json};

    jw_object(&w);
    jw_kc(&w, "type", "size");
    jw_kint(&w, "offset", offset);
    jw_kint(&w, "rows", rows);
    jw_kint(&w, "cols", cols);
    jw_object_end(&w);
    return say_text(a, &json);
}
