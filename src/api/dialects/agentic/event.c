/* event: the event log in this dialect's words: one page, or a stream. */
#include "api/dialects/agentic/agentic.h"

#include "api/share/event_stream.h"
#include "base/mem.h"
#include "net/sse.h"

#define LIMIT 100
#define LIMIT_MAX 5000

static const struct word {
    const char *ours, *machine, *container; /* NULL: not told */
} words[] = {
    {"sandbox.created", "vm.defined", "container.created"},
    {"sandbox.running", "vm.started", "container.started"},
    {"sandbox.started", "vm.started", "container.started"},
    {"sandbox.stopping", "vm.shutdown", NULL},
    {"sandbox.stopped", "vm.stopped", "container.stopped"},
    {"sandbox.failed", "vm.crashed", "container.stopped"},
    {"sandbox.paused", "vm.suspended", "container.stopped"},
    {"sandbox.resumed", "vm.resumed", "container.started"},
    {"sandbox.destroyed", "vm.undefined", "container.removed"},
    {"sandbox.crash_loop", "vm.crash_loop_detected", "container.crash_loop_detected"},
    {"sandbox.crash_loop_failed", "vm.crash_loop_failed", "container.crash_loop_failed"},
    {"sandbox.rebuilt", "vm.rebuilt", "container.rebuilt"},
    {"exec.started", "agent.command.started", "agent.command.started"},
    {"exec.exited", "agent.command.completed", "agent.command.completed"},
    {"approval.created", "hitl.input_required", "hitl.input_required"},
    {"agent.connected", "agent.connected", "agent.connected"},
    {"agent.disconnected", "agent.disconnected", "agent.disconnected"},
    {"agent.provisioning", "agent.provisioning", "agent.provisioning"},
    {"agent.ready", "agent.ready", "agent.ready"},
};

static struct str member(const json_t *o, const char *key)
{
    return agentic_member(o, key);
}

/* Commands with a terminal are sessions. */
static const char *type_of(const struct event *ev, const json_t *data)
{
    bool vm = str_eq_c(member(data, "runtime"), AGENTIC_VM);
    bool pty = json_is_true(json_object_get(data, "pty"));

    if (pty && str_eq_c(ev->type, "exec.started"))
        return "agent.pty.created";
    if (pty && str_eq_c(ev->type, "exec.exited"))
        return "agent.pty.closed";
    if (str_starts(ev->type, STR("approval.")) && !str_eq_c(member(data, "kind"), "prompt"))
        return NULL;
    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        if (str_eq_c(ev->type, words[i].ours))
            return vm ? words[i].machine : words[i].container;
    return NULL;
}

static struct str source_of(const struct event *ev, const json_t *data)
{
    struct str id = member(data, "name");

    if (!str_starts(ev->type, STR("sandbox.")) && !str_starts(ev->type, STR("agent.")))
        return member(data, "sandbox");
    if (id.n > 0)
        return id;
    (void)str_cut(ev->object, '/', &id);
    return id;
}

/* Of an agent on another machine. */
static void write_link(struct jw *w, const json_t *data)
{
    static const char *const texts[] = {"hostname", "ip_address", "loadout",  "instance_id",
                                        "step",     "reason",     "progress", NULL};

    for (size_t i = 0; texts[i]; i++)
        if (member(data, texts[i]).n > 0)
            jw_kstr(w, texts[i], member(data, texts[i]));
}

static void write_details(struct jw *w, const struct event *ev, const json_t *data)
{
    struct str id = {0};
    const json_t *code = json_object_get(data, "exit_code");

    jw_key(w, "details");
    jw_object(w);
    if (str_starts(ev->type, STR("exec."))) {
        (void)str_cut(ev->object, '/', &id);
        jw_kstr(w, "session_id", id);
    }
    if (json_is_integer(code))
        jw_kint(w, "exit_status", json_integer_value(code));
    if (member(data, "failure").n > 0)
        jw_kstr(w, "reason", member(data, "failure"));
    if (member(data, "question").n > 0)
        jw_kstr(w, "prompt", member(data, "question"));
    if (str_starts(ev->type, STR("agent.")))
        write_link(w, data);
    jw_object_end(w);
}

/* The same in the words of its event stream: "session_start", and with a dot. */
static void write_wire_names(struct jw *w, const char *theirs)
{
    const char *name = strcmp(theirs, "agent.pty.created") == 0  ? "session.start"
                       : strcmp(theirs, "agent.pty.closed") == 0 ? "session.end"
                                                                 : theirs;
    AUTO(mem_free) char *type = xstrdup(name);

    for (char *p = type; *p; p++)
        *p = *p == '.' ? '_' : *p;
    jw_kc(w, "event", name);
    jw_kc(w, "type", type);
}

static bool write_event(const struct event *ev, struct jw *w, struct str source, struct str type)
{
    AUTO(json_decref) json_t *data = NULL;
    struct err e = {0};
    const char *theirs;

    if (json_read(ev->data, &data, &e) < 0)
        return false;
    theirs = type_of(ev, data);
    if (!theirs || (type.n > 0 && !str_eq_c(type, theirs)) ||
        (source.n > 0 && !str_eq(source, source_of(ev, data))))
        return false;
    jw_object(w);
    jw_kc(w, "event_type", theirs);
    write_wire_names(w, theirs);
    jw_kstr(w, "vm_name", source_of(ev, data));
    jw_ktime(w, "timestamp", ev->time_ms);
    write_details(w, ev, data);
    jw_kstr(w, "agent_id", source_of(ev, data));
    jw_object_end(w);
    return true;
}

static bool event_told(const struct event *ev, struct buf *to, struct str *ret_name)
{
    struct jw w = {.to = to};

    *ret_name = STR("");
    return write_event(ev, &w, STR(""), STR(""));
}

/* --- one page: the newest first --- */

struct page_job {
    struct waiter waiter;
    struct events *events;
    struct arena arena;
    struct str source, type;
    int64_t limit, count, from;
    struct str *found; /* a ring */
    int64_t last_seq;
};

static void page_event(void *arg, const struct event *ev)
{
    struct page_job *j = arg;
    AUTO(buf_done) struct buf text = {0};
    struct jw w = {.to = &text};

    j->from = ev->seq;
    if (!write_event(ev, &w, j->source, j->type))
        return;
    j->found[j->count++ % j->limit] = arena_str(&j->arena, buf_str(&text));
    j->last_seq = ev->seq;
}

static void page_send(struct page_job *j, struct request *r)
{
    struct jw w = request_json(r);
    int64_t n = i64_min(j->count, j->limit);

    jw_object(&w);
    jw_key(&w, "events");
    jw_array(&w);
    for (int64_t i = 0; i < n; i++)
        jw_raw(&w, j->found[(j->count - 1 - i) % j->limit]);
    jw_array_end(&w);
    jw_kint(&w, "total_count", n);
    jw_kint(&w, "last_event_id", j->last_seq);
    jw_object_end(&w);
    request_send_json(r, 200);
}

static void page_read(void *arg, const struct err *e)
{
    struct page_job *j = arg;
    struct request *r = waiter_end(&j->waiter);

    if (r && e->code != ERR_NONE)
        agentic_fail(r, err_table[e->code].http, e);
    else if (r)
        page_send(j, r);
    arena_done(&j->arena);
    mem_free(j);
}

/* The newest rows of the log hold a page of these. */
static void send_page(struct request *r, const struct event_filter *since)
{
    struct page_job *j = xzalloc(sizeof *j);
    struct event_filter f = *since;

    j->events = r->api->c.events;
    if (str_parse_i64(agentic_query(r, "limit"), &j->limit) < 0)
        j->limit = LIMIT;
    j->limit = i64_min(i64_max(j->limit, 1), LIMIT_MAX);
    j->source = arena_str(&j->arena, agentic_query(r, "source"));
    j->type = arena_str(&j->arena, agentic_query(r, "event_type"));
    j->found = arena_zalloc(&j->arena, (size_t)j->limit * sizeof *j->found);
    f.limit = EVENT_PAGE_MAX;
    if (f.since_ms == 0)
        f.since_seq = i64_max(events_head(j->events, NULL) - EVENT_PAGE_MAX, 0);
    request_wait(r, &j->waiter);
    events_read(j->events, &f, page_event, page_read, j);
}

void agentic_events(struct request *r)
{
    struct str since = agentic_query(r, "since"), last = sse_last_id(r->x);
    struct event_filter f = {0};

    if (since.n > 0 && clock_parse(since, &f.since_ms) < 0) {
        agentic_error(r, 400, "'since' is not a time (RFC 3339)");
        return;
    }
    if (!agentic_query_is(r, "follow", false) && !accept_prefers(r->x, "text/event-stream")) {
        send_page(r, &f);
        return;
    }
    if (last.p && str_parse_i64(last, &f.since_seq) == 0 && f.since_seq >= 0)
        f.since_ms = 0;
    else if (since.n == 0)
        f.since_seq = events_head(r->api->c.events, NULL);
    event_stream_sse(r, &f, event_told);
}
