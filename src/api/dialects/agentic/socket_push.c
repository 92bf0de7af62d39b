/* socket_push: what a client of the WebSocket is told: output, metrics, events. */
#include "api/dialects/agentic/socket.h"

#include "base/mem.h"
#include "base/utf8.h"

struct tail { /* the output of one command */
    struct list link;
    struct socket_client *c;
    struct exec *x;
    struct exec_reader *reader;
    char id[ID_SIZE], sandbox[ID_SIZE];
    bool paused;
    struct buf held[2]; /* of each stream: the first bytes of a character */
};

static struct str name_of(struct sandbox *s)
{
    struct sandbox_info i;

    sandbox_info(s, &i);
    return agentic_name(&i);
}

bool push_wants(const struct socket_client *c, const char *sandbox)
{
    return c->everything || map_get(&c->agents, str_of(sandbox));
}

/* --- output --- */

static void tail_free(struct tail *t)
{
    list_unlink(&t->link);
    t->c->tail_count--;
    exec_reader_end(t->reader);
    exec_unref(t->x);
    buf_done(&t->held[0]);
    buf_done(&t->held[1]);
    mem_free(t);
}

static int on_bytes(void *arg, enum exec_which stream, int64_t offset, int64_t time_us,
                    struct str bytes)
{
    struct tail *t = arg;
    struct buf *held = &t->held[stream == EXEC_STDERR];
    AUTO(buf_done) struct buf json = {0}, text = {0};
    struct jw w = {.to = &json};

    (void)offset;
    buf_add_str(held, bytes);
    buf_take(held, utf8_replace(&text, buf_str(held), false));
    if (buf_len(&text) == 0)
        return 0;
    jw_object(&w);
    jw_kc(&w, "type", "output");
    jw_kstr(&w, "agent_id", name_of(exec_sandbox(t->x)));
    jw_kc(&w, "command_id", t->id);
    jw_kc(&w, "stream", stream == EXEC_STDERR ? "stderr" : "stdout");
    jw_kstr(&w, "data", buf_str(&text));
    jw_kint(&w, "ts", time_us / 1000);
    jw_object_end(&w);
    t->paused = socket_tell(t->c, &json) != 0;
    return t->paused;
}

static int on_gap(void *arg, enum exec_which stream, int64_t from, int64_t to)
{
    struct tail *t = arg;

    (void)stream;
    socket_error(t->c, "lagging: %lld bytes of command '%s' were dropped", (long long)(to - from),
                 t->id);
    return 0;
}

static void on_end(void *arg, const struct err *e)
{
    struct tail *t = arg;
    AUTO(buf_done) struct buf json = {0};
    struct jw w = {.to = &json};
    struct exec_info i;

    t->reader = NULL;
    if (e->code == ERR_NONE) {
        exec_info(t->x, &i);
        jw_object(&w);
        jw_kc(&w, "type", "command_completed");
        jw_kstr(&w, "agent_id", name_of(exec_sandbox(t->x)));
        jw_kc(&w, "command_id", t->id);
        jw_kint_if(&w, "exit_code", i.exit_code >= 0, i.exit_code);
        jw_object_end(&w);
        (void)!socket_tell(t->c, &json);
    }
    tail_free(t);
}

static void follow(struct socket_client *c, struct exec *x, bool from_start)
{
    static const struct exec_reader_ops ops = {.bytes = on_bytes, .gap = on_gap, .end = on_end};
    struct exec_info i;
    struct tail *t;

    exec_info(x, &i);
    if (i.ended_ms > 0 && !from_start)
        return;
    LIST_EACH (&c->tails, node)
        if (strcmp(LIST_ENTRY(node, struct tail, link)->id, i.id) == 0)
            return;
    if (c->tail_count >= SOCKET_TAILS_MAX) {
        socket_error(c, "at most %d commands are followed at a time", SOCKET_TAILS_MAX);
        return;
    }
    t = xzalloc(sizeof *t);
    t->c = c;
    t->x = exec_ref(x);
    (void)snprintf(t->id, sizeof t->id, "%s", i.id);
    (void)snprintf(t->sandbox, sizeof t->sandbox, "%s", i.sandbox);
    list_push(&c->tails, &t->link);
    c->tail_count++;
    t->reader = exec_read(x, EXEC_BOTH, from_start ? 0 : i.out_end, from_start ? 0 : i.err_end,
                          true, &ops, t);
}

void push_agent(struct socket_client *c, struct sandbox *s)
{
    struct exec_info i;

    for (struct exec *x = c->content ? exec_next(s, STR("")) : NULL; x;
         x = exec_next(s, str_of(i.id))) {
        exec_info(x, &i);
        follow(c, x, false);
    }
}

void push_drop(struct socket_client *c, const char *sandbox)
{
    struct list *node = c->tails.next;

    while (node != &c->tails) {
        struct tail *t = LIST_ENTRY(node, struct tail, link);

        node = node->next;
        if (strcmp(t->sandbox, sandbox) == 0)
            tail_free(t);
    }
}

void push_room(struct socket_client *c)
{
    LIST_EACH (&c->tails, node) {
        struct tail *t = LIST_ENTRY(node, struct tail, link);

        if (t->paused)
            exec_reader_resume(t->reader);
        t->paused = false;
    }
}

/* --- metrics --- */

struct measure {
    struct socket_client *c;
    struct sandbox *s;
};

static void measured(void *arg, const struct driver_stats *s, const struct err *e)
{
    struct measure *j = arg;
    AUTO(buf_done) struct buf json = {0};
    struct jw w = {.to = &json};
    struct sandbox_info i;

    sandbox_info(j->s, &i);
    if (e->code == ERR_NONE && j->c->ws) {
        jw_object(&w);
        jw_kc(&w, "type", "metrics_update");
        jw_kstr(&w, "agent_id", agentic_name(&i));
        agentic_write_metrics(&w, j->c->api, &i, s);
        jw_object_end(&w);
        (void)!socket_tell(j->c, &json);
    }
    socket_unref(j->c);
    sandbox_unref(j->s);
    mem_free(j);
}

void push_metrics(struct socket_client *c)
{
    struct sandbox_info i;

    for (struct sandbox *s = sandbox_next(c->api->c.sandboxes, &c->who, STR("")); s;
         s = sandbox_next(c->api->c.sandboxes, &c->who, str_of(i.id))) {
        struct measure *j;

        sandbox_info(s, &i);
        if (i.state != SANDBOX_RUNNING || !push_wants(c, i.id))
            continue;
        j = xzalloc(sizeof *j);
        *j = (struct measure){c, sandbox_ref(s)};
        c->refs++;
        sandbox_stats(s, measured, j);
    }
}

/* --- events --- */

static const char *push_type(const struct event *ev, const json_t *data)
{
    if (str_starts(ev->type, STR("approval.")))
        return !str_eq_c(agentic_member(data, "kind"), "prompt") ? NULL
               : str_eq_c(ev->type, "approval.created")          ? "hitl_request"
               : str_eq_c(ev->type, "approval.typed")            ? NULL
                                                                 : "hitl_resolved";
    if (str_starts(ev->type, STR("exec.")))
        return "session_event";
    return str_starts(ev->type, STR("sandbox.")) ? "vm_event" : NULL;
}

static void push_event(struct socket_client *c, const char *type, const struct event *ev,
                       const json_t *data, const struct sandbox_info *i)
{
    AUTO(buf_done) struct buf json = {0};
    struct jw w = {.to = &json};
    struct str id;

    (void)str_cut(ev->object, '/', &id);
    jw_object(&w);
    jw_kc(&w, "type", type);
    jw_kstr(&w, "agent_id", agentic_name(i));
    jw_kstr(&w, "event", ev->type);
    jw_ktime(&w, "timestamp", ev->time_ms);
    if (str_starts(ev->type, STR("exec.")))
        jw_kstr(&w, "session_id", id);
    if (strcmp(type, "hitl_request") == 0 || strcmp(type, "hitl_resolved") == 0) {
        jw_kstr(&w, "hitl_id", id);
        jw_kstr(&w, "session_id", agentic_member(data, "exec"));
        jw_kstr(&w, "prompt", agentic_member(data, "question"));
    }
    jw_object_end(&w);
    (void)!socket_tell(c, &json);
}

static int on_event(void *arg, const struct event *ev)
{
    struct socket_client *c = arg;
    AUTO(json_decref) json_t *data = NULL;
    struct err e = {0};
    const char *type;
    struct sandbox_info i;
    struct sandbox *s;
    struct str id;

    if (json_read(ev->data, &data, &e) < 0 || !(type = push_type(ev, data)))
        return 0;
    if (strcmp(type, "vm_event") == 0)
        (void)str_cut(ev->object, '/', &id);
    else
        id = agentic_member(data, "sandbox");
    s = sandbox_find(c->api->c.sandboxes, &c->who, id, &e);
    if (!s)
        return 0;
    sandbox_info(s, &i);
    if (!push_wants(c, i.id) || (str_starts(ev->type, STR("approval.")) && !c->events))
        return 0;
    push_event(c, type, ev, data, &i);
    if (str_eq_c(ev->type, "exec.started") && c->content) {
        struct exec *x = exec_find(s, agentic_member(data, "id"), &e);

        if (x)
            follow(c, x, true);
    }
    return 0;
}

static void on_stuck(void *arg, const struct err *e)
{
    socket_error(arg, "events cannot be read: %s", e->msg);
}

void push_begin(struct socket_client *c)
{
    c->sub = events_subscribe(
        c->api->c.events, &(struct event_filter){.since_seq = events_head(c->api->c.events, NULL)},
        on_event, on_stuck, c);
}

void push_end(struct socket_client *c)
{
    subscription_end(TAKE(c->sub));
    while (!list_is_empty(&c->tails))
        tail_free(LIST_ENTRY(c->tails.next, struct tail, link));
}
