/* team_agent: the native operations on agents. */
#include "api/team/team_op.h"
#include "core/team/agent.h"
#include "ops/team.h"

static void write_members(struct jw *w, const struct agent *a)
{
    jw_kstr(w, "name", a->name);
    jw_kstr(w, "type", a->type);
    jw_kstr(w, "description", a->description);
    jw_kc(w, "status", agent_status_name(a->status));
    jw_kc(w, "mode", agent_mode_name(a->mode));
    jw_kc(w, "mode_max", agent_mode_name(a->mode_max));
    jw_key(w, "capabilities");
    team_write_tags(w, a->tags);
    jw_kint(w, "max_tasks", a->task_max);
    jw_ktext(w, "task_id", a->card);
    jw_kint(w, "checkpoint_sequence", a->sequence);
    jw_key(w, "metadata");
    jw_raw(w, a->metadata);
    jw_ktime(w, "registered_at", a->registered_ms);
    jw_ktime(w, "heartbeat_at", a->heartbeat_ms);
}

static void write_agent(struct jw *w, const struct agent *a)
{
    jw_object(w);
    write_members(w, a);
    jw_object_end(w);
}

static int write_now(struct team_call *c, struct str name, struct err *e)
{
    struct agent a;

    if (agent_need(&c->t, name, &a, e) < 0)
        return -1;
    write_agent(&c->w, &a);
    return 0;
}

static int agent_register_op(struct team_call *c, struct err *e)
{
    const struct agent_register_in *in = c->in;
    enum agent_mode mode = (enum agent_mode)in->mode;
    struct agent_spec s = {.name = in->name,
                           .type = in->type,
                           .mode = in->mode < 0 ? NULL : &mode,
                           .by_itself = c->implied || !team_is_person(&c->t),
                           .task_max = in->max_tasks == OP_ABSENT ? -1 : in->max_tasks};
    struct agent a;

    if (team_list_tags(c, in->capabilities, &s.tags, e) < 0 ||
        team_object(c, "metadata", in->metadata, &s.metadata, e) < 0 ||
        agent_register(&c->t, &s, &a, e) < 0)
        return -1;
    (void)snprintf(c->job.object, sizeof c->job.object, "agent/" STR_FMT, STR_ARG(a.name));
    write_agent(&c->w, &a);
    return 0;
}

static int agent_list_op(struct team_call *c, struct err *e)
{
    const struct agent_list_in *in = c->in;
    struct agent_list all;
    struct str tag;

    if (team_tags(&c->arena, &in->capability, in->capability.p != NULL, &tag, e) < 0 ||
        agent_all(&c->t, &all, e) < 0)
        return -1;
    reply_list_begin(&c->page, &c->w, "agents", in->cursor, in->limit);
    for (size_t i = 0; i < all.n; i++)
        if (team_tags_cover(all.v[i].tags, tag) &&
            (in->status < 0 || in->status == (int)all.v[i].status) &&
            reply_list_take(&c->page, all.v[i].name))
            write_agent(&c->w, &all.v[i]);
    reply_list_end(&c->page);
    return 0;
}

static int agent_get_op(struct team_call *c, struct err *e)
{
    const struct agent_name_in *in = c->in;

    return write_now(c, in->name, e);
}

static int agent_update_op(struct team_call *c, struct err *e)
{
    const struct agent_update_in *in = c->in;
    bool profile = in->capabilities.n > 0 || in->clear_capabilities || in->description.p ||
                   in->max_tasks != OP_ABSENT;
    struct str tags;
    struct agent a;

    if (agent_need(&c->t, in->name, &a, e) < 0 || team_list_tags(c, in->capabilities, &tags, e) < 0)
        return -1;
    if (in->capabilities.n == 0 && !in->clear_capabilities)
        tags = a.tags;
    if (in->mode >= 0 && agent_set_mode(&c->t, in->name, (enum agent_mode)in->mode, e) < 0)
        return -1;
    if (profile &&
        agent_set_tags(&c->t, in->name, tags, in->description.p ? in->description : a.description,
                       in->max_tasks == OP_ABSENT ? -1 : in->max_tasks, e) < 0)
        return -1;
    return write_now(c, in->name, e);
}

static int agent_remove_op(struct team_call *c, struct err *e)
{
    const struct agent_name_in *in = c->in;

    return agent_remove(&c->t, in->name, e);
}

static int agent_heartbeat_op(struct team_call *c, struct err *e)
{
    const struct agent_name_in *in = c->in;
    struct agent a;

    if (agent_heartbeat(&c->t, in->name, &a, e) < 0)
        return -1;
    jw_object(&c->w);
    jw_kint(&c->w, "ticks", a.ticks);
    jw_kc(&c->w, "status", agent_status_name(a.status));
    jw_object_end(&c->w);
    return 0;
}

static int agent_default_mode_op(struct team_call *c, struct err *e)
{
    const struct agent_default_mode_in *in = c->in;
    struct agent_list changed;

    if (agent_set_default_mode(&c->t, (enum agent_mode)in->mode, team_text(in->type), &changed, e) <
        0)
        return -1;
    jw_object(&c->w);
    jw_kc(&c->w, "mode", op_agent_modes[in->mode]);
    jw_key(&c->w, "agents");
    jw_array(&c->w);
    for (size_t i = 0; i < changed.n; i++)
        jw_str(&c->w, changed.v[i].name);
    jw_array_end(&c->w);
    jw_object_end(&c->w);
    return 0;
}

/* --- checkpoints --- */

static void write_checkpoint(struct jw *w, const struct checkpoint *k)
{
    jw_object(w);
    jw_kstr(w, "id", k->id);
    jw_kstr(w, "agent", k->agent);
    jw_kint(w, "sequence", k->sequence);
    jw_ktext(w, "task_id", k->card);
    jw_kstr(w, "state", k->state);
    jw_kstr(w, "rationale", k->rationale);
    jw_key(w, "metadata");
    jw_raw(w, k->metadata);
    jw_ktime(w, "created_at", k->created_ms);
    jw_object_end(w);
}

static int agent_checkpoint_op(struct team_call *c, struct err *e)
{
    const struct agent_checkpoint_in *in = c->in;
    struct checkpoint k = {
        .agent = in->name, .card = in->task_id, .state = in->state, .rationale = in->rationale};

    if (team_object(c, "metadata", in->metadata, &k.metadata, e) < 0 ||
        agent_checkpoint(&c->t, &k, e) < 0)
        return -1;
    (void)snprintf(c->job.object, sizeof c->job.object, "checkpoint/" STR_FMT, STR_ARG(k.id));
    write_checkpoint(&c->w, &k);
    return 0;
}

static int agent_checkpoints_op(struct team_call *c, struct err *e)
{
    const struct agent_checkpoints_in *in = c->in;
    struct checkpoint_list all;

    if (agent_checkpoints(&c->t, in->name, in->limit, &all, e) < 0)
        return -1;
    reply_list_begin(&c->page, &c->w, "checkpoints", STR(""), in->limit);
    for (size_t i = 0; i < all.n; i++)
        if (reply_list_take(&c->page, all.v[i].id))
            write_checkpoint(&c->w, &all.v[i]);
    reply_list_end(&c->page);
    return 0;
}

/* --- directives --- */

static int agent_pause_op(struct team_call *c, struct err *e)
{
    const struct agent_pause_in *in = c->in;

    if (agent_pause(&c->t, in->name, team_text(in->reason), e) < 0)
        return -1;
    return write_now(c, in->name, e);
}

static int agent_resume_op(struct team_call *c, struct err *e)
{
    const struct agent_name_in *in = c->in;
    struct agent a;

    if (agent_resume(&c->t, in->name, &a, e) < 0)
        return -1;
    write_agent(&c->w, &a);
    return 0;
}

static void write_revocation(struct jw *w, const struct directive *d)
{
    jw_object(w);
    jw_kstr(w, "id", d->id);
    jw_kstr(w, "agent", d->agent);
    jw_kstr(w, "reason", d->reason);
    jw_kbool(w, "flush", d->flush);
    jw_kstr(w, "issued_by", d->actor);
    jw_ktime(w, "issued_at", d->issued_ms);
    jw_ktime(w, "acknowledged_at", d->ended_ms);
    jw_object_end(w);
}

static int agent_revoke_op(struct team_call *c, struct err *e)
{
    const struct agent_revoke_in *in = c->in;
    struct directive d;

    if (agent_revoke(&c->t, in->name, team_text(in->reason), in->flush, &d, e) < 0)
        return -1;
    if (in->stop)
        c->job.stop_boxes = in->name;
    write_revocation(&c->w, &d);
    return 0;
}

static int agent_revocation_op(struct team_call *c, struct err *e)
{
    const struct agent_name_in *in = c->in;
    struct directive d;
    int open = agent_revocation(&c->t, in->name, &d, e);

    if (open < 0)
        return -1;
    jw_object(&c->w);
    jw_kbool(&c->w, "pending", open > 0);
    jw_ktext(&c->w, "id", open ? d.id : STR(""));
    jw_ktext(&c->w, "reason", open ? d.reason : STR(""));
    jw_key(&c->w, "flush");
    if (open)
        jw_bool(&c->w, d.flush);
    else
        jw_null(&c->w);
    jw_object_end(&c->w);
    return 0;
}

static int agent_ack_op(struct team_call *c, struct err *e)
{
    const struct agent_ack_in *in = c->in;
    int ended = agent_acknowledge(&c->t, in->name, team_text(in->id), e);

    if (ended < 0)
        return -1;
    jw_object(&c->w);
    jw_kint(&c->w, "ended", ended);
    jw_object_end(&c->w);
    return 0;
}

static int revocation_list_op(struct team_call *c, struct err *e)
{
    const struct revocation_list_in *in = c->in;
    struct directive_list all;

    if (agent_directives(&c->t, "revoke", in->limit, &all, e) < 0)
        return -1;
    reply_list_begin(&c->page, &c->w, "revocations", STR(""), in->limit);
    for (size_t i = 0; i < all.n; i++)
        if (reply_list_take(&c->page, all.v[i].id))
            write_revocation(&c->w, &all.v[i]);
    reply_list_end(&c->page);
    return 0;
}

const struct team_op team_agent_ops[] = {
    {&op_agent_register, TEAM_DURABLE, agent_register_op, .gives_token = true},
    {&op_agent_list, TEAM_READ, agent_list_op},
    {&op_agent_get, TEAM_READ, agent_get_op},
    {&op_agent_update, TEAM_DURABLE, agent_update_op},
    {&op_agent_remove, TEAM_DURABLE, agent_remove_op, .takes_tokens = true},
    {&op_agent_heartbeat, TEAM_RELAXED, agent_heartbeat_op},
    {&op_agent_default_mode, TEAM_DURABLE, agent_default_mode_op},
    {&op_agent_checkpoint, TEAM_DURABLE, agent_checkpoint_op},
    {&op_agent_checkpoints, TEAM_READ, agent_checkpoints_op},
    {&op_agent_pause, TEAM_DURABLE, agent_pause_op},
    {&op_agent_resume, TEAM_DURABLE, agent_resume_op},
    {&op_agent_revoke, TEAM_DURABLE, agent_revoke_op},
    {&op_agent_revocation, TEAM_READ, agent_revocation_op},
    {&op_agent_ack, TEAM_DURABLE, agent_ack_op},
    {&op_revocation_list, TEAM_READ, revocation_list_op},
};
const size_t team_agent_op_count = ARRAY_LEN(team_agent_ops);
