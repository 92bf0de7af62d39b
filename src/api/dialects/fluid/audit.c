/* audit: the event log in the form of the agent interface. */
#include "api/dialects/fluid/fluid.h"

#include "base/clock.h"
#include "base/mem.h"

#define LIMIT_PRESET 100
#define LIMIT_MAX 1000
#define SCANNED_MAX 100000 /* events that one query looks at, from the newest back */

struct audit_in {
    struct str tool, action, since, until, request_id;
    int64_t limit;
};
static const struct fluid_field audit_fields[] = {
    {"tool", FLUID_STR, offsetof(struct audit_in, tool), false},
    {"action", FLUID_STR, offsetof(struct audit_in, action), false},
    {"since", FLUID_STR, offsetof(struct audit_in, since), false},
    {"until", FLUID_STR, offsetof(struct audit_in, until), false},
    {"request_id", FLUID_STR, offsetof(struct audit_in, request_id), false},
    {"limit", FLUID_INT, offsetof(struct audit_in, limit), false},
};
const struct fluid_form fluid_audit_form = {FLUID_FORM(audit_fields, struct audit_in),
                                            .lenient = true, .optional = true};

/* The log is read forwards: the newest matches are kept in a ring. */
struct audit_job {
    struct waiter waiter;
    struct events *events;
    struct event_filter filter;
    struct buf *ring; /* of `limit` */
    int64_t limit, until_ms, matched, read, seq;
    char *tool, *action;
    bool bare;
    int64_t counts[4]; /* of a summary: by tool */
    int64_t oldest_ms, newest_ms, bytes;
    bool summary;
};

static void audit_free(struct audit_job *j)
{
    for (int64_t i = 0; j->ring && i < j->limit; i++)
        buf_done(&j->ring[i]);
    mem_free(j->ring);
    mem_free(j->tool);
    mem_free(j->action);
    mem_free(j);
}

/* The events of one tool have types with these beginnings. */
static const struct {
    const char *tool, *type;
} tools[] = {{"command", "exec."},
             {"human", "approval."},
             {"sandbox", "sandbox."},
             {"file", "request.read"}};

static size_t tool_of(struct str type)
{
    for (size_t i = 0; i < ARRAY_LEN(tools); i++)
        if (str_starts(type, str_of(tools[i].type)))
            return i;
    return ARRAY_LEN(tools);
}

static struct str action_of(struct str type)
{
    struct str rest;

    (void)str_cut(type, '.', &rest);
    return rest.n > 0 ? rest : type;
}

static bool is_wanted(const struct audit_job *j, const struct event *ev)
{
    size_t tool = tool_of(ev->type);
    struct str name = tool < ARRAY_LEN(tools) ? str_of(tools[tool].tool)
                                              : str_cut(ev->type, '.', &(struct str){0});

    return (!j->tool[0] || str_eq_c(name, j->tool)) &&
           (!j->action[0] || str_eq_c(action_of(ev->type), j->action)) &&
           (j->until_ms == 0 || ev->time_ms <= j->until_ms);
}

static void write_entry(struct buf *to, const struct event *ev, bool bare)
{
    size_t tool = tool_of(ev->type);
    struct jw w = {.to = to};
    char seq[24];

    (void)snprintf(seq, sizeof seq, "%lld", (long long)ev->seq);
    jw_object(&w);
    jw_ktime(&w, "timestamp", ev->time_ms);
    jw_kc(&w, "request_id", seq);
    jw_kstr(&w, "tool",
            tool < ARRAY_LEN(tools) ? str_of(tools[tool].tool)
                                    : str_cut(ev->type, '.', &(struct str){0}));
    jw_kstr(&w, "action", action_of(ev->type));
    jw_kint(&w, "duration_ms", 0);
    jw_kstr(&w, "client_ip", ev->actor);
    jw_kstr(&w, "object", ev->object);
    if (!bare && ev->data.n > 0) { /* the client of /v1 takes no objects there */
        jw_key(&w, "arguments");
        jw_raw(&w, ev->data);
    }
    jw_object_end(&w);
}

static void on_event(void *arg, const struct event *ev)
{
    struct audit_job *j = arg;
    size_t tool = tool_of(ev->type);

    j->read++;
    j->seq = ev->seq;
    if (j->summary) {
        if (tool < ARRAY_LEN(tools))
            j->counts[tool]++;
        j->oldest_ms = j->oldest_ms ? j->oldest_ms : ev->time_ms;
        j->newest_ms = ev->time_ms;
        j->bytes += (int64_t)ev->data.n;
        return;
    }
    if (!is_wanted(j, ev))
        return;
    buf_clear(&j->ring[j->matched % j->limit]);
    write_entry(&j->ring[j->matched % j->limit], ev, j->bare);
    j->matched++;
}

static void send_entries(struct request *r, const struct audit_job *j)
{
    int64_t n = i64_min(j->matched, j->limit);
    AUTO(buf_done) struct buf json = {0};
    struct jw w = {.to = &json};

    jw_object(&w);
    jw_key(&w, "entries");
    jw_array(&w);
    for (int64_t i = 0; i < n; i++)
        jw_raw(&w, buf_str(&j->ring[(j->matched - 1 - i) % j->limit]));
    jw_array_end(&w);
    jw_kint(&w, "total_count", j->matched);
    jw_kbool(&w, "has_more", j->matched > n);
    jw_object_end(&w);
    fluid_reply(r, 200, buf_str(&json));
}

static void send_summary(struct request *r, const struct audit_job *j)
{
    AUTO(buf_done) struct buf json = {0};
    struct jw w = {.to = &json};

    jw_object(&w);
    jw_kbool(&w, "enabled", true);
    jw_kint(&w, "entries_in_memory", j->read);
    jw_kint(&w, "file_size", j->bytes);
    jw_kc(&w, "file_path", "");
    if (j->oldest_ms > 0) {
        jw_ktime(&w, "oldest_entry", j->oldest_ms);
        jw_ktime(&w, "newest_entry", j->newest_ms);
    }
    jw_key(&w, "entries_by_tool");
    jw_object(&w);
    for (size_t i = 0; i < ARRAY_LEN(tools); i++)
        jw_kint(&w, tools[i].tool, j->counts[i]);
    jw_object_end(&w);
    jw_object_end(&w);
    fluid_reply(r, 200, buf_str(&json));
}

static void page_read(void *arg, const struct err *e)
{
    struct audit_job *j = arg;
    struct request *r;

    if (e->code == ERR_NONE && j->waiter.r && j->seq > j->filter.since_seq &&
        j->read < SCANNED_MAX) {
        j->filter.since_seq = j->seq;
        events_read(j->events, &j->filter, on_event, page_read, j);
        return;
    }
    r = waiter_end(&j->waiter);
    if (r && e->code != ERR_NONE)
        fluid_refuse(r, e);
    else if (r && j->summary)
        send_summary(r, j);
    else if (r)
        send_entries(r, j);
    audit_free(j);
}

static void audit_begin(struct request *r, const struct audit_in *in, int64_t since_ms,
                        int64_t until_ms, bool summary)
{
    struct audit_job *j = xzalloc(sizeof *j);
    int64_t head = events_head(r->api->c.events, NULL);

    j->events = r->api->c.events;
    j->summary = summary;
    j->limit = in->limit > 0 ? i64_min(in->limit, LIMIT_MAX) : LIMIT_PRESET;
    j->ring = xzalloc((size_t)j->limit * sizeof *j->ring);
    j->tool = str_dup(in->tool);
    j->action = str_dup(in->action);
    j->until_ms = until_ms;
    j->bare = !str_starts(xchg_req(r->x)->path, STR("/api/"));
    j->filter = (struct event_filter){.audit_too = true,
                                      .since_ms = since_ms,
                                      .since_seq = i64_max(head - SCANNED_MAX, 0),
                                      .limit = EVENT_PAGE_MAX};
    request_wait(r, &j->waiter);
    events_read(j->events, &j->filter, on_event, page_read, j);
}

void fluid_audit_query(struct request *r)
{
    const struct audit_in *in = r->in;
    int64_t since = 0, until = 0;

    if ((in->since.n > 0 && clock_parse(in->since, &since) < 0) ||
        (in->until.n > 0 && clock_parse(in->until, &until) < 0))
        fluid_error(r, 400, "since and until are RFC 3339 times");
    else
        audit_begin(r, in, since, until, false);
}

void fluid_audit_stats(struct request *r)
{
    audit_begin(r, &(struct audit_in){0}, 0, 0, true);
}
