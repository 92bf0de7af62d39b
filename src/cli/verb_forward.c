/* verb_forward: holt port-forward. */
#include "cli/verbs.h"

#include "base/enc.h"
#include "base/mem.h"
#include "cli/forward.h"
#include "cli/verb_op.h"
#include "proto/json.h"

#include <inttypes.h>
#include <signal.h>

#define PORTS_MAX 64
#define BACKLOG 128

struct door { /* one listener */
    uv_tcp_t tcp;
    struct forward_to *to;
    char *target;
    int64_t local, remote;
};

/* "8080:80", "80" for both, ":80" or "0:80" for a free local port. */
static int parse_ports(const char *text, int64_t *ret_local, int64_t *ret_remote, struct err *e)
{
    struct str remote, local = str_cut(str_of(text), ':', &remote);

    if (!strchr(text, ':'))
        remote = local;
    *ret_local = 0;
    if ((local.n > 0 && str_parse_i64(local, ret_local) < 0) ||
        str_parse_i64(remote, ret_remote) < 0 || *ret_local < 0 || *ret_local > 65535 ||
        *ret_remote < 1 || *ret_remote > 65535) {
        (void)err_set(e, ERR_INVALID, 0, "'%.60s' is not LOCAL:REMOTE", text);
        return err_hint(e, "two port numbers: 8080:80; 80 alone is 80:80, :80 takes a free one");
    }
    return 0;
}

static void on_connection(uv_stream_t *s, int status)
{
    struct door *d = s->data;

    if (status == 0)
        forward_accept(d->to, s, d->target);
}

static int open_door(struct door *d, const char *address, struct err *e)
{
    struct sockaddr_storage where;
    int size = sizeof where, r;
    bool v6 = strchr(address, ':') != NULL;

    r = v6 ? uv_ip6_addr(address, (int)d->local, (struct sockaddr_in6 *)&where)
           : uv_ip4_addr(address, (int)d->local, (struct sockaddr_in *)&where);
    if (r < 0)
        return err_set(e, ERR_INVALID, 0, "'%.60s' is not an address", address);
    r = uv_tcp_init(d->to->loop, &d->tcp);
    d->tcp.data = d;
    if (r == 0)
        r = uv_tcp_bind(&d->tcp, (struct sockaddr *)&where, 0);
    if (r == 0)
        r = uv_listen((uv_stream_t *)&d->tcp, BACKLOG, on_connection);
    if (r == 0)
        r = uv_tcp_getsockname(&d->tcp, (struct sockaddr *)&where, &size);
    if (r < 0)
        return err_set(e, ERR_CONFLICT, -r, "listen on %s port %" PRId64, address, d->local);
    d->local = ntohs(v6 ? ((struct sockaddr_in6 *)&where)->sin6_port
                        : ((struct sockaddr_in *)&where)->sin_port);
    return 0;
}

static void say_door(const struct door *d, const char *address, const char *sandbox)
{
    AUTO(buf_done) struct buf line = {0};

    buf_printf(&line, strchr(address, ':') ? "[%s]:%" PRId64 " -> " : "%s:%" PRId64 " -> ", address,
               d->local);
    print_safe(&line, str_of(sandbox));
    buf_printf(&line, ":%" PRId64 "\n", d->remote);
    cli_write(buf_str(&line));
}

static int open_doors(struct door *doors, const json_t *args, struct forward_to *to, struct err *e)
{
    const json_t *ports = json_object_get(args, "ports");
    const char *address = args_str(args, "address"), *sandbox = args_str(args, "sandbox");

    if (json_array_size(ports) > PORTS_MAX)
        return err_set(e, ERR_INVALID, 0, "more than %d ports at once", PORTS_MAX);
    for (size_t i = 0; i < json_array_size(ports); i++) {
        struct door *d = &doors[i];
        AUTO(buf_done) struct buf target = {0};

        d->to = to;
        if (parse_ports(json_string_value(json_array_get(ports, i)), &d->local, &d->remote, e) < 0)
            return -1;
        buf_add_c(&target, "/holt/v1/sandboxes/");
        enc_percent(&target, str_of(sandbox));
        buf_printf(&target, "/ports/%" PRId64, d->remote);
        d->target = buf_steal(&target);
        if (open_door(d, address ? address : "127.0.0.1", e) < 0)
            return -1;
    }
    for (size_t i = 0; i < json_array_size(ports); i++)
        say_door(&doors[i], address ? address : "127.0.0.1", sandbox);
    return 0;
}

static int check_sandbox(const struct cli *c, const json_t *args, struct err *e)
{
    AUTO(json_decref) json_t *who = json_pack("{s:s}", "id", args_str(args, "sandbox"));
    AUTO(reply_done) struct reply reply = {0};

    return op_request(c, op_find("sandbox.get"), who, &reply, e);
}

/* Runs until a signal ends the program; open connections end with it. */
int port_forward_run(struct cli *c, const struct cmd *cmd, const json_t *args, struct err *e)
{
    AUTO(target_done) struct target t = {0};
    AUTO(client_url_done) struct client_url url = {0};
    AUTO(dial_tls_free) struct dial_tls *tls = NULL;
    AUTO(request_headers_done) struct request_headers headers = {0};
    AUTO(mem_free) struct door *doors = xzalloc(PORTS_MAX * sizeof *doors);
    struct forward_to to = {.t = &t, .url = &url, .headers = &headers};
    int r;

    (void)cmd;
    if (target_choose(c, &t, e) < 0 || client_url_parse(t.server, &url, e) < 0 ||
        check_sandbox(c, args, e) < 0)
        return -1;
    if (url.tls && dial_tls_new(t.cacert, &tls, e) < 0)
        return -1;
    request_headers_make(&t, &headers);
    to.tls = tls;
    to.loop = request_loop(e);
    if (!to.loop)
        return -1;
    r = open_doors(doors, args, &to, e);
    if (r == 0)
        (void)uv_run(to.loop, UV_RUN_DEFAULT);
    for (size_t i = 0; i < PORTS_MAX; i++) {
        if (doors[i].tcp.data)
            uv_close((uv_handle_t *)&doors[i].tcp, NULL);
        mem_free(doors[i].target);
    }
    (void)uv_run(to.loop, UV_RUN_NOWAIT);
    request_loop_end(to.loop);
    return r;
}
