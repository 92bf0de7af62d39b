/* event: the event log in the hub's form: as a live stream, and as an audit log. */
#include "api/dialects/hub/hub.h"
#include "api/share/event_stream.h"
#include "base/clock.h"
#include "net/sse.h"

#define CONTENT_SHOWN 200 /* characters of a message */
#define FIELDS_MAX 6
#define AUDITED_MAX 2

struct word {
    const char *type;                 /* our type */
    const char *event;                /* the hub's; NULL: not sent */
    const char *action;               /* in its audit log */
    const char *who;                  /* the member that names the actor; NULL: a person */
    const char *fields[FIELDS_MAX];   /* "theirs=ours", or one name for both */
    const char *audited[AUDITED_MAX]; /* additional ones, in the audit log only */
};

/* clang-format off */
static const struct word words[] = {
    {"agent.registered",   "agent_registered", "register", "name", {"name", "type", "autonomy_mode=mode", "capabilities"}, {"autonomy=mode"}},
    {"agent.removed",      "agent_unregistered", "unregister", "name", {"name"}},
    {"agent.mode",         "agent_autonomy_changed", "set_autonomy", "name", {"name", "mode"}},
    {"agent.default_mode", "global_autonomy_changed", "set_global_autonomy", NULL, {"mode", "agents"}},
    {"agent.capabilities", "agent_capabilities_changed", "set_capabilities", "name", {"name", "tags=capabilities"}},
    {"agent.checkpoint",   "checkpoint_submitted", "checkpoint", "agent", {"agent", "task_id", "state", "sequence"}},
    {"agent.heartbeat",    NULL, "heartbeat", "name", {"checkpoint_tick=ticks"}},
    {"agent.status",       "agent_status_changed", "status", "name", {"name", "status", "paused"}},
    {"agent.paused",       "agent_paused", "pause_agent", NULL, {"name=agent", "reason"}, {"agent"}},
    {"agent.resumed",      "agent_resumed", "resume_agent", NULL, {"name=agent"}, {"agent"}},
    {"agent.revoked",      "agent_revoked", "revoke_agent", NULL, {"agent", "revocation_id=id", "reason", "flush_required=flush"}},
    {"agent.recovered",    "agent_recovered", "revocation_acknowledged", "agent", {"name=agent", "revocation_id=id"}},
    {"message.sent",       "message_sent", "send_message", "from", {"id", "from", "to", "content", "type", "timestamp=sent_at"}},
    {"message.acknowledged", "message_acknowledged", "ack_message", "to", {"id", "from", "to"}},
    {"project.created",    "project_created", "create_project", "creator", {"id", "name", "creator"}},
    {"project.removed",    "project_deleted", "delete_project", NULL, {"id"}},
    {"project.joined",     "agent_joined_project", "join_project", "agent", {"project=id", "agent"}},
    {"project.limits",     "wip_limits_changed", "set_wip", NULL, {"project=id", "limits"}},
    {"project.file",       "file_uploaded", "upload_file", "uploader", {"project", "filename=name", "uploader", "size", "version", "checksum"}},
    {"project.file_removed", "file_removed", "remove_file", NULL, {"project", "filename=name"}},
    {"task.created",       "task_created", "create_task", "by", {"project", "task"}},
    {"task.claimed",       "task_claimed", "claim_task", "by", {"project", "task_id=id", "agent=claimed_by", "title"}},
    {"task.moved",         "task_transition", "move_task", "by", {"project", "task_id=id", "title", "new_status=status", "by"}},
    {"task.released",      "task_transition", "release_task", "by", {"project", "task_id=id", "title", "new_status=status", "by"}},
    {"task.assigned",      "task_assigned", "assign_task", "by", {"project", "task_id=id", "title", "agent=assigned_to", "by"}, {"task=id", "to=assigned_to"}},
    {"task.unassigned",    "task_unassigned", "unassign_task", "by", {"project", "task_id=id"}},
    {"task.reviewed",      "task_reviewer_added", "add_reviewer", "by", {"project", "task_id=id", "reviewer=by"}},
    {"approval.created",   "proposal_created", "propose", "agent", {"proposal_id=id", "agent", "action", "project", "task_id", "to"}},
    {"approval.approved",  "proposal_approved", "approve_proposal", NULL, {"proposal_id=id", "agent", "action", "project", "task_id", "reason"}},
    {"approval.rejected",  "proposal_rejected", "reject_proposal", NULL, {"proposal_id=id", "agent", "action", "project", "task_id", "reason"}},
    {"approval.closed",    "proposal_closed", "close_proposal", NULL, {"proposal_id=id", "agent", "action", "project", "task_id", "reason"}},
};
/* clang-format on */

/* Of the questions to people, the hub knows only proposals. */
static bool is_the_hubs(const struct event *ev, const json_t *data)
{
    const char *kind = json_string_value(json_object_get(data, "kind"));

    return !str_starts(ev->type, STR("approval.")) || (kind && strcmp(kind, "proposal") == 0);
}

static const struct word *word_of(struct str type)
{
    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        if (str_eq_c(type, words[i].type))
            return &words[i];
    return NULL;
}

static void write_task(struct jw *w, const json_t *data)
{
    static const char *const members[] = {"id",       "title",       "status",
                                          "priority", "assigned_to", "required_capabilities"};

    jw_object(w);
    for (size_t i = 0; i < ARRAY_LEN(members); i++) {
        const json_t *v = json_object_get(data, members[i]);

        jw_key(w, members[i]);
        if (json_is_string(v) && json_string_length(v) == 0)
            jw_null(w);
        else
            jw_json(w, v);
    }
    jw_object_end(w);
}

/* The first characters of a message. */
static struct str shown(const json_t *v)
{
    struct str s = str_make(json_string_value(v), json_string_length(v));
    size_t n = 0, characters = 0;

    while (n < s.n && (characters < CONTENT_SHOWN || ((unsigned char)s.p[n] & 0xc0) == 0x80)) {
        n++;
        characters += n == s.n || ((unsigned char)s.p[n] & 0xc0) != 0x80;
    }
    return str_make(s.p, n);
}

static void write_member(struct jw *w, const char *field, const json_t *data)
{
    struct str ours, theirs = str_cut(str_of(field), '=', &ours);
    char key[32], from[32];
    const json_t *v;
    int64_t ms;

    (void)snprintf(key, sizeof key, STR_FMT, STR_ARG(theirs));
    (void)snprintf(from, sizeof from, STR_FMT, STR_ARG(ours.n > 0 ? ours : theirs));
    v = json_object_get(data, from);
    if (strcmp(key, "task") == 0 && ours.n == 0) {
        jw_key(w, key);
        write_task(w, data);
    } else if (strcmp(key, "content") == 0 && json_is_string(v)) {
        jw_kstr(w, key, shown(v));
    } else if (strcmp(key, "timestamp") == 0 && json_is_string(v) &&
               clock_parse(str_of(json_string_value(v)), &ms) == 0) {
        hub_ktime(w, key, ms);
    } else {
        jw_key(w, key);
        if (v)
            jw_json(w, v);
        else
            jw_null(w);
    }
}

static void write_data(struct jw *w, const struct word *word, const json_t *data, bool audit)
{
    jw_object(w);
    for (size_t i = 0; i < FIELDS_MAX && word->fields[i]; i++)
        write_member(w, word->fields[i], data);
    for (size_t i = 0; audit && i < AUDITED_MAX && word->audited[i]; i++)
        write_member(w, word->audited[i], data);
    jw_object_end(w);
}

/* --- live --- */

static bool hub_event_form(const struct event *ev, struct buf *to, struct str *ret_name)
{
    const struct word *word = word_of(ev->type);
    AUTO(json_decref) json_t *data = NULL;
    struct jw w = {.to = to};
    struct err e = {0};

    if (!word || !word->event || json_read(ev->data, &data, &e) < 0 || !is_the_hubs(ev, data))
        return false;
    write_data(&w, word, data, false);
    *ret_name = str_of(word->event);
    return true;
}

void hub_events(struct request *r)
{
    struct str id = sse_last_id(r->x);
    struct event_filter f = {0};

    /* Without an id only new events, as in the hub. */
    if (!id.p || str_parse_i64(id, &f.since_seq) < 0 || f.since_seq < 0)
        f.since_seq = events_head(r->api->c.events, NULL);
    if (str_eq_c(xchg_req(r->x)->method, "HEAD"))
        request_send(r, 200, "text/event-stream", STR(""));
    else
        event_stream_sse(r, &f, hub_event_form);
}

/* --- audit --- */

/* The acting agent; if none, a person, or for reads and refusals the actor. */
static void write_who(struct jw *w, const struct word *word, const json_t *data, struct str actor)
{
    const json_t *who = NULL;

    if (!word || word->who)
        who = json_object_get(data, word ? word->who : "agent");
    if (json_is_string(who) && json_string_length(who) > 0)
        jw_kc(w, "agent", json_string_value(who));
    else
        jw_kstr(w, "agent", word ? STR("human") : actor);
}

static int write_entry(struct jw *w, const struct event *ev, struct err *e)
{
    const struct word *word = word_of(ev->type);
    AUTO(json_decref) json_t *data = NULL;

    if (json_read(ev->data, &data, e) < 0)
        return -1;
    if (!is_the_hubs(ev, data))
        return 0;
    jw_object(w);
    if (word)
        jw_kc(w, "action", word->action);
    else
        jw_kstr(w, "action", ev->type);
    jw_kstr(w, "actor", ev->actor);
    write_who(w, word, data, ev->actor);
    jw_kint(w, "count", ev->count);
    jw_key(w, "details");
    if (word)
        write_data(w, word, data, true);
    else
        jw_raw(w, ev->data);
    jw_kstr(w, "object", ev->object);
    hub_ktime(w, "timestamp", ev->time_ms);
    jw_object_end(w);
    return 0;
}

int hub_audit_log(struct hub_call *c, struct err *e)
{
    struct event_list all;
    int64_t limit;

    if (hub_limit(c, 100, &limit, e) < 0 || team_log(&c->t, HUB_DIALECT, limit, &all, e) < 0)
        return -1;
    jw_array(&c->w);
    for (size_t i = all.n; i > 0; i--) /* oldest first */
        if (write_entry(&c->w, &all.v[i - 1], e) < 0)
            return -1;
    jw_array_end(&c->w);
    return 0;
}
