/* gate: the proxy's TCP port: connections identify their sandbox by a token. */

/* For runtimes whose sandboxes have no listeners of ours: HTTP with credentials.  A connection
 * belongs to no sandbox, and may do nothing, until it shows a token; then it is like any other of
 * that sandbox.  A token is worthless once its sandbox is removed. */
#include "egress/conn.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "egress/guards.h"
#include "proto/jwt.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>

static struct {
    struct box *nobody; /* NULL: the gate is closed */
    char *key, *address;
    unsigned port;
} gate;

static int open_socket(const char *address, unsigned port, struct err *e)
{
    struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
    AUTO(fd_close) int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct ip a;
    int on = 1, off = 0;

    if (ip_parse(str_of(address), &a))
        memcpy(&in6.sin6_addr, a.bytes, sizeof a.bytes);
    if (fd < 0 || setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off) < 0 ||
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) < 0 ||
        bind(fd, (struct sockaddr *)&in6, sizeof in6) < 0 || listen(fd, 128) < 0)
        return err_set(e, err_code_from_errno(errno), errno, "listen on %s port %u", address, port);
    return TAKE_FD(fd);
}

static void shut(void)
{
    if (gate.nobody)
        box_close(gate.nobody);
    gate.nobody = box_unref(gate.nobody);
    mem_free(TAKE(gate.address));
    mem_free(TAKE(gate.key));
}

/* Closes listeners at other addresses or with an earlier key, even if opening the new one fails. */
int gate_open(struct egress *all, const struct egress_listen *l, struct err *e)
{
    AUTO(mem_free) char *address = str_dup(l->host);
    int fd;

    if (gate.nobody && (strcmp(gate.address, address) != 0 || gate.port != l->port))
        shut();
    if (l->host.n == 0)
        return 0;
    if (!gate.nobody) {
        fd = open_socket(address, l->port, e);
        if (fd < 0)
            return -1;
        gate.nobody = box_new_nobody(all, fd);
        gate.address = TAKE(address);
        gate.port = l->port;
    }
    mem_free(gate.key);
    gate.key = str_dup(l->key);
    return 0;
}

/* ---- waiting connections ---- */

#define GATE_PEER 128 /* of one address, without credentials */

struct ip gate_peer(int fd)
{
    struct sockaddr_in6 from = {0};
    socklen_t size = sizeof from;
    struct ip a = {0};

    if (getpeername(fd, (struct sockaddr *)&from, &size) == 0 && from.sin6_family == AF_INET6)
        memcpy(a.bytes, &from.sin6_addr, sizeof a.bytes);
    return a;
}

void gate_make_room(struct box *b, int fd)
{
    struct conn *oldest = NULL, *of_peer = NULL;
    struct ip peer = gate_peer(fd);
    size_t n = 0;

    if (b != gate.nobody || guard_left_out("gate"))
        return;
    LIST_EACH (&b->conns, node) {
        struct conn *c = LIST_ENTRY(node, struct conn, link);

        oldest = oldest ? oldest : c;
        if (memcmp(c->peer.bytes, peer.bytes, sizeof peer.bytes) != 0)
            continue;
        of_peer = of_peer ? of_peer : c;
        n++;
    }
    if (n >= GATE_PEER)
        conn_reset(of_peer, "too many connections from its address sent no credentials");
    else if (b->conn_count >= BOX_CONNECTIONS)
        conn_reset(oldest, "it sent no credentials, and others needed its place");
}

bool gate_is_before(const struct conn *c)
{
    return gate.nobody && c->box == gate.nobody;
}

static struct box *find_session(const struct egress *all, const char *session)
{
    struct str key;
    struct box *b;
    void *value;

    for (size_t at = 0; map_next(&all->boxes, &at, &key, &value);) {
        b = value;
        if (b->alias[0] && strcmp(b->alias, session) == 0)
            return b;
    }
    return map_get(&all->boxes, str_of(session));
}

/* A session is found by its dialect's id; sandboxes without an alias by their own id.  A
 * token that names its sandbox is not valid for a later one of the same name. */
static struct box *find(const struct egress *all, const struct jwt *t)
{
    struct box *b = find_session(all, t->session);

    return b && (t->sandbox[0] == '\0' || strcmp(b->id, t->sandbox) == 0) ? b : NULL;
}

int gate_admit(struct conn *c, const struct http_req *r, struct err *e)
{
    AUTO(buf_done) struct buf hold = {0};
    struct str token;
    struct jwt t;
    struct box *b;

    if (jwt_from_basic(http_req_header(r, "proxy-authorization"), &hold, &token, e) < 0 ||
        jwt_check(token, str_of(gate.key), clock_wall_ms() / 1000, &t, e) < 0)
        return -1;
    b = find(c->box->all, &t);
    if (!b || b->conn_count >= BOX_CONNECTIONS)
        return err_set(e, ERR_UNAUTHENTICATED, 0, "the proxy's credentials: %s",
                       b ? "their sandbox has too many connections"
                         : "their sandbox was destroyed");
    list_unlink(&c->link);
    c->box->conn_count--;
    box_unref(c->box);
    c->box = box_ref(b);
    list_push(&b->conns, &c->link);
    b->conn_count++;
    return 0;
}
