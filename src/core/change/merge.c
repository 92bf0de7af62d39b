/* merge: the steps of a merge, its row, and what a crash leaves of it. */
#include "core/change/merge.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "conf/conf.h"
#include "core/change/merge_internal.h"
#include "core/columns.h"
#include "proto/json.h"

#define REMOVALS_MAX (64 * 1024 * 1024)
#define PATH_MAX_GUEST 4000

/* --- the row --- */

#define HAS(member, kind, ...) COLUMN(struct merge, member, kind, __VA_ARGS__)
static const struct column merge_column_list[] = {
    HAS(sandbox, COLUMN_CHARS, .flags = COLUMN_KEY),
    HAS(fork, COLUMN_CHARS),
    HAS(undo, COLUMN_CHARS),
    HAS(sandbox_ran, COLUMN_BOOL),
    HAS(fork_ran, COLUMN_BOOL),
    HAS(actor, COLUMN_CHARS),
    HAS(created_ms, COLUMN_INT),
};
static struct columns merge_columns = {.table = "merges",
                                       .list = merge_column_list,
                                       .count = ARRAY_LEN(merge_column_list),
                                       .order = "ORDER BY sandbox"};

static void put_event(struct store_tx *tx, const struct merge *m, const char *type)
{
    AUTO(buf_done) struct buf data = {0};
    struct jw w = {.to = &data};
    char object[ID_SIZE + 16];

    (void)snprintf(object, sizeof object, "sandbox/%s", m->sandbox);
    jw_object(&w);
    jw_kc(&w, "sandbox", m->sandbox);
    jw_kc(&w, "fork", m->fork);
    jw_kc(&w, "undo", m->undo[0] ? m->undo : NULL);
    jw_kint(&w, "applied", m->result.applied);
    jw_object_end(&w);
    tx_event(tx,
             &(struct event_spec){
                 .type = type, .object = object, .actor = m->actor, .data = buf_str(&data)},
             NULL);
}

static int insert_work(struct store_tx *tx, void *arg, struct err *e)
{
    return columns_insert(tx, &merge_columns, arg, e);
}

static int undo_work(struct store_tx *tx, void *arg, struct err *e)
{
    const struct merge *m = arg;

    return tx_run(tx, "UPDATE merges SET undo = :undo WHERE sandbox = :id",
                  PARAMS(P_C("undo", m->undo), P_C("id", m->sandbox)), e) < 0
               ? -1
               : 0;
}

/* What has happened, if anything has, is an event. */
static int end_work(struct store_tx *tx, void *arg, struct err *e)
{
    const struct merge *m = arg;

    if (columns_erase(tx, &merge_columns, m->sandbox, e) < 0)
        return -1;
    if (m->undo[0])
        put_event(tx, m,
                  m->left          ? "merge.interrupted"
                  : m->result.done ? "merge.applied"
                                   : "merge.failed");
    return 0;
}

/* --- the end --- */

static void merge_free(struct merge *m)
{
    list_unlink(&m->link);
    change_state_done(m->l, &m->before);
    change_state_done(m->l, &m->after);
    change_state_done(m->l, &m->onto);
    sandbox_unref(m->s);
    sandbox_unref(m->from);
    buf_done(&m->lines);
    buf_done(&m->removals);
    buf_done(&m->pending);
    buf_done(&m->request);
    mem_free(m);
}

static void tell_end(struct merge *m)
{
    struct merge_events ev = m->events;
    struct merge_result r = m->result;
    struct err e = m->err;

    merge_free(m);
    if (ev.done)
        ev.done(ev.arg, &r, &e);
}

static void onto_resumed(void *arg, struct sandbox *s, const struct err *e)
{
    struct merge *m = arg;

    (void)s;
    if (e->code != ERR_NONE && e->code != ERR_CONFLICT)
        log_warn("a sandbox could not be resumed after a merge", LOG_C("sandbox", m->sandbox),
                 LOG_E(e));
    tell_end(m);
}

static void fork_resumed(void *arg, struct sandbox *s, const struct err *e)
{
    struct merge *m = arg;

    (void)s;
    if (e->code != ERR_NONE && e->code != ERR_CONFLICT)
        log_warn("a sandbox could not be resumed after a merge", LOG_C("sandbox", m->fork),
                 LOG_E(e));
    if (m->sandbox_ran && m->s)
        sandbox_pause(m->s, false, &principal_system, onto_resumed, m);
    else
        tell_end(m);
}

static void row_ended(void *arg, const struct err *e)
{
    struct merge *m = arg;
    struct err none = {0};

    if (e->code != ERR_NONE && m->err.code == ERR_NONE)
        m->err = *e;
    if (m->fork_ran && m->from)
        sandbox_pause(m->from, false, &principal_system, fork_resumed, m);
    else
        fork_resumed(m, NULL, &none);
}

static void finish(struct merge *m)
{
    struct err none = {0};

    m->diff = NULL;
    (void)snprintf(m->result.undo, sizeof m->result.undo, "%s", m->undo);
    if (m->err.code != ERR_NONE && m->undo[0]) {
        err_wrap(&m->err, "merge into sandbox '%s', in part", m->sandbox);
        err_hint(&m->err, "holt restore %s %s brings it back as it was", m->sandbox, m->undo);
    }
    if (m->has_row)
        store_write(m->l->c.store, STORE_DURABLE, end_work, row_ended, m);
    else
        fork_resumed(m, NULL, &none);
}

void merge_fail(struct merge *m, const struct err *e)
{
    m->err = *e;
    m->result.done = false;
    finish(m);
}

void merge_applied(struct merge *m)
{
    m->result.done = true;
    finish(m);
}

/* --- the snapshot before --- */

static void undo_written(void *arg, const struct err *e)
{
    struct merge *m = arg;

    if (e->code != ERR_NONE) {
        m->undo[0] = '\0';
        merge_fail(m, e);
        return;
    }
    merge_apply(m);
}

static void snapshot_taken(void *arg, struct snapshot *s, const struct err *e)
{
    struct merge *m = arg;
    struct snapshot_info i;

    if (!s) {
        merge_fail(m, e);
        return;
    }
    snapshot_info(s, &i);
    (void)snprintf(m->undo, sizeof m->undo, "%s", i.id);
    store_write(m->l->c.store, STORE_DURABLE, undo_work, undo_written, m);
}

/* --- the plan --- */

static void keep_removal(struct merge *m, const struct change *c)
{
    bool turns = c->before.type == CHANGE_DIR && c->after.type != CHANGE_DIR;
    struct merge_removal r = {.n = (uint32_t)c->path.n,
                              .all = c->after.type != CHANGE_ABSENT,
                              .dir = c->before.type == CHANGE_DIR};

    if (c->path.n > PATH_MAX_GUEST) {
        (void)err_set(&m->err, ERR_TOO_LARGE, 0, "a path is over %d bytes", PATH_MAX_GUEST);
    } else if (buf_len(&m->removals) + c->path.n > REMOVALS_MAX) {
        (void)err_set(&m->err, ERR_TOO_LARGE, 0, "too many files are to be removed");
    } else if (turns || c->after.type == CHANGE_ABSENT) {
        buf_add(&m->removals, &r, sizeof r);
        buf_add_str(&m->removals, c->path);
    }
}

static int on_change(void *arg, const struct change *c)
{
    struct merge *m = arg;
    int64_t *const counts[CHANGE_VERDICT_COUNT] = {
        [CHANGE_APPLY] = &m->result.applied,
        [CHANGE_ALREADY] = &m->result.already,
        [CHANGE_CONFLICT] = &m->result.conflicts,
        [CHANGE_KEPT] = &m->result.kept,
    };

    if (m->err.code != ERR_NONE || c->kind != CHANGE_FILE || !counts[c->verdict])
        return 0;
    ++*counts[c->verdict];
    if (m->events.change)
        m->events.change(m->events.arg, c);
    if (c->verdict == CHANGE_APPLY)
        keep_removal(m, c);
    return 0;
}

static void on_planned(void *arg, const struct change_counts *n, const struct err *e)
{
    struct merge *m = arg;
    struct err why = m->err.code != ERR_NONE ? m->err : *e;

    (void)n;
    m->diff = NULL;
    if (why.code != ERR_NONE)
        merge_fail(m, &why);
    else if (m->dry || m->result.conflicts > 0)
        finish(m);
    else if (m->result.applied == 0)
        merge_applied(m);
    else if (snapshot_create(m->l->c.snapshots, m->s, &(struct snapshot_spec){.automatic = true},
                             &(struct snapshot_call){&m->by, snapshot_taken, m}, &why) < 0)
        merge_fail(m, &why);
}

static void on_plan_cancelled(void *arg)
{
    ((struct merge *)arg)->diff = NULL;
}

static int plan(struct merge *m, struct err *e)
{
    struct change_mounts mounts = {0};

    if (change_mounts_make(&m->before, &m->after, &mounts, e) == 0 &&
        change_mounts_onto(&m->onto, &mounts, e) == 0) {
        buf_add_str(&mounts.request, buf_str(&m->lines));
        m->diff = change_run(
            m->l, &mounts, 0,
            &(struct change_events){
                .change = on_change, .done = on_planned, .cancelled = on_plan_cancelled, .arg = m},
            e);
    }
    if (m->diff)
        return 0;
    buf_done(&mounts.request);
    return -1;
}

/* --- the beginning --- */

/* A runtime that cannot pause goes on: what changes meanwhile may be lost, as with any copy. */
static bool may_go_on(const struct err *e)
{
    return e->code == ERR_NONE || e->code == ERR_UNSUPPORTED;
}

static void fork_paused(void *arg, struct sandbox *s, const struct err *e)
{
    struct merge *m = arg;
    struct err why = *e;

    (void)s;
    if (!may_go_on(e) || plan(m, &why) < 0)
        merge_fail(m, &why);
}

static void onto_paused(void *arg, struct sandbox *s, const struct err *e)
{
    struct merge *m = arg;

    (void)s;
    if (!may_go_on(e))
        merge_fail(m, e);
    else if (m->fork_ran)
        sandbox_pause(m->from, true, &principal_system, fork_paused, m);
    else
        fork_paused(m, NULL, e);
}

static void row_inserted(void *arg, const struct err *e)
{
    struct merge *m = arg;

    if (e->code != ERR_NONE) {
        m->has_row = m->sandbox_ran = m->fork_ran = false;
        merge_fail(m, e);
    } else if (m->sandbox_ran) {
        sandbox_pause(m->s, true, &principal_system, onto_paused, m);
    } else {
        onto_paused(m, NULL, e);
    }
}

static int check(const struct changes *l, const struct sandbox_info *fork,
                 const struct sandbox_info *onto, const struct principal *by, struct err *e)
{
    LIST_EACH (&l->merges, node) {
        const struct merge *m = LIST_ENTRY(node, struct merge, link);

        if (strcmp(m->sandbox, onto->id) == 0 || strcmp(m->fork, onto->id) == 0 ||
            strcmp(m->sandbox, fork->id) == 0)
            return err_set(e, ERR_CONFLICT, 0, "a merge of sandbox '%s' is under way", onto->id);
    }
    if (strcmp(fork->id, onto->id) == 0)
        return err_set(e, ERR_INVALID, 0, "a sandbox is not merged into itself");
    if (fork->forked_from.n == 0) {
        err_set(e, ERR_CONFLICT, 0, "sandbox '%s' is no fork", fork->id);
        return err_hint(e, "holt diff shows what two sandboxes differ in");
    }
    if (principal_is_inside(by))
        return err_set(e, ERR_FORBIDDEN, 0, "a sandbox cannot merge into another");
    if (!str_eq(fork->image, onto->image))
        return err_set(e, ERR_CONFLICT, 0,
                       "sandbox '%s' is of image '" STR_FMT "', but '%s' of '" STR_FMT "'",
                       fork->id, STR_ARG(fork->image), onto->id, STR_ARG(onto->image));
    if (onto->state != SANDBOX_RUNNING && onto->state != SANDBOX_PAUSED) {
        err_set(e, ERR_CONFLICT, 0, "sandbox '%s' does not run", onto->id);
        return err_hint(e, "files are written by its init: holt start %s", onto->id);
    }
    return 0;
}

/* What the fork began as: its snapshot; or, when that is gone, what it lies on, if it lies on what
 * the target lies on and one layer more. */
static int find_base(struct merge *m, const struct sandbox_info *fork, struct err *e)
{
    struct change_spec of = {.of = m->from, .by = &principal_system};
    struct err none = {0};

    if (change_state_find(m->l, &of, fork->forked_from, false, &m->before, &none) == 0)
        return 0;
    if (change_state_find(m->l, &of, (struct str){0}, true, &m->before, e) < 0)
        return -1;
    if (m->before.layer_count == m->onto.layer_count + 1 &&
        memcmp(m->before.layers, m->onto.layers, m->onto.layer_count * ID_SIZE) == 0)
        return 0;
    err_set(e, ERR_GONE, 0, "the snapshot that sandbox '%s' was forked from is gone", fork->id);
    return err_hint(e, "without it, it is not known which of the two has changed a file");
}

static int find_states(struct merge *m, const struct sandbox_info *fork, struct err *e)
{
    struct change_spec after = {.of = m->from, .by = &m->by}, onto = {.of = m->s, .by = &m->by};

    if (change_state_find(m->l, &after, (struct str){0}, false, &m->after, e) < 0 ||
        change_state_find(m->l, &onto, (struct str){0}, false, &m->onto, e) < 0)
        return -1;
    return find_base(m, fork, e);
}

static int put_choice(struct merge *m, const char *key, const struct str *v, size_t n,
                      struct err *e)
{
    for (size_t i = 0; i < n; i++) {
        if (v[i].n == 0 || v[i].p[0] != '/' || memchr(v[i].p, '\0', v[i].n))
            return err_set(e, ERR_INVALID, 0, "'" STR_FMT "' is not an absolute path",
                           (int)size_min(v[i].n, 100), v[i].p);
        change_put_path(&m->lines, key, v[i]);
    }
    return 0;
}

static int put_lines(struct merge *m, const struct merge_spec *s, struct err *e)
{
    if (put_choice(m, "ours", s->ours, s->ours_count, e) < 0 ||
        put_choice(m, "theirs", s->theirs, s->theirs_count, e) < 0)
        return -1;
    for (size_t i = 0; i < m->l->c.ignore->n; i++)
        change_put_path(&m->lines, "skip", str_of(m->l->c.ignore->v[i]));
    return 0;
}

static struct merge *merge_new(struct changes *l)
{
    struct merge *m = xzalloc(sizeof *m);

    m->l = l;
    list_push(&l->merges, &m->link);
    return m;
}

struct merge *merge_start(struct changes *l, const struct merge_spec *s,
                          const struct merge_events *ev, struct err *e)
{
    struct sandbox_info fork, onto;
    struct merge *m;

    sandbox_info(s->fork, &fork);
    sandbox_info(s->onto, &onto);
    if (check(l, &fork, &onto, s->by, e) < 0)
        return NULL;
    m = merge_new(l);
    m->events = *ev;
    m->dry = s->dry;
    m->by = *s->by;
    m->by.token = NULL;
    m->s = sandbox_ref(s->onto);
    m->from = sandbox_ref(s->fork);
    m->created_ms = clock_wall_ms();
    (void)snprintf(m->sandbox, sizeof m->sandbox, "%s", onto.id);
    (void)snprintf(m->fork, sizeof m->fork, "%s", fork.id);
    (void)snprintf(m->actor, sizeof m->actor, "%s", s->by->actor);
    if (find_states(m, &fork, e) < 0 || put_lines(m, s, e) < 0) {
        merge_free(m);
        return NULL;
    }
    if (m->dry && plan(m, e) < 0) {
        merge_free(m);
        return NULL;
    }
    if (m->dry)
        return m;
    m->sandbox_ran = onto.state == SANDBOX_RUNNING;
    m->fork_ran = fork.state == SANDBOX_RUNNING;
    m->has_row = true;
    store_write(l->c.store, STORE_DURABLE, insert_work, row_inserted, m);
    return m;
}

void merge_forget(struct merge *m)
{
    m->events = (struct merge_events){0};
}

/* --- after a restart --- */

static int load_one(void *arg, const struct store_rows *rows, struct err *e)
{
    struct merge *m = merge_new(arg);

    m->left = m->has_row = true;
    return columns_load(&merge_columns, rows, m, e);
}

static int load_work(struct store_tx *tx, void *arg, struct err *e)
{
    return columns_each(tx, &merge_columns, load_one, arg, e);
}

int merges_load(struct changes *l, struct err *e)
{
    return store_now(l->c.store, load_work, l, e);
}

static struct sandbox *find_again(const struct merge *m, const char *id)
{
    struct err none = {0};
    struct sandbox *s = sandbox_find(m->l->c.sandboxes, &principal_system, str_of(id), &none);

    return s ? sandbox_ref(s) : NULL;
}

void merges_recover(struct changes *l)
{
    LIST_EACH (&l->merges, node) {
        struct merge *m = LIST_ENTRY(node, struct merge, link);

        if (!m->left)
            continue;
        m->s = find_again(m, m->sandbox);
        m->from = find_again(m, m->fork);
        if (m->undo[0])
            log_warn("a merge was cut off: what it had written until then is in the sandbox",
                     LOG_C("sandbox", m->sandbox), LOG_C("fork", m->fork),
                     LOG_C("before", m->undo));
        finish(m);
    }
}

void merges_free(struct changes *l)
{
    LIST_EACH (&l->merges, node) {
        struct merge *m = LIST_ENTRY(node, struct merge, link);

        merge_stop(m);
        if (m->diff)
            change_cancel(m->diff);
        merge_free(m);
    }
}
