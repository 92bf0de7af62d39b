/* relay: copies bytes both ways with back-pressure. */

/* A side that reads too slowly stops the reading of the other.  The end of a side is passed on
 * after all bytes before it. */
#include "egress/conn.h"

#include <errno.h>
#include <sys/socket.h>

#define ROUNDS 4 /* reads per turn, so that one busy connection leaves time for others */

static struct side *other(struct side *s)
{
    return s == &s->c->client ? &s->c->server : &s->c->client;
}

/* Of an HTTP request only its body, by its framing; later bytes are dropped. */
static bool send_up(struct conn *c, struct str bytes)
{
    struct err e;

    if (c->via != EGRESS_HTTP) {
        conn_send(&c->server, bytes);
        return true;
    }
    while (bytes.n > 0 && !c->request_done) {
        size_t used = 0;
        struct str part;
        int r = http1_body_next(&c->body, bytes, &used, &part, &e);

        if (r < 0)
            return false;
        conn_send(&c->server, str_make(bytes.p, used));
        bytes = str_skip(bytes, used);
        c->request_done = r > 0;
        if (used == 0)
            break;
    }
    return true;
}

/* False: the connection has ended. */
static bool move(struct side *from, struct side *to, uint64_t *count)
{
    struct conn *c = from->c;

    for (int i = 0; i < ROUNDS && buf_len(&to->out) == 0; i++) {
        ssize_t n = recv(from->io.fd, c->box->all->scratch, EGRESS_SCRATCH, 0);

        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return true;
        if (n < 0) {
            conn_reset(c, "a peer broke the connection");
            return false;
        }
        if (n == 0) {
            from->eof = true;
            return true;
        }
        *count += (uint64_t)n;
        c->moved_ms = (int64_t)uv_now(&c->box->all->loop);
        if (!conn_spend(c, (size_t)n)) {
            conn_reset(c, BUDGET_SPENT);
            return false;
        }
        if (to == &c->client) {
            conn_send(to, str_make(c->box->all->scratch, (size_t)n));
        } else if (!send_up(c, str_make(c->box->all->scratch, (size_t)n))) {
            conn_reset(c, "the request's body is malformed");
            return false;
        }
        if (n < EGRESS_SCRATCH / 2)
            return true; /* the rest, if any, is reported again */
    }
    return true;
}

static void pass_end_on(struct side *from, struct side *to)
{
    if (!from->eof || to->shut || buf_len(&to->out) > 0)
        return;
    to->shut = true;
    (void)shutdown(to->io.fd, SHUT_WR);
}

static void update(struct conn *c)
{
    struct side *cl = &c->client, *sv = &c->server;
    bool http = c->via == EGRESS_HTTP;

    if (cl->eof && sv->eof && buf_len(&cl->out) == 0) {
        conn_end(c, ""); /* closing passes the end to both */
        return;
    }
    if (!http || !c->request_done)
        /* some servers take the end of a complete request for its cancellation */
        pass_end_on(cl, sv);
    pass_end_on(sv, cl);
    if (cl->shut && http) {
        conn_linger(c);
        return;
    }
    if (cl->eof != sv->eof)
        conn_expire(c, CONN_HALF_MS);
    polled_want(&cl->io, (!cl->eof && !c->request_done && buf_len(&sv->out) == 0 ? EPOLLIN : 0) |
                             (buf_len(&cl->out) > 0 ? EPOLLOUT : 0));
    polled_want(&sv->io, (!sv->eof && buf_len(&cl->out) == 0 ? EPOLLIN : 0) |
                             (buf_len(&sv->out) > 0 ? EPOLLOUT : 0));
}

void relay_ready(struct side *s, uint32_t events)
{
    struct conn *c = s->c;
    uint64_t *count = s == &c->client ? &c->up : &c->down;

    if ((events & EPOLLOUT) && !conn_flush(s)) {
        conn_reset(c, "a peer broke the connection");
        return;
    }
    if ((events & EPOLLIN) && !s->eof && !(s == &c->client && c->request_done) &&
        !move(s, other(s), count))
        return;
    update(c);
}

void relay_begin(struct conn *c)
{
    c->state = CONN_RELAY;
    c->moved_ms = (int64_t)uv_now(&c->box->all->loop);
    conn_expire(c, CONN_IDLE_MS);
    if (c->via == EGRESS_HTTP)
        buf_take(&c->in, c->scan.at); /* its head is sent as rewritten */
    c->up += buf_len(&c->head) + buf_len(&c->in);
    if (!conn_spend(c, buf_len(&c->head) + buf_len(&c->in))) {
        conn_reset(c, BUDGET_SPENT);
        return;
    }
    if (buf_len(&c->head) > 0)
        conn_send(&c->server, buf_str(&c->head));
    buf_done(&c->head);
    if (!send_up(c, buf_str(&c->in))) {
        conn_reset(c, "the request's body is malformed");
        return;
    }
    buf_done(&c->in);
    update(c);
}
