/* hello: a server that answers every request with a fixed body: what src/net alone costs. */
#include "net/server.h"

#include <signal.h>
#include <stdio.h>

static const struct server_limits limits = {
    .header_max = 16384,
    .header_count_max = 100,
    .body_max = 1 << 20,
    .connections_max = 20000,
    .connections_per_peer = 20000,
    .requests_per_conn = 100,
    .idle_ms = 600000,
    .header_ms = 10000,
    .body_idle_ms = 30000,
    .write_ms = 30000,
    .ws_message_max = 1 << 20,
    .grpc_message_max = 1 << 20,
};

static void answer(struct xchg *x, void *arg)
{
    (void)arg;
    xchg_reply(x, 200, "text/plain",
               STR("hello, world: sixty-four bytes of body in a small reply, ok.\n"));
}

static void on_signal(uv_signal_t *h, int signum)
{
    (void)signum;
    uv_close((uv_handle_t *)h, NULL);
    server_stop(h->data, 1000, NULL, NULL);
}

int main(int argc, char **argv)
{
    struct server_config c = {.loop = uv_default_loop(), .limits = &limits, .handler = answer};
    struct server *s;
    uv_signal_t term;
    struct err e;

    (void)signal(SIGPIPE, SIG_IGN);
    if (argc > 3) {
        c.tls_cert = argv[2];
        c.tls_key = argv[3];
    }
    if (server_new(&c, &s, &e) < 0 ||
        server_listen(s, argc > 1 ? argv[1] : "127.0.0.1:8199", LISTEN_API, &e) < 0) {
        fprintf(stderr, "hello: %s\n", e.msg);
        return 1;
    }
    printf("port %d\n", server_listener(s, 0)->port);
    (void)fflush(stdout);
    (void)uv_signal_init(c.loop, &term);
    term.data = s;
    (void)uv_signal_start(&term, on_signal, SIGTERM);
    (void)uv_run(c.loop, UV_RUN_DEFAULT);
    return uv_loop_close(c.loop) == 0 ? 0 : 1;
}
