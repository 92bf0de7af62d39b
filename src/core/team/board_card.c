/* board_card: cards as rows: create, find, list, save. */
#include "core/team/board_internal.h"

/* --- reading --- */

#define CARD_SELECT                                                                                \
    "SELECT id, project, title, description, assigned_to, claimed_by, tags, blocked_reason, "      \
    "blocked_by, parent, created_by, reviewers, status, priority, reviews, reviews_asked, moves, " \
    "created_ms, updated_ms, started_ms, review_ms, completed_ms, taken_from FROM cards "

static void read_card(const struct team *t, const struct store_rows *r, void *to)
{
    struct card *c = to;
    struct str *texts[] = {
        &c->id,          &c->project,    &c->title,      &c->description,
        &c->assigned_to, &c->claimed_by, &c->tags,       &c->blocked_reason,
        &c->blocked_by,  &c->parent,     &c->created_by, &c->reviewers,
    };

    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        *texts[i] = team_column(t, r, (int)i);
    c->status = (enum card_status)rows_int(r, 12);
    c->priority = rows_int(r, 13);
    c->reviews = rows_int(r, 14);
    c->reviews_asked = rows_int(r, 15) != 0;
    c->moves = rows_int(r, 16);
    c->created_ms = rows_int(r, 17);
    c->updated_ms = rows_int(r, 18);
    c->started_ms = rows_int(r, 19);
    c->review_ms = rows_int(r, 20);
    c->completed_ms = rows_int(r, 21);
    c->taken_from = team_column(t, r, 22);
}

static int read_cards(struct team *t, const char *sql, const struct store_param *p, size_t n,
                      struct card_list *ret, struct err *e)
{
    struct team_rows l = {.size = sizeof *ret->v, .read = read_card};
    int r = team_read(t, sql, p, n, &l, e);

    *ret = (struct card_list){l.v, l.n};
    return r;
}

int card_need(struct team *t, struct str project, struct str id, struct card *ret, struct err *e)
{
    struct card_list found;

    if (read_cards(t, CARD_SELECT "WHERE id = :id", PARAMS(P_TEXT("id", id)), &found, e) < 0)
        return -1;
    if (found.n > 0 && (project.n == 0 || str_eq(found.v[0].project, project))) {
        *ret = found.v[0];
        return 0;
    }
    (void)team_missing(t, "task", id, e);
    return project.n > 0 ? err_wrap(e, "project '" STR_FMT "'", STR_ARG(project)) : -1;
}

#define CARD_ORDER " ORDER BY priority, id LIMIT :limit"
#define CARD_FILTER                                                                                \
    "AND (:project = '' OR project = :project) AND (:status < 0 OR status = :status) "             \
    "AND (:owner = '' OR assigned_to = :owner) AND (:no_blocked = 0 OR status <> 4)" CARD_ORDER

int card_all(struct team *t, const struct card_filter *f, struct card_list *ret, struct err *e)
{
    /* The first condition is the one an index serves. */
    const char *sql = f->project.n > 0 ? CARD_SELECT "WHERE project = :project " CARD_FILTER
                      : f->owner.n > 0 ? CARD_SELECT "WHERE assigned_to = :owner " CARD_FILTER
                                       : CARD_SELECT "WHERE id <> '' " CARD_FILTER;

    _Static_assert(CARD_BLOCKED == 4, "CARD_FILTER leaves out blocked cards");
    return read_cards(
        t, sql,
        PARAMS(P_TEXT("project", f->project.p ? f->project : STR("")), P_INT("status", f->status),
               P_TEXT("owner", f->owner.p ? f->owner : STR("")), P_INT("no_blocked", f->no_blocked),
               P_INT("limit", t->conf.objects_max)),
        ret, e);
}

int card_queue(struct team *t, struct str project, struct str agent, struct str tags,
               struct card_list *ret, struct err *e)
{
    struct card_list all;
    struct agent a;
    int known = agent.n > 0 ? agent_find(t, agent, &a, e) : 0;

    *ret = (struct card_list){0};
    if (known < 0 ||
        read_cards(t, CARD_SELECT "WHERE project = :project AND status IN (0, 1)" CARD_ORDER,
                   PARAMS(P_TEXT("project", project), P_INT("limit", t->conf.objects_max)), &all,
                   e) < 0)
        return -1;
    _Static_assert(CARD_BACKLOG == 0 && CARD_READY == 1, "card_queue reads these two");
    if (tags.n == 0 && known > 0)
        tags = a.tags;
    for (size_t i = 0; i < all.n && ret->n < TEAM_PAGE_MAX; i++) {
        const struct card *c = &all.v[i];

        if (agent.n > 0 && c->assigned_to.n > 0 && !str_eq(c->assigned_to, agent))
            continue;
        if (agent.n > 0 && tags.n > 0 && !team_tags_cover(tags, c->tags))
            continue;
        ret->v = team_grow(t->arena, ret->v, ret->n, sizeof *ret->v);
        ret->v[ret->n++] = *c;
    }
    return 0;
}

int card_subtasks(struct team *t, struct str id, struct str *ret, struct err *e)
{
    struct store_rows *rows;
    AUTO(buf_done) struct buf all = {0};
    int r;

    if (tx_query(t->tx, "SELECT id FROM cards WHERE parent = :id ORDER BY id",
                 PARAMS(P_TEXT("id", id)), &rows, e) < 0)
        return -1;
    while ((r = rows_step(rows, e)) > 0) {
        if (buf_len(&all) > 0)
            buf_add_char(&all, ',');
        buf_add_str(&all, rows_text(rows, 0));
    }
    rows_end(rows);
    *ret = arena_str(t->arena, buf_str(&all));
    return r;
}

static void read_step(const struct team *t, const struct store_rows *r, void *to)
{
    *(struct card_step *)to = (struct card_step){
        .from = (enum card_status)rows_int(r, 0),
        .to = (enum card_status)rows_int(r, 1),
        .actor = team_column(t, r, 2),
        .note = team_column(t, r, 3),
        .at_ms = rows_int(r, 4),
    };
}

int card_history(struct team *t, struct str id, int64_t last, struct card_step_list *ret,
                 struct err *e)
{
    struct team_rows l = {.size = sizeof *ret->v, .read = read_step};
    int r =
        team_read(t,
                  "SELECT status_from, status_to, actor, note, at_ms FROM card_moves WHERE "
                  "card = :id AND n > (SELECT moves FROM cards WHERE id = :id) - :last ORDER BY n",
                  PARAMS(P_TEXT("id", id), P_INT("last", last)), &l, e);

    *ret = (struct card_step_list){l.v, l.n};
    return r;
}

/* --- writing --- */

static void card_event(struct team *t, const struct card *c, enum card_status from, struct str by,
                       struct str note, const char *type)
{
    AUTO(buf_done) struct buf data = {0};
    struct jw w = {.to = &data};

    jw_object(&w);
    jw_kstr(&w, "id", c->id);
    jw_kstr(&w, "project", c->project);
    jw_kstr(&w, "title", c->title);
    jw_kstr(&w, "description", c->description);
    jw_kc(&w, "status", card_status_name(c->status));
    jw_kc(&w, "from", card_status_name(from));
    jw_kstr(&w, "by", by);
    jw_kstr(&w, "note", note);
    jw_kint(&w, "priority", c->priority);
    jw_kstr(&w, "assigned_to", c->assigned_to);
    jw_kstr(&w, "claimed_by", c->claimed_by);
    jw_key(&w, "required_capabilities");
    team_write_tags(&w, c->tags);
    jw_kstr(&w, "blocked_reason", c->blocked_reason);
    jw_kstr(&w, "blocked_by", c->blocked_by);
    jw_kstr(&w, "parent", c->parent);
    jw_kstr(&w, "created_by", c->created_by);
    jw_key(&w, "reviewers");
    team_write_tags(&w, c->reviewers);
    jw_kint(&w, "required_reviewers", c->reviews);
    jw_kbool(&w, "reviews_asked", c->reviews_asked);
    jw_kint(&w, "moves", c->moves);
    jw_ktime(&w, "created_at", c->created_ms);
    jw_ktime(&w, "updated_at", c->updated_ms);
    jw_ktime(&w, "started_at", c->started_ms);
    jw_ktime(&w, "review_started_at", c->review_ms);
    jw_ktime(&w, "completed_at", c->completed_ms);
    jw_object_end(&w);
    team_event(t, type, "task", c->id, &data);
}

static int insert_row(struct team *t, const struct card *c, struct err *e)
{
    int64_t n = tx_run(
        t->tx,
        "INSERT INTO cards (id, project, title, description, status, priority, assigned_to, "
        "claimed_by, tags, blocked_reason, blocked_by, parent, created_by, reviewers, reviews, "
        "reviews_asked, moves, created_ms, updated_ms, started_ms, review_ms, completed_ms) VALUES "
        "(:id, :project, :title, :description, :status, :priority, :assigned, '', :tags, '', '', "
        ":parent, :created_by, '', :reviews, :asked, 0, :now, :now, 0, 0, 0)",
        PARAMS(P_TEXT("id", c->id), P_TEXT("project", c->project), P_TEXT("title", c->title),
               P_TEXT("description", c->description), P_INT("status", c->status),
               P_INT("priority", c->priority), P_TEXT("assigned", c->assigned_to),
               P_TEXT("tags", c->tags), P_TEXT("parent", c->parent),
               P_TEXT("created_by", c->created_by), P_INT("reviews", c->reviews),
               P_INT("asked", c->reviews_asked), P_INT("now", t->now_ms)),
        e);

    return n < 0 ? -1 : 0;
}

/* A card's description never changes; its state and owner do. */
static int update_row(struct team *t, const struct card *c, struct err *e)
{
    int64_t n = tx_run(
        t->tx,
        "UPDATE cards SET status = :status, assigned_to = :assigned, claimed_by = :claimed, "
        "blocked_reason = :reason, blocked_by = :blocked_by, reviewers = :reviewers, "
        "moves = :moves, updated_ms = :updated, started_ms = :started, review_ms = :review, "
        "completed_ms = :completed, taken_from = :taken WHERE id = :id",
        PARAMS(P_INT("status", c->status), P_TEXT("assigned", c->assigned_to),
               P_TEXT("claimed", c->claimed_by), P_TEXT("reason", c->blocked_reason),
               P_TEXT("blocked_by", c->blocked_by), P_TEXT("reviewers", c->reviewers),
               P_INT("moves", c->moves), P_INT("updated", c->updated_ms),
               P_INT("started", c->started_ms), P_INT("review", c->review_ms),
               P_INT("completed", c->completed_ms),
               P_TEXT("taken", c->assigned_to.n > 0 || !c->taken_from.p ? STR("") : c->taken_from),
               P_TEXT("id", c->id)),
        e);

    return n < 0 ? -1 : 0;
}

int card_save(struct team *t, struct card *c, enum card_status from, struct str by, struct str note,
              const char *event, struct err *e)
{
    if (by.n == 0)
        by = team_is_person(t) ? STR("human") : t->who.agent;
    c->updated_ms = t->now_ms;
    if (c->status != from) {
        c->moves++;
        if (tx_run(t->tx,
                   "INSERT INTO card_moves (card, n, status_from, status_to, actor, note, at_ms) "
                   "VALUES (:card, :n, :from, :to, :actor, :note, :now)",
                   PARAMS(P_TEXT("card", c->id), P_INT("n", c->moves), P_INT("from", from),
                          P_INT("to", c->status), P_TEXT("actor", by),
                          P_TEXT("note", note.p ? note : STR("")), P_INT("now", t->now_ms)),
                   e) < 0)
            return -1;
    }
    if (update_row(t, c, e) < 0)
        return -1;
    card_event(t, c, from, by, note, event);
    return 0;
}

static int check_wish(struct team *t, const struct card *c, struct err *e)
{
    struct card parent;
    int64_t count;

    if (c->title.n == 0 || c->title.n > 1024)
        return err_set(e, ERR_INVALID, 0, "a task's title must have 1 to 1024 bytes");
    if (c->description.n > TEAM_TEXT_MAX)
        return err_set(e, ERR_TOO_LARGE, 0, "the description has more than %d bytes",
                       TEAM_TEXT_MAX);
    if (c->reviews < 0 || c->reviews > 100)
        return err_set(e, ERR_INVALID, 0, "required_reviewers must be from 0 to 100");
    if ((c->assigned_to.n > 0 && team_check_name("an assignee", c->assigned_to, e) < 0) ||
        (c->created_by.n > 0 && team_check_name("a creator", c->created_by, e) < 0))
        return -1;
    if (c->parent.n > 0 && card_need(t, c->project, c->parent, &parent, e) < 0)
        return err_wrap(e, "the parent task");
    if (team_number(t, "SELECT COUNT(*) FROM cards WHERE project = :project",
                    PARAMS(P_TEXT("project", c->project)), &count, e) < 0)
        return -1;
    if (count >= t->conf.objects_max) {
        err_set(e, ERR_LIMIT, 0, "the project has %lld tasks already", (long long)count);
        return err_limit(e, "team_max", t->conf.objects_max,
                         "remove tasks that are done, or make another project");
    }
    return 0;
}

/* A caller that may not assign cannot do so by creating a card for another agent either. */
static int check_assignee(struct team *t, const struct card *c, struct err *e)
{
    bool own = !team_is_person(t) && str_eq(c->assigned_to, t->who.agent);
    struct agent a;
    int known;

    if (c->assigned_to.n == 0)
        return 0;
    if ((!own && board_may_assign(t, e) < 0) || agent_may_be_given(t, c->assigned_to, e) < 0)
        return -1;
    known = own ? board_actor(t, c->assigned_to, &a, e) : 0;
    return known > 0 ? agent_may_choose(t, &a, c->tags, e) : known;
}

int card_create(struct team *t, struct card *c, struct err *e)
{
    struct str *texts[] = {&c->claimed_by,  &c->blocked_reason, &c->blocked_by, &c->reviewers,
                           &c->assigned_to, &c->description,    &c->tags,       &c->parent};

    if (board_need(t, c->project, e) < 0 || agent_act_as(t, c->created_by, &c->created_by, e) < 0 ||
        check_wish(t, c, e) < 0 || check_assignee(t, c, e) < 0)
        return -1;
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        if (!texts[i]->p)
            *texts[i] = STR("");
    if (c->created_by.n == 0)
        c->created_by = STR("human");
    c->id = team_id(t, "cd");
    c->status = CARD_BACKLOG;
    c->created_ms = c->updated_ms = t->now_ms;
    if (insert_row(t, c, e) < 0)
        return -1;
    card_event(t, c, c->status, c->created_by, STR(""), "task.created");
    return 0;
}
