/* fake_net: a connection without a socket: stands in for stream.c, conn.c and server.c, so that a
 * protocol can be fed bytes by a fuzzer or a unit test.  Include it in one file of a program. */
#pragma once

#include "base/mem.h"
#include "net/conn.h"
#include "net/metrics.h"
#include "proto/json.h"

struct stream {
    struct buf out;
    struct peer peer;
};

struct server {
    uv_loop_t loop;
    struct server_limits limits;
    server_handler handler;
};

static struct server fake_server = {
    .limits = {.header_max = 4096,
               .header_count_max = 32,
               .body_max = 65536,
               .requests_per_conn = 8,
               .ws_message_max = 4096,
               .grpc_message_max = 4096},
};
static struct stream fake_stream;
static struct conn fake_conn;
static size_t fake_waits; /* calls of conn_wait */

struct buf *stream_out(struct stream *s)
{
    return &s->out;
}

size_t stream_pending(const struct stream *s)
{
    return buf_len(&s->out);
}

void stream_flush_soon(struct stream *s)
{
    (void)s;
}

const struct peer *stream_peer(const struct stream *s)
{
    return &s->peer;
}

uv_loop_t *server_loop(const struct server *s)
{
    return (uv_loop_t *)(uintptr_t)&s->loop;
}

const struct server_limits *server_limits(const struct server *s)
{
    return &s->limits;
}

void server_write_error(const struct server *s, struct buf *to, struct str path,
                        const struct err *e)
{
    (void)s;
    (void)path;
    json_error(to, e);
}

void server_handle(struct server *s, struct xchg *x)
{
    s->handler(x, NULL);
}

int server_hold(struct server *s, struct conn *c, int64_t change, struct err *e)
{
    (void)s, (void)c, (void)change, (void)e;
    return 0;
}

int conn_hold(struct conn *c, int64_t *count, int64_t now, struct err *e)
{
    (void)c, (void)e;
    *count = now;
    return 0;
}

void conn_wait(struct conn *c, enum conn_wait wait)
{
    c->wait = wait;
    fake_waits++;
}

void conn_close(struct conn *c)
{
    c->closing = true;
}

struct str conn_date(const struct conn *c)
{
    (void)c;
    return STR("Thu, 01 Jan 1970 00:00:00 GMT");
}

static UNUSED void fake_start(const struct conn_proto *proto, server_handler handler)
{
    if (uv_loop_init(&fake_server.loop) != 0)
        abort();
    net_metrics_add();
    fake_server.handler = handler;
    fake_conn = (struct conn){.server = &fake_server, .stream = &fake_stream, .proto = proto};
    list_init(&fake_conn.link);
    proto->start(&fake_conn);
}

/* One turn of the loop: what was scheduled is sent. */
static UNUSED void fake_turn(void)
{
    (void)uv_run(&fake_server.loop, UV_RUN_NOWAIT);
}

static UNUSED void fake_feed(struct str bytes)
{
    if (!fake_conn.closing)
        (void)fake_conn.proto->data(&fake_conn, bytes);
    fake_turn();
}

/* The peer is gone; afterwards every handle must be closed. */
static UNUSED void fake_end(void)
{
    fake_conn.proto->gone(&fake_conn);
    (void)uv_run(&fake_server.loop, UV_RUN_DEFAULT);
    if (uv_loop_close(&fake_server.loop) != 0)
        abort();
    buf_done(&fake_stream.out);
    xchg_free_spares(true);
}
