/* board: the hub's routes on projects and tasks. */
#include "api/dialects/hub/hub.h"
#include "core/team/board_file.h"

#define HISTORY_SHOWN 5

static int refuse_missing(const char *what, struct err *e)
{
    return err_set(e, ERR_INVALID, 0, "%s required", what);
}

/* --- projects --- */

int hub_project_create(struct hub_call *c, struct err *e)
{
    struct project p;
    struct str name, creator;

    if (hub_text(c, "name", &name, e) < 0 || hub_text(c, "creator", &creator, e) < 0)
        return -1;
    if (name.n == 0 || (creator.n == 0 && team_is_person(&c->t)))
        return refuse_missing("name and creator", e);
    if (project_create(&c->t, name, creator, &p, e) < 0)
        return -1;
    c->status = 201;
    jw_object(&c->w);
    hub_ktime(&c->w, "created_at", p.created_ms);
    jw_kstr(&c->w, "id", p.id);
    jw_kstr(&c->w, "name", p.name);
    jw_object_end(&c->w);
    return 0;
}

static void write_files(struct jw *w, const struct board_file_list *files, struct arena *a)
{
    jw_key(w, "files");
    jw_object(w);
    for (size_t i = 0; i < files->n; i++) {
        jw_key(w, arena_cstr(a, files->v[i].name));
        jw_object(w);
        jw_kstr(w, "checksum", files->v[i].hash);
        jw_kint(w, "size", files->v[i].size);
        hub_ktime(w, "updated_at", files->v[i].created_ms);
        jw_kint(w, "version", files->v[i].version);
        jw_object_end(w);
    }
    jw_object_end(w);
}

/* Like the original: defaults under the names of its own constants, limits set by a PATCH under the
 * column's name.  Its page's script fails on a column name it does not expect. */
static void write_limits(struct jw *w, const struct project *p)
{
    static const char *const constants[CARD_STATUSES] = {
        [CARD_IN_PROGRESS] = "TaskStatus.IN_PROGRESS",
        [CARD_IN_REVIEW] = "TaskStatus.IN_REVIEW",
    };

    jw_key(w, "wip_limits");
    jw_object(w);
    for (int s = 0; s < CARD_STATUSES; s++)
        if (constants[s])
            jw_kint(w, constants[s], card_limit_default((enum card_status)s));
    for (int s = 0; s < CARD_STATUSES; s++)
        if (p->limit_set[s])
            jw_kint(w, card_status_name((enum card_status)s), p->limits[s]);
    jw_object_end(w);
}

/* files NULL: in the form of a list. */
static void write_project(struct hub_call *c, const struct project *p,
                          const struct board_file_list *files)
{
    struct jw *w = &c->w;

    jw_object(w);
    hub_ktime(w, "created_at", p->created_ms);
    if (files)
        write_files(w, files, &c->arena);
    jw_kstr(w, "id", p->id);
    jw_key(w, "members");
    team_write_tags(w, p->members);
    jw_kstr(w, "name", p->name);
    if (files)
        write_limits(w, p);
    jw_object_end(w);
}

int hub_project_list(struct hub_call *c, struct err *e)
{
    struct project_list all;
    struct str agent;

    if (hub_query(c, "agent", &agent, e) < 0 || project_all(&c->t, agent, &all, e) < 0)
        return -1;
    jw_array(&c->w);
    for (size_t i = 0; i < all.n; i++)
        write_project(c, &all.v[i], NULL);
    jw_array_end(&c->w);
    return 0;
}

int hub_project_get(struct hub_call *c, struct err *e)
{
    struct board_file_list files;
    struct project p;

    if (project_need(&c->t, c->path.v[0], &p, e) < 0 ||
        file_all(&c->t, p.id, STR(""), &files, e) < 0)
        return -1;
    write_project(c, &p, &files);
    return 0;
}

int hub_project_remove(struct hub_call *c, struct err *e)
{
    if (project_remove(&c->t, c->path.v[0], e) < 0)
        return -1;
    hub_ok(c);
    return 0;
}

int hub_project_join(struct hub_call *c, struct err *e)
{
    struct str agent;

    if (hub_text(c, "agent", &agent, e) < 0)
        return -1;
    if (agent.n == 0 && team_is_person(&c->t))
        return refuse_missing("agent", e);
    if (project_join(&c->t, c->path.v[0], agent, e) < 0)
        return -1;
    hub_ok(c);
    return 0;
}

static int status_of(struct str text, enum card_status *ret, struct err *e)
{
    if (card_status_parse(text, ret))
        return 0;
    return err_set(e, ERR_INVALID, 0, "Invalid status: " STR_FMT, (int)size_min(text.n, 64),
                   text.p);
}

int hub_project_wip(struct hub_call *c, struct err *e)
{
    struct str status;
    enum card_status s;
    int64_t limit;

    if (hub_text(c, "status", &status, e) < 0 || hub_int(c, "limit", INT64_MIN, &limit, e) < 0)
        return -1;
    if (status.n == 0 || limit == INT64_MIN)
        return refuse_missing("status and limit", e);
    if (status_of(status, &s, e) < 0 || project_set_limit(&c->t, c->path.v[0], s, limit, e) < 0)
        return -1;
    hub_ok(c);
    return 0;
}

static void write_rounded(struct jw *w, const char *key, double minutes)
{
    jw_key(w, key);
    jw_double(w, (double)(int64_t)(minutes * 10 + 0.5) / 10);
}

int hub_project_metrics(struct hub_call *c, struct err *e)
{
    struct board_metrics m;
    struct jw *w = &c->w;

    if (board_metrics(&c->t, c->path.v[0], &m, e) < 0)
        return -1;
    jw_object(w);
    jw_key(w, "agent_throughput");
    jw_object(w);
    for (size_t i = 0; i < m.agent_count; i++)
        if (m.agents[i].done > 0)
            jw_kint(w, arena_cstr(&c->arena, m.agents[i].name), m.agents[i].done);
    jw_object_end(w);
    jw_key(w, "agent_wip");
    jw_object(w);
    for (size_t i = 0; i < m.agent_count; i++) {
        jw_key(w, arena_cstr(&c->arena, m.agents[i].name));
        jw_object(w);
        jw_kint(w, "in_progress", m.agents[i].in_progress);
        jw_kint(w, "in_review", m.agents[i].in_review);
        jw_object_end(w);
    }
    jw_object_end(w);
    write_rounded(w, "avg_cycle_time_minutes", m.cycle_avg_min);
    jw_key(w, "by_status");
    jw_object(w);
    for (int s = 0; s < CARD_STATUSES; s++)
        jw_kint(w, card_status_name((enum card_status)s), m.by_status[s]);
    jw_object_end(w);
    jw_kint(w, "completed_count", m.completed);
    write_rounded(w, "p50_cycle_time_minutes", m.cycle_p50_min);
    write_rounded(w, "p90_cycle_time_minutes", m.cycle_p90_min);
    write_rounded(w, "p99_cycle_time_minutes", m.cycle_p99_min);
    jw_kint(w, "total_tasks", m.total);
    jw_object_end(w);
    return 0;
}

/* --- cards --- */

static void write_priority(struct jw *w, int64_t priority)
{
    char text[] = "P0";

    text[1] = (char)('0' + priority);
    jw_kc(w, "priority", text);
}

/* "p1" and "P1"; anything else is the default. */
static int64_t priority_of(struct str s)
{
    bool known = s.n == 2 && (s.p[0] == 'P' || s.p[0] == 'p') && s.p[1] >= '0' &&
                 s.p[1] < '0' + CARD_PRIORITIES;

    return known ? s.p[1] - '0' : CARD_PRIORITY_DEFAULT;
}

static int write_history(struct hub_call *c, const struct card *k, struct err *e)
{
    struct card_step_list steps;

    if (card_history(&c->t, k->id, HISTORY_SHOWN, &steps, e) < 0)
        return -1;
    jw_key(&c->w, "transitions");
    jw_array(&c->w);
    for (size_t i = 0; i < steps.n; i++) {
        jw_object(&c->w);
        hub_ktime(&c->w, "at", steps.v[i].at_ms);
        jw_kstr(&c->w, "by", steps.v[i].actor);
        jw_kc(&c->w, "from", card_status_name(steps.v[i].from));
        jw_kstr(&c->w, "note", steps.v[i].note);
        jw_kc(&c->w, "to", card_status_name(steps.v[i].to));
        jw_object_end(&c->w);
    }
    jw_array_end(&c->w);
    return 0;
}

static int write_card(struct hub_call *c, const struct card *k, struct err *e)
{
    struct jw *w = &c->w;
    struct str subtasks;

    if (card_subtasks(&c->t, k->id, &subtasks, e) < 0)
        return -1;
    jw_object(w);
    jw_ktext(w, "assigned_to", k->assigned_to);
    jw_ktext(w, "blocked_by", k->blocked_by);
    jw_ktext(w, "blocked_reason", k->blocked_reason);
    jw_ktext(w, "claimed_by", k->claimed_by);
    hub_ktime(w, "completed_at", k->completed_ms);
    hub_ktime(w, "created_at", k->created_ms);
    jw_kstr(w, "created_by", k->created_by);
    jw_kstr(w, "description", k->description);
    jw_kstr(w, "id", k->id);
    jw_ktext(w, "parent_task_id", k->parent);
    write_priority(w, k->priority);
    jw_key(w, "required_capabilities");
    team_write_tags(w, k->tags);
    jw_kint(w, "required_reviewers", k->reviews);
    hub_ktime(w, "review_started_at", k->review_ms);
    jw_key(w, "reviewers");
    team_write_tags(w, k->reviewers);
    hub_ktime(w, "started_at", k->started_ms);
    jw_kc(w, "status", card_status_name(k->status));
    jw_key(w, "subtasks");
    team_write_tags(w, subtasks);
    jw_kstr(w, "title", k->title);
    if (write_history(c, k, e) < 0)
        return -1;
    hub_ktime(w, "updated_at", k->updated_ms);
    jw_object_end(w);
    return 0;
}

int hub_task_create(struct hub_call *c, struct err *e)
{
    struct card k = {.project = c->path.v[0]};
    struct str priority;

    if (hub_text(c, "title", &k.title, e) < 0 ||
        hub_text(c, "description", &k.description, e) < 0 ||
        hub_text(c, "assigned_to", &k.assigned_to, e) < 0 ||
        hub_text(c, "priority", &priority, e) < 0 ||
        hub_tags(c, "required_capabilities", &k.tags, e) < 0 ||
        hub_int(c, "required_reviewers", 1, &k.reviews, e) < 0 ||
        hub_text(c, "created_by", &k.created_by, e) < 0 ||
        hub_text(c, "parent_task_id", &k.parent, e) < 0)
        return -1;
    if (k.title.n == 0)
        return refuse_missing("title", e);
    k.reviews_asked = c->body && json_is_integer(json_object_get(c->body, "required_reviewers"));
    k.priority = priority_of(priority);
    if (card_create(&c->t, &k, e) < 0)
        return -1;
    c->status = 201;
    jw_object(&c->w);
    jw_ktext(&c->w, "assigned_to", k.assigned_to);
    hub_ktime(&c->w, "created_at", k.created_ms);
    jw_kstr(&c->w, "description", k.description);
    jw_kstr(&c->w, "id", k.id);
    write_priority(&c->w, k.priority);
    jw_key(&c->w, "required_capabilities");
    team_write_tags(&c->w, k.tags);
    jw_kc(&c->w, "status", card_status_name(k.status));
    jw_kstr(&c->w, "title", k.title);
    jw_object_end(&c->w);
    return 0;
}

static int filter_of(struct hub_call *c, struct card_filter *f, struct err *e)
{
    struct str status, blocked, assigned;
    enum card_status s;

    f->status = CARD_ANY;
    if (hub_query(c, "status", &status, e) < 0 || hub_query(c, "agent", &f->owner, e) < 0 ||
        hub_query(c, "assigned_to", &assigned, e) < 0 ||
        hub_query(c, "include_blocked", &blocked, e) < 0)
        return -1;
    if (status.n > 0 && status_of(status, &s, e) < 0)
        return -1;
    if (status.n > 0)
        f->status = (int)s;
    if (f->owner.n == 0)
        f->owner = assigned;
    else if (assigned.n > 0 && !str_eq(f->owner, assigned))
        f->owner = STR(","); /* both filters contradict: use a name that nobody can have */
    f->no_blocked = str_case_eq_c(blocked, "false") || str_eq_c(blocked, "0");
    return 0;
}

int hub_task_list(struct hub_call *c, struct err *e)
{
    struct card_filter f = {.project = c->path.v[0]};
    struct card_list all;
    struct project p;

    if (filter_of(c, &f, e) < 0 || project_need(&c->t, f.project, &p, e) < 0 ||
        card_all(&c->t, &f, &all, e) < 0)
        return -1;
    jw_array(&c->w);
    for (size_t i = 0; i < all.n; i++)
        if (write_card(c, &all.v[i], e) < 0)
            return -1;
    jw_array_end(&c->w);
    return 0;
}

int hub_task_get(struct hub_call *c, struct err *e)
{
    struct card k;

    if (card_need(&c->t, c->path.v[0], c->path.v[1], &k, e) < 0)
        return -1;
    return write_card(c, &k, e);
}

/* capabilities=x&capabilities=y, or one with commas. */
static int query_tags(struct hub_call *c, struct str *ret, struct err *e)
{
    struct str left = c->query, name, value, list[TEAM_TAGS_MAX];
    size_t n = 0;

    while (left.n > 0 && http_query_next(&left, &name, &value)) {
        struct str text, pair = str_make(name.p, (size_t)(value.p + value.n - name.p));

        if (!str_eq_c(name, "capabilities") || !value.p)
            continue;
        if (http_query_get(pair, "capabilities", &c->arena, &text) < 0 || !str_is_utf8(text))
            return err_set(e, ERR_INVALID, 0, "capabilities must be well encoded");
        while (text.n > 0 && n < TEAM_TAGS_MAX)
            list[n++] = str_cut(text, ',', &text);
    }
    return team_tags(&c->arena, list, n, ret, e);
}

int hub_task_ready(struct hub_call *c, struct err *e)
{
    struct card_list all;
    struct str agent, tags;
    struct project p;

    if (hub_query(c, "agent", &agent, e) < 0 || query_tags(c, &tags, e) < 0 ||
        project_need(&c->t, c->path.v[0], &p, e) < 0 ||
        card_queue(&c->t, c->path.v[0], agent, tags, &all, e) < 0)
        return -1;
    jw_array(&c->w);
    for (size_t i = 0; i < all.n; i++) {
        jw_object(&c->w);
        jw_kstr(&c->w, "id", all.v[i].id);
        write_priority(&c->w, all.v[i].priority);
        jw_key(&c->w, "required_capabilities");
        team_write_tags(&c->w, all.v[i].tags);
        jw_kstr(&c->w, "title", all.v[i].title);
        jw_object_end(&c->w);
    }
    jw_array_end(&c->w);
    return 0;
}

int hub_tasks(struct hub_call *c, struct err *e)
{
    struct card_filter f = {0};
    struct card_list all = {0};

    if (hub_query(c, "project_id", &f.project, e) < 0 || filter_of(c, &f, e) < 0)
        return -1;
    /* Without any filter the hub lists nothing. */
    if ((f.project.n > 0 || f.owner.n > 0 || f.status != CARD_ANY) &&
        card_all(&c->t, &f, &all, e) < 0)
        return -1;
    jw_array(&c->w);
    for (size_t i = 0; i < all.n; i++) {
        jw_object(&c->w);
        jw_ktext(&c->w, "assigned_to", all.v[i].assigned_to);
        jw_kstr(&c->w, "id", all.v[i].id);
        write_priority(&c->w, all.v[i].priority);
        jw_kstr(&c->w, "project_id", all.v[i].project);
        jw_kc(&c->w, "status", card_status_name(all.v[i].status));
        jw_kstr(&c->w, "title", all.v[i].title);
        jw_object_end(&c->w);
    }
    jw_array_end(&c->w);
    return 0;
}

/* --- changes --- */

static void write_done(struct hub_call *c, bool task)
{
    jw_object(&c->w);
    jw_kbool(&c->w, "ok", true);
    if (task)
        jw_kstr(&c->w, "task_id", c->path.v[1]);
    jw_object_end(&c->w);
}

int hub_task_claim(struct hub_call *c, struct err *e)
{
    struct str agent, proposal;
    int r;

    if (hub_text(c, "agent", &agent, e) < 0)
        return -1;
    if (agent.n == 0 && team_is_person(&c->t))
        return refuse_missing("agent", e);
    r = card_claim(&c->t, c->path.v[0], c->path.v[1], agent, &proposal, e);
    if (r < 0)
        return -1;
    if (r > 0)
        hub_pending(c, proposal);
    else
        write_done(c, true);
    return 0;
}

int hub_task_assign(struct hub_call *c, struct err *e)
{
    struct str agent, by;

    if (hub_text(c, "agent", &agent, e) < 0 || hub_text(c, "assigned_by", &by, e) < 0)
        return -1;
    if (agent.n == 0)
        return refuse_missing("agent", e);
    if (by.n > TEAM_NAME_MAX)
        return err_set(e, ERR_INVALID, 0, "assigned_by has more than %d bytes", TEAM_NAME_MAX);
    if (card_assign(&c->t, c->path.v[0], c->path.v[1], agent, by, e) < 0)
        return -1;
    write_done(c, false);
    return 0;
}

int hub_task_unassign(struct hub_call *c, struct err *e)
{
    if (card_unassign(&c->t, c->path.v[0], c->path.v[1], e) < 0)
        return -1;
    write_done(c, false);
    return 0;
}

static void write_moved(struct jw *w, const struct card *k)
{
    jw_object(w);
    jw_ktext(w, "assigned_to", k->assigned_to);
    jw_ktext(w, "blocked_by", k->blocked_by);
    jw_ktext(w, "blocked_reason", k->blocked_reason);
    jw_kstr(w, "id", k->id);
    write_priority(w, k->priority);
    jw_kc(w, "status", card_status_name(k->status));
    jw_kstr(w, "title", k->title);
    jw_object_end(w);
}

int hub_task_move(struct hub_call *c, struct err *e)
{
    struct card_move m = {0};
    struct str status, proposal;
    struct card k;
    int r;

    if (hub_text(c, "status", &status, e) < 0 || hub_text(c, "agent", &m.agent, e) < 0 ||
        hub_text(c, "blocked_reason", &m.blocked_reason, e) < 0 ||
        hub_text(c, "blocked_by", &m.blocked_by, e) < 0 || hub_text(c, "note", &m.note, e) < 0)
        return -1;
    if (m.agent.n > TEAM_NAME_MAX)
        return err_set(e, ERR_INVALID, 0, "agent has more than %d bytes", TEAM_NAME_MAX);
    if (card_need(&c->t, STR(""), c->path.v[1], &k, e) < 0)
        return -1;
    if (!status.p) {
        write_moved(&c->w, &k);
        return 0;
    }
    if (!str_eq(k.project, c->path.v[0]))
        return err_set(e, ERR_INVALID, 0, "Task not found");
    if (status_of(status, &m.to, e) < 0)
        return -1;
    /* The SDK does not name the mover.  Without credentials it is the task's owner, or the one it
     * was taken from: treating it as a person would lift the agent's rules.  The page sends as
     * agent the one the task is for: the mover is the person. */
    if (c->implied && m.agent.n == 0)
        m.agent = k.assigned_to.n > 0 ? k.assigned_to : k.taken_from;
    if (c->at_page)
        m.agent = STR("");
    r = card_move(&c->t, c->path.v[0], c->path.v[1], &m, &k, &proposal, e);
    if (r < 0)
        return -1;
    if (r > 0)
        hub_pending(c, proposal);
    else
        write_moved(&c->w, &k);
    return 0;
}

int hub_task_reviewer(struct hub_call *c, struct err *e)
{
    if (card_add_reviewer(&c->t, c->path.v[0], c->path.v[1], c->path.v[2], e) < 0)
        return -1;
    hub_ok(c);
    return 0;
}
