/* health: the gRPC health service: Check, List, Watch. */
#include "api/health.h"

#include "api/health.pb.h"
#include "base/list.h"
#include "base/mem.h"

#define SERVICE_MAX 256

struct health {
    health_ask ask;
    const char *const *services;
    void *arg;
    struct list watches;
};

struct call { /* one Check, List or Watch */
    struct health *health;
    struct grpc_call *grpc;
    struct list link; /* of a Watch, in health.watches */
    char service[SERVICE_MAX + 1];
    enum health_state told;
    bool asked; /* its one message has arrived */
};

struct health *health_new(health_ask ask, const char *const *services, void *arg)
{
    struct health *h = xzalloc(sizeof *h);

    *h = (struct health){.ask = ask, .services = services, .arg = arg};
    list_init(&h->watches);
    return h;
}

void health_end_watches(struct health *h)
{
    struct list *node;
    struct err e = {0};

    (void)err_set(&e, ERR_UNAVAILABLE, 0, "the server is stopping");
    while ((node = list_pop(&h->watches))) {
        struct call *c = LIST_ENTRY(node, struct call, link);

        c->health = NULL;
        grpc_fail(c->grpc, &e);
    }
}

void health_free(struct health *h)
{
    if (h)
        health_end_watches(h);
    mem_free(h);
}

static int32_t wire_status(enum health_state s)
{
    if (s == HEALTH_SERVING)
        return HEALTH_CHECK_RESPONSE_SERVING_STATUS_SERVING;
    return s == HEALTH_NOT_SERVING ? HEALTH_CHECK_RESPONSE_SERVING_STATUS_NOT_SERVING
                                   : HEALTH_CHECK_RESPONSE_SERVING_STATUS_SERVICE_UNKNOWN;
}

static void send(struct call *c, enum health_state state)
{
    const struct health_check_response answer = {.status = wire_status(state)};
    AUTO(buf_done) struct buf bytes = {0};

    pb_encode(&health_check_response_pb, &answer, &bytes);
    (void)!grpc_send(c->grpc, buf_str(&bytes)); /* a few bytes per change: no need to wait */
}

static int read_service(struct call *c, struct str message)
{
    AUTO(arena_done) struct arena a = {0};
    struct health_check_request request;
    struct err e;

    if (pb_decode(&health_check_request_pb, message, &a, &request, &e) < 0) {
        grpc_fail(c->grpc, &e);
        return -1;
    }
    if (request.service.n > SERVICE_MAX || str_index(request.service, '\0') >= 0) {
        (void)err_set(&e, ERR_INVALID, 0, "the service name is too long or contains a NUL byte");
        grpc_fail(c->grpc, &e);
        return -1;
    }
    (void)snprintf(c->service, sizeof c->service, STR_FMT, STR_ARG(request.service));
    return 0;
}

/* These methods take one message; another one stays unread. */
static void take(struct call *c)
{
    c->asked = true;
    grpc_consume(c->grpc);
}

static void check_message(struct grpc_call *g, struct str message)
{
    struct call *c = grpc_arg(g);
    enum health_state state;
    struct err e;

    if (c->asked || read_service(c, message) < 0)
        return;
    take(c);
    state = c->health->ask(c->service, c->health->arg);
    if (state == HEALTH_NO_SUCH_SERVICE) {
        (void)err_set(&e, ERR_NOT_FOUND, 0, "unknown service '%s'", c->service);
        grpc_fail(g, &e);
        return;
    }
    send(c, state);
    grpc_finish(g);
}

static void list_message(struct grpc_call *g, struct str message)
{
    struct call *c = grpc_arg(g);
    AUTO(arena_done) struct arena a = {0};
    AUTO(buf_done) struct buf bytes = {0};
    struct health_list_response answer = {0};
    size_t budget = 1024 * 1024;

    (void)message;
    if (c->asked)
        return;
    take(c);
    for (const char *const *s = c->health->services; s && *s; s++) {
        struct health_list_response_statuses_entry *entry =
            pb_append(&health_list_response_pb.fields[0], &answer, &a, &budget);

        if (!entry)
            break;
        entry->key = str_of(*s);
        entry->value = arena_zalloc(&a, sizeof *entry->value);
        entry->value->status = wire_status(c->health->ask(*s, c->health->arg));
    }
    pb_encode(&health_list_response_pb, &answer, &bytes);
    (void)!grpc_send(g, buf_str(&bytes));
    grpc_finish(g);
}

static void watch_message(struct grpc_call *g, struct str message)
{
    struct call *c = grpc_arg(g);

    if (c->asked || read_service(c, message) < 0)
        return;
    take(c);
    list_push(&c->health->watches, &c->link);
    c->told = c->health->ask(c->service, c->health->arg);
    send(c, c->told);
}

void health_changed(struct health *h)
{
    LIST_EACH (&h->watches, node) {
        struct call *c = LIST_ENTRY(node, struct call, link);
        enum health_state now = h->ask(c->service, h->arg);

        if (now == c->told)
            continue;
        c->told = now;
        send(c, now);
    }
}

static void on_half_closed(struct grpc_call *g)
{
    struct call *c = grpc_arg(g);
    struct err e;

    if (c->asked)
        return;
    (void)err_set(&e, ERR_INVALID, 0, "the request has no message");
    grpc_fail(g, &e);
}

static void on_cancelled(struct grpc_call *g)
{
    struct call *c = grpc_arg(g);

    list_unlink(&c->link);
}

static void on_closed(struct grpc_call *g)
{
    struct call *c = grpc_arg(g);

    list_unlink(&c->link);
    mem_free(c);
}

static void begin(struct grpc_call *g, struct health *h, const struct grpc_ops *ops)
{
    struct call *c = xzalloc(sizeof *c);

    c->health = h;
    c->grpc = g;
    list_init(&c->link);
    grpc_handle(g, ops, c);
}

#define OPS(handler)                                                                               \
    {.message = handler,                                                                           \
     .half_closed = on_half_closed,                                                                \
     .cancelled = on_cancelled,                                                                    \
     .closed = on_closed}

static void check_start(struct grpc_call *g, void *arg)
{
    static const struct grpc_ops ops = OPS(check_message);

    begin(g, arg, &ops);
}

static void list_start(struct grpc_call *g, void *arg)
{
    static const struct grpc_ops ops = OPS(list_message);

    begin(g, arg, &ops);
}

static void watch_start(struct grpc_call *g, void *arg)
{
    static const struct grpc_ops ops = OPS(watch_message);

    begin(g, arg, &ops);
}

const struct grpc_method health_grpc[] = {
    {"/grpc.health.v1.Health/Check", check_start},
    {"/grpc.health.v1.Health/List", list_start},
    {"/grpc.health.v1.Health/Watch", watch_start},
};
const size_t health_grpc_count = ARRAY_LEN(health_grpc);
