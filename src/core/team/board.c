/* board: projects, their members and limits. */
#include "core/team/board.h"

#include "base/sm.h"
#include "core/team/board_internal.h"
#include "core/team/proposal.h"

static const struct sm_state card_states[CARD_STATUSES] = {
    [CARD_BACKLOG] = {"backlog", SM_TO(CARD_READY) | SM_TO(CARD_BLOCKED)},
    [CARD_READY] = {"ready", SM_TO(CARD_IN_PROGRESS) | SM_TO(CARD_BLOCKED) | SM_TO(CARD_BACKLOG)},
    [CARD_IN_PROGRESS] = {"in_progress",
                          SM_TO(CARD_IN_REVIEW) | SM_TO(CARD_BLOCKED) | SM_TO(CARD_READY)},
    [CARD_IN_REVIEW] = {"in_review", SM_TO(CARD_DONE) | SM_TO(CARD_IN_PROGRESS)},
    [CARD_BLOCKED] = {"blocked", SM_TO(CARD_READY) | SM_TO(CARD_BACKLOG)},
    [CARD_DONE] = {"done", SM_TO(CARD_BACKLOG)},
};

static const int64_t default_limits[CARD_STATUSES] = {
    [CARD_BACKLOG] = -1,  [CARD_READY] = -1,   [CARD_IN_PROGRESS] = 3,
    [CARD_IN_REVIEW] = 5, [CARD_BLOCKED] = -1, [CARD_DONE] = -1,
};

const char *card_status_name(enum card_status s)
{
    assert(s < CARD_STATUSES);
    return card_states[s].name;
}

bool card_status_parse(struct str s, enum card_status *ret)
{
    int i;

    if (!sm_find(card_states, CARD_STATUSES, s, &i))
        return false;
    *ret = (enum card_status)i;
    return true;
}

bool card_may_move(enum card_status from, enum card_status to)
{
    struct sm m = {.table = card_states, .state = (int)from};

    return sm_may(&m, (int)to);
}

/* --- projects --- */

int board_need(struct team *t, struct str project, struct err *e)
{
    int64_t n;

    if (team_number(t, "SELECT COUNT(*) FROM projects WHERE id = :id",
                    PARAMS(P_TEXT("id", project)), &n, e) < 0)
        return -1;
    return n > 0 ? 0 : team_missing(t, "project", project, e);
}

static int read_members(struct team *t, struct project *p, struct err *e)
{
    struct store_rows *rows;
    AUTO(buf_done) struct buf all = {0};
    int r;

    if (tx_query(t->tx,
                 "SELECT agent FROM project_members WHERE project = :id ORDER BY place, agent",
                 PARAMS(P_TEXT("id", p->id)), &rows, e) < 0)
        return -1;
    while ((r = rows_step(rows, e)) > 0) {
        if (buf_len(&all) > 0)
            buf_add_char(&all, ',');
        buf_add_str(&all, rows_text(rows, 0));
    }
    rows_end(rows);
    p->members = arena_str(t->arena, buf_str(&all));
    return r;
}

static int read_limits(struct team *t, struct str project, int64_t ret[CARD_STATUSES],
                       bool ret_set[CARD_STATUSES], struct err *e)
{
    struct store_rows *rows;
    int r;

    memcpy(ret, default_limits, sizeof default_limits);
    if (tx_query(t->tx, "SELECT status, cards FROM project_limits WHERE project = :id",
                 PARAMS(P_TEXT("id", project)), &rows, e) < 0)
        return -1;
    while ((r = rows_step(rows, e)) > 0) {
        int64_t s = rows_int(rows, 0);

        if (s < 0 || s >= CARD_STATUSES)
            continue;
        ret[s] = rows_int(rows, 1);
        ret_set[s] = true;
    }
    rows_end(rows);
    return r;
}

int board_limits(struct team *t, struct str project, int64_t ret[CARD_STATUSES], struct err *e)
{
    bool set[CARD_STATUSES];

    return read_limits(t, project, ret, set, e);
}

int64_t card_limit_default(enum card_status s)
{
    assert(s < CARD_STATUSES);
    return default_limits[s];
}

static void read_project(const struct team *t, const struct store_rows *r, void *to)
{
    *(struct project *)to = (struct project){
        .id = team_column(t, r, 0),
        .name = team_column(t, r, 1),
        .creator = team_column(t, r, 2),
        .created_ms = rows_int(r, 3),
    };
}

static int read_projects(struct team *t, const char *sql, const struct store_param *p, size_t n,
                         struct project_list *ret, struct err *e)
{
    struct team_rows l = {.size = sizeof *ret->v, .read = read_project};
    int r = team_read(t, sql, p, n, &l, e);

    *ret = (struct project_list){l.v, l.n};
    for (size_t i = 0; r == 0 && i < ret->n; i++)
        if (read_members(t, &ret->v[i], e) < 0 ||
            read_limits(t, ret->v[i].id, ret->v[i].limits, ret->v[i].limit_set, e) < 0)
            return -1;
    return r;
}

#define PROJECT_SELECT "SELECT id, name, creator, created_ms FROM projects "

int project_need(struct team *t, struct str id, struct project *ret, struct err *e)
{
    struct project_list found;

    if (read_projects(t, PROJECT_SELECT "WHERE id = :id", PARAMS(P_TEXT("id", id)), &found, e) < 0)
        return -1;
    if (found.n == 0)
        return team_missing(t, "project", id, e);
    *ret = found.v[0];
    return 0;
}

int project_all(struct team *t, struct str member, struct project_list *ret, struct err *e)
{
    if (member.n == 0)
        return read_projects(t, PROJECT_SELECT "ORDER BY id", NO_PARAMS, ret, e);
    return read_projects(t,
                         PROJECT_SELECT "WHERE id IN (SELECT project FROM project_members "
                                        "WHERE agent = :agent) ORDER BY id",
                         PARAMS(P_TEXT("agent", member)), ret, e);
}

static void project_event(struct team *t, const char *type, const struct project *p,
                          struct str agent)
{
    AUTO(buf_done) struct buf data = {0};
    struct jw w = {.to = &data};

    jw_object(&w);
    jw_kstr(&w, "id", p->id);
    jw_kstr(&w, "name", p->name);
    jw_kstr(&w, "creator", p->creator);
    jw_kstr(&w, "agent", agent);
    jw_key(&w, "members");
    team_write_tags(&w, p->members);
    jw_key(&w, "limits");
    jw_object(&w);
    for (int s = 0; s < CARD_STATUSES; s++)
        if (p->limits[s] >= 0)
            jw_kint(&w, card_states[s].name, p->limits[s]);
    jw_object_end(&w);
    jw_ktime(&w, "created_at", p->created_ms);
    jw_object_end(&w);
    team_event(t, type, "project", p->id, &data);
}

static int add_member(struct team *t, struct str project, struct str agent, int64_t place,
                      struct err *e)
{
    int64_t n = tx_run(t->tx,
                       "INSERT INTO project_members (project, agent, joined_ms, place) VALUES "
                       "(:project, :agent, :now, :place) ON CONFLICT (project, agent) DO NOTHING",
                       PARAMS(P_TEXT("project", project), P_TEXT("agent", agent),
                              P_INT("now", t->now_ms), P_INT("place", place)),
                       e);

    return n < 0 ? -1 : (int)n;
}

int project_create(struct team *t, struct str name, struct str creator, struct project *ret,
                   struct err *e)
{
    struct project p = {.name = name, .created_ms = t->now_ms};
    int64_t count;

    if (agent_act_as(t, creator, &p.creator, e) < 0 ||
        team_check_name("a project's creator", p.creator, e) < 0 ||
        team_number(t, "SELECT COUNT(*) FROM projects", NO_PARAMS, &count, e) < 0)
        return -1;
    if (name.n == 0 || name.n > 256)
        return err_set(e, ERR_INVALID, 0, "a project's name must have 1 to 256 bytes");
    if (count >= t->conf.objects_max) {
        err_set(e, ERR_LIMIT, 0, "there are %lld projects already", (long long)count);
        return err_limit(e, "team_max", t->conf.objects_max, "remove some (holt project ls)");
    }
    p.id = team_id(t, "pj");
    p.members = p.creator;
    memcpy(p.limits, default_limits, sizeof p.limits);
    if (tx_run(t->tx,
               "INSERT INTO projects (id, name, creator, created_ms) VALUES (:id, :name, "
               ":creator, :now)",
               PARAMS(P_TEXT("id", p.id), P_TEXT("name", name), P_TEXT("creator", p.creator),
                      P_INT("now", t->now_ms)),
               e) < 0 ||
        add_member(t, p.id, p.creator, 0, e) < 0)
        return -1;
    project_event(t, "project.created", &p, p.creator);
    *ret = p;
    return 0;
}

static void read_name(const struct team *t, const struct store_rows *r, void *to)
{
    *(struct str *)to = team_column(t, r, 0);
}

int project_remove(struct team *t, struct str id, struct err *e)
{
    static const char *const rows[] = {
        "DELETE FROM card_moves WHERE card IN (SELECT id FROM cards WHERE project = :id)",
        "UPDATE agents SET card = '' WHERE card IN (SELECT id FROM cards WHERE project = :id)",
        "DELETE FROM cards WHERE project = :id",
        "DELETE FROM project_limits WHERE project = :id",
        "DELETE FROM project_members WHERE project = :id",
        "DELETE FROM projects WHERE id = :id",
    };
    struct team_rows owners = {.size = sizeof(struct str), .read = read_name};
    struct agent a;
    struct project p;
    struct str by;

    if (agent_act_as(t, STR(""), &by, e) < 0 || project_need(t, id, &p, e) < 0 ||
        team_read(t,
                  "SELECT DISTINCT assigned_to FROM cards WHERE project = :id ORDER BY assigned_to",
                  PARAMS(P_TEXT("id", id)), &owners, e) < 0)
        return -1;
    if (!team_is_person(t) && !str_eq(p.creator, by))
        return err_set(e, ERR_FORBIDDEN, 0, "only people and its creator can remove a project");
    if (board_drop_files(t, id, e) < 0 ||
        proposals_close(t, STR(""), id, "the project was removed", e) < 0)
        return -1;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (tx_run(t->tx, rows[i], PARAMS(P_TEXT("id", id)), e) < 0)
            return -1;
    project_event(t, "project.removed", &p, STR(""));
    for (size_t i = 0; i < owners.n; i++) /* the owners of its cards may no longer be busy */
        if (agent_refresh(t, ((struct str *)owners.v)[i], &a, e) < 0)
            return -1;
    return 0;
}

int project_join(struct team *t, struct str id, struct str agent, struct err *e)
{
    struct project p;
    int added;

    if (agent_act_as(t, agent, &agent, e) < 0 || team_check_name("a member's name", agent, e) < 0 ||
        project_need(t, id, &p, e) < 0)
        return -1;
    if (team_tags_count(p.members) >= TEAM_PAGE_MAX) {
        err_set(e, ERR_LIMIT, 0, "the project has %d members already", TEAM_PAGE_MAX);
        return err_limit_fixed(e, TEAM_PAGE_MAX, "make another project");
    }
    added = add_member(t, id, agent, (int64_t)team_tags_count(p.members), e);
    if (added <= 0)
        return added;
    p.members = team_tags_add(t->arena, p.members, agent);
    project_event(t, "project.joined", &p, agent);
    return 0;
}

int project_set_limit(struct team *t, struct str id, enum card_status s, int64_t cards,
                      struct err *e)
{
    struct project p;

    if (board_may_assign(t, e) < 0 || project_need(t, id, &p, e) < 0)
        return -1;
    if (cards < 0 || cards > 1000000)
        return err_set(e, ERR_INVALID, 0, "a limit must be a whole number from 0 to 1000000");
    if (tx_run(t->tx,
               "INSERT INTO project_limits (project, status, cards) VALUES (:id, :status, :cards) "
               "ON CONFLICT (project, status) DO UPDATE SET cards = excluded.cards",
               PARAMS(P_TEXT("id", id), P_INT("status", s), P_INT("cards", cards)), e) < 0)
        return -1;
    p.limits[s] = cards;
    project_event(t, "project.limits", &p, STR(""));
    return 0;
}
