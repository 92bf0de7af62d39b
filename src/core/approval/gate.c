/* gate: rows, events and matches of gates. */
#include "core/approval/gate.h"

#include "base/wild.h"
#include "core/approval/approval_internal.h"

#define GATE_SELECT                                                                                \
    "SELECT id, operation, role, label, command, path, reason, people, created_by, created_ms "    \
    "FROM gates "

bool gate_is_exempt(struct str operation)
{
    return str_starts(operation, STR("approval.")) || str_starts(operation, STR("grant.")) ||
           str_starts(operation, STR("gate."));
}

static bool pattern_matches(struct str pattern, struct str text)
{
    return pattern.n == 0 || wild_fits(pattern, text);
}

static bool label_matches(const struct gate *g, const struct gate_action *a)
{
    struct str value, key = str_cut(g->label, '=', &value);

    return g->label.n == 0 || (a->has_label && a->has_label(a->arg, key, value));
}

bool gate_matches(const struct gate *g, const struct gate_action *a)
{
    return !gate_is_exempt(a->operation) && wild_fits(g->operation, a->operation) &&
           (g->role.n == 0 || str_eq(g->role, a->role)) &&
           pattern_matches(g->command, a->command) && pattern_matches(g->path, a->path) &&
           label_matches(g, a);
}

static void gate_event(struct team *t, const char *type, const struct gate *g)
{
    AUTO(buf_done) struct buf data = {0};
    struct jw w = {.to = &data};

    jw_object(&w);
    jw_kstr(&w, "id", g->id);
    jw_kstr(&w, "operation", g->operation);
    jw_kstr(&w, "role", g->role);
    jw_kstr(&w, "label", g->label);
    jw_kstr(&w, "command", g->command);
    jw_kstr(&w, "path", g->path);
    jw_kstr(&w, "reason", g->reason);
    jw_kint(&w, "people", g->people);
    jw_kstr(&w, "created_by", g->created_by);
    jw_ktime(&w, "created_at", g->created_ms);
    jw_object_end(&w);
    team_event(t, type, "gate", g->id, &data);
}

static void read_gate(const struct team *t, const struct store_rows *r, void *to)
{
    *(struct gate *)to = (struct gate){
        .id = team_column(t, r, 0),
        .operation = team_column(t, r, 1),
        .role = team_column(t, r, 2),
        .label = team_column(t, r, 3),
        .command = team_column(t, r, 4),
        .path = team_column(t, r, 5),
        .reason = team_column(t, r, 6),
        .people = rows_int(r, 7),
        .created_by = team_column(t, r, 8),
        .created_ms = rows_int(r, 9),
    };
}

static int read_gates(struct team *t, const char *sql, const struct store_param *p, size_t n,
                      struct gate_list *ret, struct err *e)
{
    struct team_rows l = {.size = sizeof *ret->v, .read = read_gate};
    int r = team_read(t, sql, p, n, &l, e);

    *ret = (struct gate_list){l.v, l.n};
    return r;
}

int gate_all(struct team *t, struct gate_list *ret, struct err *e)
{
    return read_gates(t, GATE_SELECT "ORDER BY id", NO_PARAMS, ret, e);
}

int gate_add(struct team *t, struct gate *g, struct err *e)
{
    int64_t n;

    if (team_need_person(t, "make a gate", e) < 0 ||
        team_number(t, "SELECT COUNT(*) FROM gates", NO_PARAMS, &n, e) < 0)
        return -1;
    if (n >= GATES_MAX) {
        err_set(e, ERR_LIMIT, 0, "there are %d gates already", GATES_MAX);
        return err_limit_fixed(e, GATES_MAX, "remove some (holt gate ls)");
    }
    g->id = team_id(t, "ga");
    g->created_by = arena_str(t->arena, str_of(t->who.actor));
    g->created_ms = t->now_ms;
    if (tx_run(t->tx,
               "INSERT INTO gates (id, operation, role, label, command, path, reason, people, "
               "created_by, created_ms) VALUES (:id, :operation, :role, :label, :command, :path, "
               ":reason, :people, :by, :now)",
               PARAMS(P_TEXT("id", g->id), P_TEXT("operation", g->operation),
                      P_TEXT("role", approval_text(g->role)),
                      P_TEXT("label", approval_text(g->label)),
                      P_TEXT("command", approval_text(g->command)),
                      P_TEXT("path", approval_text(g->path)),
                      P_TEXT("reason", approval_text(g->reason)), P_INT("people", g->people),
                      P_TEXT("by", g->created_by), P_INT("now", g->created_ms)),
               e) < 0)
        return -1;
    gate_event(t, "gate.added", g);
    return 0;
}

int gate_remove(struct team *t, struct str id, struct err *e)
{
    struct gate_list found;

    if (team_need_person(t, "remove a gate", e) < 0 ||
        read_gates(t, GATE_SELECT "WHERE id = :id", PARAMS(P_TEXT("id", id)), &found, e) < 0)
        return -1;
    if (found.n == 0)
        return team_missing(t, "gate", id, e);
    if (tx_run(t->tx, "DELETE FROM gates WHERE id = :id", PARAMS(P_TEXT("id", id)), e) < 0)
        return -1;
    gate_event(t, "gate.removed", &found.v[0]);
    return 0;
}
