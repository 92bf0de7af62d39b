/* exec: a program in a pod: channels of bytes in the messages of a WebSocket. */
#include "kube/exec.h"

#include "base/enc.h"
#include "base/mem.h"
#include "kube/status.h"
#include "net/ws_client.h"

#define V5 "v5.channel.k8s.io"
#define V4 "v4.channel.k8s.io"
#define MESSAGE_MAX (1 << 20)
#define FRAME_MAX (32 * 1024) /* servers take a continuation for a message: never fragment */
#define STATUS_MAX (64 * 1024)
#define CONNECT_MS 10000
#define HEAD_MS 30000
#define PING_MS 5000

enum channel { CHANNEL_IN, CHANNEL_OUT, CHANNEL_ERR, CHANNEL_STATUS, CHANNEL_END = 255 };

struct kube_exec {
    struct ws_client *ws;
    struct kube *k;
    const struct kube_exec_ops *ops;
    void *arg;
    struct buf status; /* of channel 3 */
    bool ended;        /* by channel 3 */
};

void *kube_exec_arg(const struct kube_exec *x)
{
    return x->arg;
}

static void on_opened(struct ws_client *ws)
{
    struct kube_exec *x = ws_client_arg(ws);

    if (x->ops->opened)
        x->ops->opened(x);
}

/* The last message of channel 3 ends it; the server's close frame may take its time. */
static void take_status(struct kube_exec *x, struct str part)
{
    if (part.n == 0 || buf_len(&x->status) + part.n > STATUS_MAX)
        return;
    buf_add_str(&x->status, part);
    x->ended = true;
}

static void on_message(struct ws_client *ws, enum ws_op kind, struct str data)
{
    struct kube_exec *x = ws_client_arg(ws);
    struct str part = str_skip(data, data.n > 0 ? 1 : 0);

    (void)kind;
    if (data.n == 0)
        return;
    switch ((unsigned char)data.p[0]) {
    case CHANNEL_OUT:
        if (x->ops->out && part.n > 0)
            x->ops->out(x, part);
        break;
    case CHANNEL_ERR:
        if (x->ops->err && part.n > 0)
            x->ops->err(x, part);
        break;
    case CHANNEL_STATUS:
        take_status(x, part);
        break;
    default: /* 255: the server closes one of the others (v5) */
        break;
    }
}

static void on_drained(struct ws_client *ws)
{
    struct kube_exec *x = ws_client_arg(ws);

    if (x->ops->drained)
        x->ops->drained(x);
}

/* Without the last message the outcome is not known, whatever the close frame says. */
static void on_closed(struct ws_client *ws, const struct ws_client_end *end)
{
    struct kube_exec *x = ws_client_arg(ws);
    struct err e = end->e;
    int exit = -1;

    if (x->ended) {
        e = (struct err){0};
        exit = kube_status_exit(buf_str(&x->status), &e);
    } else if (end->status != 0) {
        if (end->status == 401)
            kube_token_refused(x->k);
        (void)kube_status_err(end->status, end->body, &e);
    } else if (e.code == ERR_NONE) {
        (void)err_set(&e, ERR_UNAVAILABLE, 0, "the connection ended before the program did");
    }
    x->ops->closed(x, exit, &e);
    buf_done(&x->status);
    mem_free(x);
}

int kube_exec_write(struct kube_exec *x, struct str bytes)
{
    AUTO(buf_done) struct buf message = {0};
    int r = 0;

    while (bytes.n > 0) {
        size_t n = size_min(bytes.n, FRAME_MAX);

        buf_clear(&message);
        buf_add_char(&message, CHANNEL_IN);
        buf_add(&message, bytes.p, n);
        r |= ws_client_send(x->ws, WS_OP_BINARY, buf_str(&message));
        bytes = str_skip(bytes, n);
    }
    return r;
}

bool kube_exec_write_end(struct kube_exec *x)
{
    static const char end[] = {(char)CHANNEL_END, CHANNEL_IN};
    const char *protocol = ws_client_protocol(x->ws);

    if (!protocol || strcmp(protocol, V5) != 0)
        return false;
    (void)!ws_client_send(x->ws, WS_OP_BINARY, str_make(end, sizeof end));
    return true;
}

void kube_exec_pause(struct kube_exec *x, bool on)
{
    ws_client_pause(x->ws, on);
}

void kube_exec_cancel(struct kube_exec *x)
{
    ws_client_cancel(x->ws);
}

static void make_target(const struct kube_exec_request *r, struct buf *to)
{
    buf_printf(to,
               "/api/v1/namespaces/%s/pods/%s/exec?container=%s&stdin=%s&stdout=true"
               "&stderr=true&tty=false",
               r->space, r->pod, r->container, r->in ? "true" : "false");
    for (size_t i = 0; r->argv[i]; i++) {
        buf_add_c(to, "&command=");
        enc_percent(to, str_of(r->argv[i]));
    }
}

int kube_exec_start(struct kube *k, const struct kube_exec_request *r, struct kube_exec **ret,
                    struct err *e)
{
    static const struct ws_client_ops ops = {on_opened, on_message, on_drained, on_closed};
    AUTO(buf_done) struct buf target = {0};
    struct kube_exec *x = xzalloc(sizeof *x);
    struct kube_auth auth;

    *x = (struct kube_exec){.k = k, .ops = r->ops, .arg = r->arg};
    make_target(r, &target);
    kube_authorise(k, &auth);
    if (ws_client_start(&(struct ws_client_request){.loop = kube_loop(k),
                                                    .url = kube_url(k),
                                                    .tls = kube_tls(k),
                                                    .target = buf_cstr(&target),
                                                    .protocol = V5 ", " V4,
                                                    .headers = auth.v,
                                                    .header_count = auth.n,
                                                    .message_max = MESSAGE_MAX,
                                                    .connect_ms = CONNECT_MS,
                                                    .head_ms = HEAD_MS,
                                                    .ping_ms = PING_MS,
                                                    .ops = &ops,
                                                    .arg = x},
                        &x->ws, e) < 0) {
        mem_free(x);
        return -1;
    }
    *ret = x;
    return 0;
}
