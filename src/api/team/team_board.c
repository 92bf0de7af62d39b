/* team_board: the native operations on projects, their tasks and their files. */
#include "api/native/handlers.h"
#include "api/team/project_file.h"
#include "api/team/team_op.h"
#include "base/mem.h"
#include "ops/board.h"

#include <inttypes.h>

#define HISTORY_MAX 1000

/* --- projects --- */

static void write_project(struct jw *w, const struct project *p)
{
    jw_object(w);
    jw_kstr(w, "id", p->id);
    jw_kstr(w, "name", p->name);
    jw_kstr(w, "creator", p->creator);
    jw_key(w, "members");
    team_write_tags(w, p->members);
    jw_key(w, "limits");
    jw_object(w);
    for (int s = 0; s < CARD_STATUSES; s++)
        if (p->limits[s] >= 0)
            jw_kint(w, op_card_statuses[s], p->limits[s]);
    jw_object_end(w);
    jw_ktime(w, "created_at", p->created_ms);
    jw_object_end(w);
}

static int write_project_now(struct team_call *c, struct str id, struct err *e)
{
    struct project p;

    if (project_need(&c->t, id, &p, e) < 0)
        return -1;
    write_project(&c->w, &p);
    return 0;
}

static int project_create_op(struct team_call *c, struct err *e)
{
    const struct project_create_in *in = c->in;
    struct project p;

    if (project_create(&c->t, in->name, team_name(c, in->creator), &p, e) < 0)
        return -1;
    (void)snprintf(c->job.object, sizeof c->job.object, "project/" STR_FMT, STR_ARG(p.id));
    write_project(&c->w, &p);
    return 0;
}

static int project_list_op(struct team_call *c, struct err *e)
{
    const struct project_list_in *in = c->in;
    struct project_list all;

    if (project_all(&c->t, team_text(in->member), &all, e) < 0)
        return -1;
    reply_list_begin(&c->page, &c->w, "projects", in->cursor, in->limit);
    for (size_t i = 0; i < all.n; i++)
        if (reply_list_take(&c->page, all.v[i].id))
            write_project(&c->w, &all.v[i]);
    reply_list_end(&c->page);
    return 0;
}

static int project_get_op(struct team_call *c, struct err *e)
{
    const struct project_id_in *in = c->in;

    return write_project_now(c, in->id, e);
}

static int project_remove_op(struct team_call *c, struct err *e)
{
    const struct project_id_in *in = c->in;

    return project_remove(&c->t, in->id, e);
}

static int project_join_op(struct team_call *c, struct err *e)
{
    const struct project_join_in *in = c->in;

    if (project_join(&c->t, in->id, in->agent, e) < 0)
        return -1;
    return write_project_now(c, in->id, e);
}

static int project_limit_op(struct team_call *c, struct err *e)
{
    const struct project_limit_in *in = c->in;

    if (project_set_limit(&c->t, in->id, (enum card_status)in->status, in->cards, e) < 0)
        return -1;
    return write_project_now(c, in->id, e);
}

static int64_t ms_of(double minutes)
{
    return (int64_t)(minutes * 60000 + 0.5);
}

static int project_metrics_op(struct team_call *c, struct err *e)
{
    const struct project_id_in *in = c->in;
    struct board_metrics m;
    struct jw *w = &c->w;

    if (board_metrics(&c->t, in->id, &m, e) < 0)
        return -1;
    jw_object(w);
    jw_kint(w, "total", m.total);
    jw_key(w, "by_status");
    jw_object(w);
    for (int s = 0; s < CARD_STATUSES; s++)
        jw_kint(w, op_card_statuses[s], m.by_status[s]);
    jw_object_end(w);
    jw_kint(w, "completed", m.completed);
    jw_kint(w, "cycle_avg_ms", ms_of(m.cycle_avg_min));
    jw_kint(w, "cycle_p50_ms", ms_of(m.cycle_p50_min));
    jw_kint(w, "cycle_p90_ms", ms_of(m.cycle_p90_min));
    jw_kint(w, "cycle_p99_ms", ms_of(m.cycle_p99_min));
    jw_key(w, "agents");
    jw_object(w);
    for (size_t i = 0; i < m.agent_count; i++) {
        jw_key(w, arena_cstr(&c->arena, m.agents[i].name));
        jw_object(w);
        jw_kint(w, "done", m.agents[i].done);
        jw_kint(w, "in_progress", m.agents[i].in_progress);
        jw_kint(w, "in_review", m.agents[i].in_review);
        jw_object_end(w);
    }
    jw_object_end(w);
    jw_object_end(w);
    return 0;
}

/* --- files --- */

static void write_file(struct jw *w, const struct board_file *f)
{
    jw_object(w);
    jw_kstr(w, "path", f->name);
    jw_kint(w, "version", f->version);
    jw_kstr(w, "checksum", f->hash);
    jw_kint(w, "size_bytes", f->size);
    jw_kstr(w, "uploader", f->uploader);
    jw_ktime(w, "created_at", f->created_ms);
    jw_object_end(w);
}

/* The newest first. */
static struct str version_key(struct team_call *c, int64_t version)
{
    return str_of(arena_printf(&c->arena, "%019" PRId64, INT64_MAX - version));
}

static int project_file_list_op(struct team_call *c, struct err *e)
{
    const struct project_file_list_in *in = c->in;
    struct board_file_list all;

    if (file_all(&c->t, in->id, team_text(in->path), &all, e) < 0)
        return -1;
    reply_list_begin(&c->page, &c->w, "files", in->cursor, in->limit);
    for (size_t i = 0; i < all.n; i++) {
        struct str key = in->path.n == 0 ? all.v[i].name : version_key(c, all.v[i].version);

        if (reply_list_take(&c->page, key))
            write_file(&c->w, &all.v[i]);
    }
    reply_list_end(&c->page);
    return 0;
}

static int project_file_remove_op(struct team_call *c, struct err *e)
{
    const struct project_file_in *in = c->in;

    return file_remove(&c->t, in->id, in->path, e);
}

void project_file_read_run(struct request *r)
{
    const struct project_file_in *in = r->in;

    file_download(r, in->id, in->path, in->version == OP_ABSENT ? 0 : in->version);
}

static int on_body(struct file_upload *u, struct str part, struct err *e)
{
    (void)e;
    file_upload_write(u, part);
    return 0;
}

static void file_uploaded(struct request *r, const struct board_file *f)
{
    struct jw w = request_json(r);

    write_file(&w, f);
    request_send_json(r, 0);
}

static void upload_free(struct file_upload *u)
{
    mem_free(u);
}

void project_file_write_run(struct request *r)
{
    static const struct file_upload_ops ops = {
        .body = on_body, .reply = file_uploaded, .free = upload_free};
    const struct project_file_write_in *in = r->in;
    struct file_upload *u;
    struct err e = {0};

    if (file_check_name(in->path, &e) < 0) {
        request_fail(r, &e);
        return;
    }
    u = xzalloc(sizeof *u);
    u->ops = &ops;
    u->f.name = arena_str(&u->arena, in->path);
    /* The preset is for people; an agent's own name is known. */
    if (r->who.role != ROLE_AGENT || !str_eq_c(in->uploader, TEAM_PERSON))
        u->f.uploader = arena_str(&u->arena, in->uploader);
    file_upload_start(u, r, in->id);
}

/* --- tasks --- */

static int write_task(struct team_call *c, const struct card *k, struct err *e)
{
    struct jw *w = &c->w;
    struct str subtasks;

    if (card_subtasks(&c->t, k->id, &subtasks, e) < 0)
        return -1;
    jw_object(w);
    jw_kstr(w, "id", k->id);
    jw_kstr(w, "project", k->project);
    jw_kstr(w, "title", k->title);
    jw_kstr(w, "description", k->description);
    jw_kc(w, "status", card_status_name(k->status));
    jw_kc(w, "priority", op_priorities[k->priority]);
    jw_ktext(w, "assigned_to", k->assigned_to);
    jw_ktext(w, "claimed_by", k->claimed_by);
    jw_key(w, "capabilities");
    team_write_tags(w, k->tags);
    jw_ktext(w, "blocked_reason", k->blocked_reason);
    jw_ktext(w, "blocked_by", k->blocked_by);
    jw_ktext(w, "parent", k->parent);
    jw_key(w, "subtasks");
    team_write_tags(w, subtasks);
    jw_key(w, "reviewers");
    team_write_tags(w, k->reviewers);
    jw_kint(w, "reviews", k->reviews_asked ? k->reviews : 0);
    jw_kstr(w, "created_by", k->created_by);
    jw_ktime(w, "created_at", k->created_ms);
    jw_ktime(w, "updated_at", k->updated_ms);
    jw_ktime(w, "started_at", k->started_ms);
    jw_ktime(w, "review_started_at", k->review_ms);
    jw_ktime(w, "completed_at", k->completed_ms);
    jw_object_end(w);
    return 0;
}

static int task_create_op(struct team_call *c, struct err *e)
{
    const struct task_create_in *in = c->in;
    struct card k = {.project = in->project,
                     .title = in->title,
                     .description = in->description,
                     .assigned_to = in->assigned_to,
                     .parent = in->parent,
                     .created_by = in->created_by,
                     .priority = in->priority,
                     .reviews = in->reviews == OP_ABSENT ? 1 : in->reviews,
                     .reviews_asked = in->reviews != OP_ABSENT};

    if (team_list_tags(c, in->capabilities, &k.tags, e) < 0 || card_create(&c->t, &k, e) < 0)
        return -1;
    (void)snprintf(c->job.object, sizeof c->job.object, "task/" STR_FMT, STR_ARG(k.id));
    return write_task(c, &k, e);
}

static int write_tasks(struct team_call *c, const struct card_list *all, struct str cursor,
                       int64_t limit, struct err *e)
{
    reply_list_begin(&c->page, &c->w, "tasks", cursor, limit);
    for (size_t i = 0; i < all->n; i++) {
        struct str key = str_of(
            arena_printf(&c->arena, "%d." STR_FMT, (int)all->v[i].priority, STR_ARG(all->v[i].id)));

        if (reply_list_take(&c->page, key) && write_task(c, &all->v[i], e) < 0)
            return -1;
    }
    reply_list_end(&c->page);
    return 0;
}

static int task_list_op(struct team_call *c, struct err *e)
{
    const struct task_list_in *in = c->in;
    struct card_filter f = {.project = in->project,
                            .owner = in->agent,
                            .status = in->status < 0 ? CARD_ANY : in->status};
    struct card_list all;
    struct project p;

    if ((in->project.n > 0 && project_need(&c->t, in->project, &p, e) < 0) ||
        card_all(&c->t, &f, &all, e) < 0)
        return -1;
    return write_tasks(c, &all, in->cursor, in->limit, e);
}

static int task_ready_op(struct team_call *c, struct err *e)
{
    const struct task_ready_in *in = c->in;
    struct card_list all;
    struct project p;
    struct str tags;

    if (team_list_tags(c, in->capabilities, &tags, e) < 0 ||
        project_need(&c->t, in->project, &p, e) < 0 ||
        card_queue(&c->t, in->project, team_text(in->agent), tags, &all, e) < 0)
        return -1;
    return write_tasks(c, &all, STR(""), TEAM_PAGE_MAX, e);
}

static int task_get_op(struct team_call *c, struct err *e)
{
    const struct task_id_in *in = c->in;
    struct card k;

    return card_need(&c->t, STR(""), in->id, &k, e) < 0 ? -1 : write_task(c, &k, e);
}

static int task_history_op(struct team_call *c, struct err *e)
{
    const struct task_id_in *in = c->in;
    struct card_step_list steps;
    struct card k;

    if (card_need(&c->t, STR(""), in->id, &k, e) < 0 ||
        card_history(&c->t, in->id, HISTORY_MAX, &steps, e) < 0)
        return -1;
    reply_list_begin(&c->page, &c->w, "moves", STR(""), HISTORY_MAX);
    for (size_t i = 0; i < steps.n; i++) {
        (void)reply_list_take(&c->page, steps.v[i].actor);
        jw_object(&c->w);
        jw_kc(&c->w, "from", card_status_name(steps.v[i].from));
        jw_kc(&c->w, "to", card_status_name(steps.v[i].to));
        jw_kstr(&c->w, "by", steps.v[i].actor);
        jw_kstr(&c->w, "note", steps.v[i].note);
        jw_ktime(&c->w, "at", steps.v[i].at_ms);
        jw_object_end(&c->w);
    }
    reply_list_end(&c->page);
    return 0;
}

/* --- changes of a task --- */

/* The result of a change; proposal empty: it was done. */
static int write_change(struct team_call *c, struct str id, struct str proposal, struct err *e)
{
    struct card k;

    if (card_need(&c->t, STR(""), id, &k, e) < 0)
        return -1;
    jw_object(&c->w);
    jw_key(&c->w, "task");
    if (write_task(c, &k, e) < 0)
        return -1;
    jw_ktext(&c->w, "approval", proposal);
    jw_object_end(&c->w);
    return 0;
}

static int task_claim_op(struct team_call *c, struct err *e)
{
    const struct task_claim_in *in = c->in;
    struct str proposal = STR("");
    struct card k;

    if (card_need(&c->t, STR(""), in->id, &k, e) < 0 ||
        card_claim(&c->t, k.project, in->id, in->agent, &proposal, e) < 0)
        return -1;
    return write_change(c, in->id, proposal, e);
}

static int task_assign_op(struct team_call *c, struct err *e)
{
    const struct task_claim_in *in = c->in;
    struct card k;

    if (card_need(&c->t, STR(""), in->id, &k, e) < 0 ||
        card_assign(&c->t, k.project, in->id, in->agent, STR(""), e) < 0)
        return -1;
    return write_change(c, in->id, STR(""), e);
}

static int task_unassign_op(struct team_call *c, struct err *e)
{
    const struct task_id_in *in = c->in;
    struct card k;

    if (card_need(&c->t, STR(""), in->id, &k, e) < 0 ||
        card_unassign(&c->t, k.project, in->id, e) < 0)
        return -1;
    return write_change(c, in->id, STR(""), e);
}

static int task_move_op(struct team_call *c, struct err *e)
{
    const struct task_move_in *in = c->in;
    struct card_move m = {.to = (enum card_status)in->status,
                          .agent = in->agent,
                          .note = in->note,
                          .blocked_reason = in->blocked_reason,
                          .blocked_by = in->blocked_by};
    struct str proposal = STR("");
    struct card k;

    if (card_need(&c->t, STR(""), in->id, &k, e) < 0 ||
        card_move(&c->t, k.project, in->id, &m, &k, &proposal, e) < 0)
        return -1;
    return write_change(c, in->id, proposal, e);
}

static int task_review_op(struct team_call *c, struct err *e)
{
    const struct task_claim_in *in = c->in;
    struct card k;

    if (card_need(&c->t, STR(""), in->id, &k, e) < 0 ||
        card_add_reviewer(&c->t, k.project, in->id, in->agent, e) < 0)
        return -1;
    return write_change(c, in->id, STR(""), e);
}

const struct team_op team_board_ops[] = {
    {&op_project_create, TEAM_DURABLE, project_create_op},
    {&op_project_list, TEAM_READ, project_list_op},
    {&op_project_get, TEAM_READ, project_get_op},
    {&op_project_remove, TEAM_DURABLE, project_remove_op},
    {&op_project_join, TEAM_DURABLE, project_join_op},
    {&op_project_limit, TEAM_DURABLE, project_limit_op},
    {&op_project_metrics, TEAM_READ, project_metrics_op},
    {&op_project_file_remove, TEAM_DURABLE, project_file_remove_op},
    {&op_project_file_list, TEAM_READ, project_file_list_op},
    {&op_task_create, TEAM_DURABLE, task_create_op},
    {&op_task_list, TEAM_READ, task_list_op},
    {&op_task_get, TEAM_READ, task_get_op},
    {&op_task_history, TEAM_READ, task_history_op},
    {&op_task_ready, TEAM_READ, task_ready_op},
    {&op_task_claim, TEAM_DURABLE, task_claim_op},
    {&op_task_assign, TEAM_DURABLE, task_assign_op},
    {&op_task_unassign, TEAM_DURABLE, task_unassign_op},
    {&op_task_move, TEAM_DURABLE, task_move_op},
    {&op_task_review, TEAM_DURABLE, task_review_op},
};
const size_t team_board_op_count = ARRAY_LEN(team_board_ops);
