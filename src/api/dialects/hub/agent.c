/* agent: the hub's routes on agents, checkpoints and directives. */
#include "core/team/agent.h"
#include "api/dialects/hub/hub.h"

static int bad_mode(struct str text, struct err *e)
{
    return err_set(e, ERR_INVALID, 0, "Invalid mode: " STR_FMT, (int)size_min(text.n, 64), text.p);
}

static int refuse_missing(const char *what, struct err *e)
{
    return err_set(e, ERR_INVALID, 0, "%s required", what);
}

/* The hub has no word for "paused": we send "busy" and the reason. */
static const char *status_word(const struct agent *a)
{
    return a->status == AGENT_PAUSED ? "busy" : agent_status_name(a->status);
}

static void write_agent(struct jw *w, const struct agent *a)
{
    jw_object(w);
    jw_kc(w, "autonomy_mode", agent_mode_name(a->mode));
    jw_key(w, "capabilities");
    team_write_tags(w, a->tags);
    jw_kint(w, "checkpoint_sequence", a->sequence);
    jw_ktext(w, "current_task_id", a->card);
    hub_ktime(w, "last_heartbeat", a->heartbeat_ms);
    jw_kint(w, "max_concurrent_tasks", a->task_max);
    jw_kstr(w, "name", a->name);
    jw_kbool(w, "paused", a->paused);
    hub_ktime(w, "registered_at", a->registered_ms);
    jw_kc(w, "status", status_word(a));
    jw_kstr(w, "type", a->type);
    jw_object_end(w);
}

int hub_agent_register(struct hub_call *c, struct err *e)
{
    struct agent_spec s = {.by_itself = c->implied || !team_is_person(&c->t)};
    enum agent_mode mode;
    struct agent a;
    struct str wish;

    if (hub_text(c, "name", &s.name, e) < 0 || hub_text(c, "type", &s.type, e) < 0 ||
        hub_text(c, "autonomy_mode", &wish, e) < 0 || hub_tags(c, "capabilities", &s.tags, e) < 0 ||
        hub_object(c, "metadata", &s.metadata, e) < 0 ||
        hub_int(c, "max_concurrent_tasks", -1, &s.task_max, e) < 0)
        return -1;
    if (s.name.n == 0)
        return refuse_missing("name", e);
    if (agent_mode_parse(wish, &mode)) /* an unknown mode is ignored */
        s.mode = &mode;
    if (agent_register(&c->t, &s, &a, e) < 0)
        return -1;
    c->status = 201;
    jw_object(&c->w);
    jw_kc(&c->w, "autonomy_mode", agent_mode_name(a.mode));
    jw_key(&c->w, "capabilities");
    team_write_tags(&c->w, a.tags);
    jw_kstr(&c->w, "id", a.name);
    hub_ktime(&c->w, "registered_at", a.registered_ms);
    jw_kc(&c->w, "status", status_word(&a));
    jw_kstr(&c->w, "type", a.type);
    jw_object_end(&c->w);
    return 0;
}

int hub_agent_heartbeat(struct hub_call *c, struct err *e)
{
    struct agent a;

    if (agent_heartbeat(&c->t, c->path.v[0], &a, e) < 0)
        return -1;
    jw_object(&c->w);
    jw_kc(&c->w, "agent_status", status_word(&a));
    jw_kint(&c->w, "checkpoint_tick", a.ticks);
    jw_kbool(&c->w, "paused", a.paused);
    jw_kc(&c->w, "status", "ok");
    jw_object_end(&c->w);
    return 0;
}

int hub_agent_remove(struct hub_call *c, struct err *e)
{
    if (agent_remove(&c->t, c->path.v[0], e) < 0)
        return -1;
    hub_ok(c);
    return 0;
}

int hub_agent_list(struct hub_call *c, struct err *e)
{
    struct agent_list all;

    if (agent_all(&c->t, &all, e) < 0)
        return -1;
    jw_array(&c->w);
    for (size_t i = 0; i < all.n; i++)
        write_agent(&c->w, &all.v[i]);
    jw_array_end(&c->w);
    return 0;
}

int hub_agent_get(struct hub_call *c, struct err *e)
{
    struct agent a;

    if (agent_need(&c->t, c->path.v[0], &a, e) < 0)
        return -1;
    write_agent(&c->w, &a);
    return 0;
}

/* --- mode and capabilities --- */

static int mode_of(struct hub_call *c, enum agent_mode *ret, struct err *e)
{
    struct str text;

    if (hub_text(c, "mode", &text, e) < 0)
        return -1;
    *ret = AGENT_AUTONOMOUS;
    return text.p && !agent_mode_parse(text, ret) ? bad_mode(text, e) : 0;
}

int hub_agent_autonomy(struct hub_call *c, struct err *e)
{
    enum agent_mode mode;

    if (mode_of(c, &mode, e) < 0 || agent_set_mode(&c->t, c->path.v[0], mode, e) < 0)
        return -1;
    jw_object(&c->w);
    jw_kc(&c->w, "autonomy_mode", agent_mode_name(mode));
    jw_kstr(&c->w, "name", c->path.v[0]);
    jw_object_end(&c->w);
    return 0;
}

int hub_set_mode(struct hub_call *c, struct err *e)
{
    enum agent_mode mode;
    struct agent_list changed;
    struct str type;

    if (mode_of(c, &mode, e) < 0 || hub_text(c, "agent_type", &type, e) < 0 ||
        agent_set_default_mode(&c->t, mode, type, &changed, e) < 0)
        return -1;
    jw_object(&c->w);
    jw_kc(&c->w, "mode", agent_mode_name(mode));
    jw_key(&c->w, "updated_agents");
    jw_array(&c->w);
    for (size_t i = 0; i < changed.n; i++)
        jw_str(&c->w, changed.v[i].name);
    jw_array_end(&c->w);
    jw_object_end(&c->w);
    return 0;
}

int hub_agent_capabilities(struct hub_call *c, struct err *e)
{
    struct str tags, description;
    int64_t max;

    if (hub_tags(c, "tags", &tags, e) < 0 || hub_text(c, "description", &description, e) < 0 ||
        hub_int(c, "max_concurrent_tasks", -1, &max, e) < 0 ||
        agent_set_tags(&c->t, c->path.v[0], tags, description, max, e) < 0)
        return -1;
    jw_object(&c->w);
    jw_kstr(&c->w, "name", c->path.v[0]);
    jw_key(&c->w, "tags");
    team_write_tags(&c->w, tags);
    jw_object_end(&c->w);
    return 0;
}

int hub_capabilities(struct hub_call *c, struct err *e)
{
    struct agent_list all;

    if (agent_all(&c->t, &all, e) < 0)
        return -1;
    jw_array(&c->w);
    for (size_t i = 0; i < all.n; i++) {
        jw_object(&c->w);
        jw_kstr(&c->w, "agent", all.v[i].name);
        jw_kstr(&c->w, "description", all.v[i].description);
        jw_key(&c->w, "tags");
        team_write_tags(&c->w, all.v[i].tags);
        jw_object_end(&c->w);
    }
    jw_array_end(&c->w);
    return 0;
}

int hub_capabilities_match(struct hub_call *c, struct err *e)
{
    struct agent_list all;
    struct str tag, one;

    if (hub_query(c, "tag", &tag, e) < 0 || team_tags(&c->arena, &tag, 1, &one, e) < 0)
        return -1;
    if (one.n == 0)
        return refuse_missing("tag", e);
    if (agent_all(&c->t, &all, e) < 0)
        return -1;
    jw_object(&c->w);
    jw_key(&c->w, "agents");
    jw_array(&c->w);
    for (size_t i = 0; i < all.n; i++)
        if (team_tags_have(all.v[i].tags, one))
            jw_str(&c->w, all.v[i].name);
    jw_array_end(&c->w);
    jw_kstr(&c->w, "tag", tag);
    jw_object_end(&c->w);
    return 0;
}

/* --- checkpoints --- */

static void write_checkpoint(struct jw *w, const struct checkpoint *k)
{
    jw_object(w);
    jw_kstr(w, "agent_name", k->agent);
    jw_kstr(w, "id", k->id);
    jw_key(w, "metadata");
    jw_raw(w, k->metadata);
    jw_kstr(w, "rationale", k->rationale);
    jw_kint(w, "sequence", k->sequence);
    jw_kstr(w, "state", k->state);
    jw_ktext(w, "task_id", k->card);
    hub_ktime(w, "timestamp", k->created_ms);
    jw_object_end(w);
}

int hub_checkpoint(struct hub_call *c, struct err *e)
{
    struct checkpoint k = {.agent = c->path.v[0]};
    struct str *texts[] = {&k.card, &k.state, &k.rationale};

    if (hub_text(c, "task_id", &k.card, e) < 0 || hub_text(c, "state", &k.state, e) < 0 ||
        hub_text(c, "rationale", &k.rationale, e) < 0 ||
        hub_object(c, "metadata", &k.metadata, e) < 0)
        return -1;
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        if (!texts[i]->p)
            *texts[i] = STR("");
    if (agent_checkpoint(&c->t, &k, e) < 0)
        return -1;
    jw_object(&c->w);
    jw_kstr(&c->w, "id", k.id);
    jw_kint(&c->w, "sequence", k.sequence);
    hub_ktime(&c->w, "timestamp", k.created_ms);
    jw_object_end(&c->w);
    return 0;
}

int hub_checkpoint_get(struct hub_call *c, struct err *e)
{
    struct checkpoint_list last;
    struct agent a;
    int known = agent_find(&c->t, c->path.v[0], &a, e);

    if (known < 0 || agent_checkpoints(&c->t, c->path.v[0], 1, &last, e) < 0)
        return -1;
    /* Checkpoints of an earlier registration do not count. */
    if (last.n == 0 || known == 0 || a.sequence == 0)
        return err_set(e, ERR_NOT_FOUND, 0, "No checkpoint found");
    write_checkpoint(&c->w, &last.v[0]);
    return 0;
}

int hub_checkpoint_list(struct hub_call *c, struct err *e)
{
    struct checkpoint_list all;
    int64_t limit;

    if (hub_limit(c, 50, &limit, e) < 0 ||
        agent_checkpoints(&c->t, c->path.v[0], limit, &all, e) < 0)
        return -1;
    jw_array(&c->w);
    for (size_t i = 0; i < all.n; i++)
        write_checkpoint(&c->w, &all.v[i]);
    jw_array_end(&c->w);
    return 0;
}

/* --- directives --- */

static int reason_of(struct hub_call *c, struct str *ret, struct err *e)
{
    if (hub_text(c, "reason", ret, e) < 0)
        return -1;
    if (!ret->p)
        *ret = STR("");
    return 0;
}

static void write_status(struct hub_call *c, const char *status, bool paused)
{
    jw_object(&c->w);
    jw_kstr(&c->w, "name", c->path.v[0]);
    jw_kbool(&c->w, "paused", paused);
    jw_kc(&c->w, "status", status);
    jw_object_end(&c->w);
}

int hub_pause(struct hub_call *c, struct err *e)
{
    struct str reason;

    if (reason_of(c, &reason, e) < 0 || agent_pause(&c->t, c->path.v[0], reason, e) < 0)
        return -1;
    write_status(c, "busy", true);
    return 0;
}

int hub_resume(struct hub_call *c, struct err *e)
{
    struct agent a;

    if (agent_resume(&c->t, c->path.v[0], &a, e) < 0)
        return -1;
    write_status(c, status_word(&a), false);
    return 0;
}

int hub_revoke(struct hub_call *c, struct err *e)
{
    struct directive d;
    struct str reason;
    bool flush;

    if (reason_of(c, &reason, e) < 0 || hub_bool(c, "flush_required", true, &flush, e) < 0 ||
        agent_revoke(&c->t, c->path.v[0], reason, flush, &d, e) < 0)
        return -1;
    jw_object(&c->w);
    jw_kstr(&c->w, "agent", d.agent);
    hub_ktime(&c->w, "issued_at", d.issued_ms);
    jw_kstr(&c->w, "revocation_id", d.id);
    jw_object_end(&c->w);
    return 0;
}

int hub_revocation(struct hub_call *c, struct err *e)
{
    struct directive d;
    int open = agent_revocation(&c->t, c->path.v[0], &d, e);

    if (open < 0)
        return -1;
    jw_object(&c->w);
    if (open)
        jw_kbool(&c->w, "flush_required", d.flush);
    jw_kbool(&c->w, "pending", open > 0);
    if (open) {
        jw_kstr(&c->w, "reason", d.reason);
        jw_kstr(&c->w, "revocation_id", d.id);
    }
    jw_object_end(&c->w);
    return 0;
}

int hub_revocation_ack(struct hub_call *c, struct err *e)
{
    struct str id;

    if (hub_text(c, "revocation_id", &id, e) < 0 ||
        agent_acknowledge(&c->t, c->path.v[0], id, e) < 0)
        return -1;
    hub_ok(c);
    return 0;
}

int hub_revocation_history(struct hub_call *c, struct err *e)
{
    struct directive_list all;
    int64_t limit;

    if (hub_limit(c, 50, &limit, e) < 0 || agent_directives(&c->t, "revoke", limit, &all, e) < 0)
        return -1;
    jw_array(&c->w);
    for (size_t i = all.n; i > 0; i--) { /* the last ones, oldest first */
        const struct directive *d = &all.v[i - 1];

        jw_object(&c->w);
        jw_kbool(&c->w, "acknowledged", d->ended_ms > 0);
        hub_ktime(&c->w, "acknowledged_at", d->ended_ms);
        jw_kstr(&c->w, "agent", d->agent);
        jw_kstr(&c->w, "id", d->id);
        hub_ktime(&c->w, "issued_at", d->issued_ms);
        jw_kstr(&c->w, "issued_by", d->actor);
        jw_kstr(&c->w, "reason", d->reason);
        jw_object_end(&c->w);
    }
    jw_array_end(&c->w);
    return 0;
}
