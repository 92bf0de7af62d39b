#include "file_client.h"

#include "base/fd.h"

#include <stdio.h>
#include <stdlib.h>

static void must(bool ok, const char *what)
{
    if (ok)
        return;
    (void)fprintf(stderr, "file_client: %s\n", what);
    exit(1);
}

struct guest_file_call file_call(enum guest_file_op op, const char *path, uint32_t flags)
{
    return (struct guest_file_call){.op = (uint8_t)op,
                                    .flags = flags,
                                    .path = str_of(path),
                                    .length = GUEST_NO_LIMIT,
                                    .uid = GUEST_NO_ID,
                                    .gid = GUEST_NO_ID};
}

uint32_t file_begin(struct guest_client *c, const struct guest_file_call *call)
{
    struct guest_msg m = {.type = GUEST_FILE_CALL, .channel = c->next_channel};

    c->next_channel += 2;
    m.u.file = *call;
    guest_client_send(c, &m);
    return m.channel;
}

static void send_part(struct guest_client *c, uint32_t channel, struct flow_out *flow,
                      struct str data)
{
    struct guest_msg m = {.type = GUEST_DATA, .channel = channel, .stream = GUEST_IN};
    uint8_t head[GUEST_DATA_HEAD];
    size_t n = size_min(data.n - (size_t)flow->sent, flow_room(flow));
    bool last = flow->sent + n == data.n;

    m.u.data = (struct guest_data){flow->sent, str_make(data.p + flow->sent, n)};
    n = guest_data_head(head, &m, last);
    must(fd_write_all(c->fd, head, sizeof head) == 0 &&
             fd_write_all(c->fd, data.p + flow->sent, n) == 0 && fd_write_all(c->fd, "", 1) == 0,
         "send data");
    flow_sent(flow, n);
}

static void on_data(struct guest_client *c, const struct guest_msg *m, struct flow_in *flow,
                    struct buf *to)
{
    struct guest_msg ack = {.type = GUEST_ACK, .channel = m->channel, .stream = GUEST_OUT};
    struct str fresh;
    struct err e;

    must(flow_on_data(flow, &m->u.data, &fresh, &e) == 0, "data out of order");
    buf_add_str(to, fresh);
    if (flow_ack(flow, flow->got, false, &ack.u.ack))
        guest_client_send(c, &ack);
}

/* True: it was the channel's end. */
static bool on_end(const struct guest_msg *m, struct file_reply *r)
{
    if (m->type == GUEST_RESET)
        r->err = m->u.reset.err;
    else if (m->type == GUEST_FILE_DONE)
        r->done = m->u.done;
    else
        return false;
    return true;
}

bool file_more(struct guest_client *c, uint32_t channel, struct flow_in *flow, struct file_reply *r)
{
    for (;;) {
        struct guest_msg m = guest_client_next(c);

        if (m.channel != channel)
            continue;
        if (m.type == GUEST_DATA) {
            on_data(c, &m, flow, &r->data);
            return true;
        }
        if (on_end(&m, r))
            return false;
    }
}

struct file_reply file_run(struct guest_client *c, const struct guest_file_call *call,
                           const struct str *data)
{
    struct file_reply r = {0};
    uint32_t channel = file_begin(c, call);
    struct flow_out up;
    struct flow_in down;
    bool sent = !data, ended = false;
    struct err e;

    flow_out_init(&up, 0, GUEST_WINDOW_DOWN);
    flow_in_init(&down, 0, GUEST_WINDOW_UP);
    while (!ended) {
        struct guest_msg m;

        while (!sent && (flow_room(&up) > 0 || up.sent == data->n)) {
            send_part(c, channel, &up, *data);
            sent = up.sent == data->n;
        }
        m = guest_client_next(c);
        if (m.channel != channel)
            continue; /* the close of the one before */
        if (m.type == GUEST_ACK)
            must(flow_on_ack(&up, &m.u.ack, &e) == 0, "a wrong ack");
        else if (m.type == GUEST_DATA)
            on_data(c, &m, &down, &r.data);
        else
            ended = on_end(&m, &r);
    }
    return r;
}

enum err_code file_code(struct guest_client *c, enum guest_file_op op, const char *path,
                        uint32_t flags)
{
    struct guest_file_call call = file_call(op, path, flags);
    struct str x = STR("x");
    struct file_reply r;

    call.mode = 0644;
    r = file_run(c, &call, op == GUEST_FILE_WRITE || op == GUEST_FILE_TAR_IN ? &x : NULL);
    buf_done(&r.data);
    return r.err.code;
}
