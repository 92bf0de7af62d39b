/* target: from a name and port to a connected server: check, resolve, check again, dial. */
#include "base/fd.h"
#include "egress/conn.h"
#include "egress/guards.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

static void judge(const struct conn *c, struct policy_verdict *ret)
{
    policy_judge(c->box->policy, &(struct policy_query){.host = &c->host, .port = c->port}, ret);
    if (guard_left_out("policy"))
        ret->answer = POLICY_ALLOW;
}

static void judge_address(const struct conn *c, const struct ip *a, struct policy_verdict *ret)
{
    policy_judge_address(c->box->policy, &c->host, a, c->port, ret);
    if (guard_left_out("policy") || guard_left_out("addresses"))
        ret->answer = POLICY_ALLOW;
}

/* The internal address of a name is shown to people, in the event, but not to the sandbox. */
static void refuse_address(struct conn *c, const struct policy_verdict *v)
{
    char shown[POLICY_RULE_TEXT];

    if (!v->special || c->host.is_ip || guard_left_out("inside")) {
        request_refused(c, v->rule);
        return;
    }
    (void)snprintf(
        shown, sizeof shown,
        "it resolves to a %s address (an operator can allow it: setting egress_internal)",
        v->special);
    request_refused_as(c, v->rule, shown);
}

/* A connection that must now be TLS, or whose requests must now be inspected, is not allowed if it
 * is not. */
bool target_is_allowed(struct conn *c)
{
    struct policy_verdict v, address = {.answer = POLICY_ALLOW};

    judge(c, &v);
    if (v.answer == POLICY_ASK && c->granted)
        v.answer = POLICY_ALLOW;
    if (c->address_next > 0)
        judge_address(c, &c->addresses[c->address_next - 1], &address);
    return v.answer == POLICY_ALLOW && address.answer == POLICY_ALLOW &&
           (c->verdict.intercept || !v.intercept) && (c->verdict.tls || !v.tls) &&
           (c->state != CONN_RELAY || !intercept_is_needed(c, &v));
}

/* ---- dialling ---- */

static int begin_connect(int fd, const struct ip *a, unsigned port)
{
    struct sockaddr_in in4 = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
    bool v4 = ip_is_v4(a);
    const struct sockaddr *to = v4 ? (struct sockaddr *)&in4 : (struct sockaddr *)&in6;
    socklen_t size = v4 ? sizeof in4 : sizeof in6;

    if (v4)
        in4.sin_addr.s_addr = htonl(ip_to_v4(a));
    else
        memcpy(&in6.sin6_addr, a->bytes, sizeof a->bytes);
    if (connect(fd, to, size) == 0)
        return 0;
    /* Nearby, the handshake is done by now; a second connect() says so without a turn of the
     * loop. */
    return errno == EINPROGRESS ? connect(fd, to, size) : -1;
}

/* The descriptor; -1: *ret_error has the reason. */
static int open_socket(const struct ip *a, unsigned port, bool *ret_connected, int *ret_error)
{
    AUTO(fd_close)
    int fd =
        socket(ip_is_v4(a) ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int on = 1;

    *ret_connected = fd >= 0 && begin_connect(fd, a, port) == 0;
    if (fd < 0 || (!*ret_connected && errno != EALREADY)) {
        *ret_error = errno;
        return -1;
    }
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    return TAKE_FD(fd);
}

static void dial_failed(struct conn *c, int error)
{
    char why[128];

    (void)snprintf(why, sizeof why, "connect to %s port %u: %s", c->host.name, c->port,
                   strerror(error));
    request_failed(c, why);
}

static void dial_next(struct conn *c, int error)
{
    while (c->address_next < c->address_count) {
        bool connected;
        int fd = open_socket(&c->addresses[c->address_next++], c->port, &connected, &error);

        if (fd < 0)
            continue;
        polled_open(&c->server.io, fd);
        if (connected)
            request_accepted(c);
        else
            polled_want(&c->server.io, EPOLLOUT);
        return;
    }
    dial_failed(c, error);
}

void target_dialled(struct conn *c)
{
    int error = 0;
    socklen_t size = sizeof error;

    if (getsockopt(c->server.io.fd, SOL_SOCKET, SO_ERROR, &error, &size) < 0)
        error = errno;
    if (error != 0) {
        polled_close(&c->server.io);
        dial_next(c, error);
        return;
    }
    polled_want(&c->server.io, 0);
    request_accepted(c);
}

/* ---- resolving ---- */

static bool within_budget(struct conn *c)
{
    uint64_t connections = policy_connections_max(c->box->policy);
    uint64_t bytes = policy_bytes_max(c->box->policy);
    bool full;

    c->spent = box_spent(c->box, &c->host, c->port, &full);
    if (full)
        return false;
    if (!c->spent)
        return true;
    if ((connections > 0 && c->spent->connections >= connections) ||
        (bytes > 0 && c->spent->bytes >= bytes))
        return false;
    c->spent->connections++;
    return true;
}

static void dial(struct conn *c)
{
    if (!within_budget(c)) {
        request_refused(c, BUDGET_SPENT);
        return;
    }
    c->told = true;
    conn_tell(c, EGRESS_ALLOWED, c->verdict.rule);
    dial_next(c, ENETUNREACH);
}

static void on_resolved(void *arg, const struct ip *addresses, size_t n, const struct err *e)
{
    struct conn *c = arg;
    struct policy_verdict v, first = {0};

    c->lookup = NULL;
    for (size_t i = 0; i < n && c->address_count < CONN_ADDRESSES; i++) {
        judge_address(c, &addresses[i], &v);
        if (v.answer == POLICY_ALLOW)
            c->addresses[c->address_count++] = addresses[i];
        else if (first.rule[0] == '\0')
            first = v;
    }
    if (n == 0 && e->code == ERR_LIMIT)
        request_refused(c, "too many of its names are being resolved");
    else if (n == 0)
        request_failed(c, e->msg);
    else if (c->address_count == 0)
        refuse_address(c, &first);
    else
        dial(c);
}

static void target_allowed(struct conn *c)
{
    struct policy_verdict v;

    conn_expire(c, CONN_DIAL_MS);
    if (!c->host.is_ip) {
        c->lookup = resolver_ask(c->box->all->resolver, c->box->id, c->host.name, on_resolved, c);
        return;
    }
    judge_address(c, &c->host.ip, &v);
    if (v.answer != POLICY_ALLOW) {
        refuse_address(c, &v);
        return;
    }
    c->addresses[0] = c->host.ip;
    c->address_count = 1;
    dial(c);
}

/* ---- checking ---- */

bool target_ask(const struct conn *c)
{
    return link_question(&(struct egress_question){.question = c->question,
                                                   .id = str_of(c->box->id),
                                                   .host = str_of(c->host.name),
                                                   .port = (uint16_t)c->port});
}

static void ask_person(struct conn *c)
{
    struct egress *all = c->box->all;

    if (!link_is_up()) {
        request_refused(c, "unknown: ask, but holtd is not connected");
        return;
    }
    c->question = ++all->last_question;
    (void)map_set(&all->questions, str_make(&c->question, sizeof c->question), c);
    conn_expire(c, CONN_ASK_MS);
    polled_want(&c->client.io, EPOLLRDHUP); /* notice a client that gives up waiting */
    if (!target_ask(c))
        request_refused(c, "unknown: ask, but too many connections wait for a decision");
}

static void grant(struct conn *c)
{
    c->granted = true;
    c->verdict.answer = POLICY_ALLOW;
    (void)snprintf(c->verdict.rule, sizeof c->verdict.rule, "a person allowed it");
}

void target_answered(struct conn *c, const struct egress_answer *a)
{
    char why[POLICY_RULE_TEXT + 1];

    polled_want(&c->client.io, 0);
    if (!a->allow) {
        (void)snprintf(why, sizeof why, STR_FMT, STR_ARG(a->reason));
        request_refused(c, why[0] ? why : "a person denied it");
        return;
    }
    grant(c);
    target_allowed(c);
}

static void decide(struct conn *c)
{
    if (c->verdict.answer == POLICY_DENY)
        request_refused(c, c->verdict.rule);
    else if (c->via == EGRESS_HTTP && c->verdict.tls)
        request_refused(c, "plain HTTP on a port for TLS");
    else if (c->verdict.answer == POLICY_ASK)
        ask_person(c);
    else
        target_allowed(c);
}

void target_judge_again(struct conn *c)
{
    judge(c, &c->verdict);
    if (c->verdict.answer == POLICY_ASK && c->question)
        return;
    if (c->verdict.answer == POLICY_ASK && c->granted)
        grant(c);
    conn_forget_question(c);
    polled_want(&c->client.io, 0);
    lookup_cancel(TAKE(c->lookup));
    decide(c);
}

/* An address that our DNS made up stands only for the name it was assigned to. */
static bool name_the_host(struct conn *c)
{
    const char *name;
    struct err e;

    if (!c->host.is_ip || !ip_is_v4(&c->host.ip) || !names_is_made_up(ip_to_v4(&c->host.ip)))
        return true;
    name = names_find(c->box->names, ip_to_v4(&c->host.ip));
    return name && host_parse(str_of(name), &c->host, &e) == 0;
}

void target_begin(struct conn *c)
{
    c->state = CONN_WAITS;
    polled_want(&c->client.io, 0);
    if (!name_the_host(c)) {
        request_refused(c, "this address no longer belongs to a name");
        return;
    }
    judge(c, &c->verdict);
    decide(c);
}
