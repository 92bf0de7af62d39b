/* session_signal: sends signals by a request of their own. */
#include "cli/session_in.h"

#include "base/mem.h"
#include "cli/verb_op.h"
#include "proto/json.h"

#define ASIDES_MAX 16
#define ASIDE_MS 5000

void session_name(struct session *s, const json_t *exec)
{
    const char *sandbox = json_string_value(json_object_get(exec, "sandbox"));
    const char *id = json_string_value(json_object_get(exec, "id"));
    AUTO(json_decref) json_t *args = NULL;
    AUTO(buf_done) struct buf target = {0};

    if (!sandbox || !id || s->signal_target)
        return;
    args = json_pack("{s:s,s:s}", "id", sandbox, "exec", id);
    op_target(op_find("exec.signal"), args, &target);
    s->signal_target = buf_steal(&target);
}

/* Ignores errors: a command that has just ended cannot be signalled, and its exit is reported. */
static void on_closed(struct client *c, const struct err *e)
{
    struct session *s = client_arg(c);

    (void)e;
    s->asides--;
}

static int post(struct session *s, const char *name)
{
    static const struct client_ops ops = {.closed = on_closed};
    struct http_header headers[REQUEST_HEADERS + 1];
    char body[48];
    struct client *c;
    struct err ignored;
    size_t n = s->headers.n;

    memcpy(headers, s->headers.v, n * sizeof *headers);
    headers[n++] = (struct http_header){STR("content-type"), STR("application/json")};
    (void)snprintf(body, sizeof body, "{\"signal\":\"%s\"}", name);
    if (client_start(&(struct client_request){.loop = s->loop,
                                              .url = &s->url,
                                              .tls = s->tls,
                                              .method = "POST",
                                              .target = s->signal_target,
                                              .headers = headers,
                                              .header_count = n,
                                              .body = str_of(body),
                                              .total_ms = ASIDE_MS,
                                              .ops = &ops,
                                              .arg = s},
                     &c, &ignored) < 0)
        return -1;
    s->asides++;
    return 0;
}

void session_signal(struct session *s, const char *name)
{
    char text[64];

    if (s->sent > 0 && s->signal_target && s->asides < ASIDES_MAX && post(s, name) == 0)
        return;
    (void)snprintf(text, sizeof text, "{\"type\":\"signal\",\"signal\":\"%s\"}", name);
    session_send(s, text);
}
