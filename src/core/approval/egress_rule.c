/* egress_rule: rows and events of lasting answers. */
#include "core/approval/egress_rule.h"

#define SELECT                                                                                     \
    "SELECT id, sandbox, tenant, host, port, allow, created_by, created_ms FROM egress_rules "

static void rule_event(struct team *t, const char *type, const struct egress_rule *r)
{
    AUTO(buf_done) struct buf data = {0};
    struct jw w = {.to = &data};

    jw_object(&w);
    jw_kstr(&w, "id", r->id);
    jw_kstr(&w, "sandbox", r->sandbox);
    jw_kstr(&w, "tenant", r->tenant);
    jw_kstr(&w, "host", r->host);
    jw_kint(&w, "port", r->port);
    jw_kbool(&w, "allow", r->allow);
    jw_kstr(&w, "created_by", r->created_by);
    jw_ktime(&w, "created_at", r->created_ms);
    jw_object_end(&w);
    team_event(t, type, "rule", r->id, &data);
}

static void read_rule(const struct team *t, const struct store_rows *r, void *to)
{
    *(struct egress_rule *)to = (struct egress_rule){
        .id = team_column(t, r, 0),
        .sandbox = team_column(t, r, 1),
        .tenant = team_column(t, r, 2),
        .host = team_column(t, r, 3),
        .port = rows_int(r, 4),
        .allow = rows_int(r, 5) != 0,
        .created_by = team_column(t, r, 6),
        .created_ms = rows_int(r, 7),
    };
}

static int read_all(struct team *t, const char *sql, const struct store_param *p, size_t n,
                    struct egress_rule_list *ret, struct err *e)
{
    struct team_rows l = {.size = sizeof *ret->v, .read = read_rule};
    int r = team_read(t, sql, p, n, &l, e);

    *ret = (struct egress_rule_list){l.v, l.n};
    return r;
}

int egress_rule_all(struct team *t, struct egress_rule_list *ret, struct err *e)
{
    return read_all(t, SELECT "ORDER BY id", NO_PARAMS, ret, e);
}

static int remove_these(struct team *t, const struct egress_rule_list *l, struct err *e)
{
    for (size_t i = 0; i < l->n; i++) {
        if (tx_run(t->tx, "DELETE FROM egress_rules WHERE id = :id",
                   PARAMS(P_TEXT("id", l->v[i].id)), e) < 0)
            return -1;
        rule_event(t, "rule.removed", &l->v[i]);
    }
    return 0;
}

int egress_rule_remove(struct team *t, struct str id, struct err *e)
{
    struct egress_rule_list found;

    if (team_need_person(t, "remove a rule", e) < 0 ||
        read_all(t, SELECT "WHERE id = :id", PARAMS(P_TEXT("id", id)), &found, e) < 0)
        return -1;
    return found.n > 0 ? remove_these(t, &found, e) : team_missing(t, "rule", id, e);
}

int egress_rules_forget(struct team *t, struct str sandbox, struct err *e)
{
    struct egress_rule_list found;

    if (read_all(t, SELECT "WHERE sandbox = :sandbox", PARAMS(P_TEXT("sandbox", sandbox)), &found,
                 e) < 0)
        return -1;
    return remove_these(t, &found, e);
}

static int make_place(struct team *t, const struct egress_rule *r, struct err *e)
{
    struct egress_rule_list same;
    int64_t n;

    if (read_all(t,
                 SELECT "WHERE sandbox = :sandbox AND tenant = :tenant AND host = :host AND "
                        "port = :port",
                 PARAMS(P_TEXT("sandbox", r->sandbox), P_TEXT("tenant", r->tenant),
                        P_TEXT("host", r->host), P_INT("port", r->port)),
                 &same, e) < 0 ||
        remove_these(t, &same, e) < 0 ||
        team_number(t, "SELECT COUNT(*) FROM egress_rules", NO_PARAMS, &n, e) < 0)
        return -1;
    if (n < EGRESS_RULES_MAX)
        return 0;
    (void)err_set(e, ERR_LIMIT, 0, "there are %d rules already", EGRESS_RULES_MAX);
    return err_limit_fixed(e, EGRESS_RULES_MAX,
                           "remove some (holt rule ls), or decide with scope 'once'");
}

int egress_rule_add(struct team *t, const struct egress_rule *wanted, struct err *e)
{
    struct egress_rule r = *wanted;

    if (make_place(t, &r, e) < 0)
        return -1;
    r.id = team_id(t, "ru");
    r.created_by = str_of(t->who.actor);
    r.created_ms = t->now_ms;
    if (tx_run(t->tx,
               "INSERT INTO egress_rules (id, sandbox, tenant, host, port, allow, created_by, "
               "created_ms) VALUES (:id, :sandbox, :tenant, :host, :port, :allow, :by, :now)",
               PARAMS(P_TEXT("id", r.id), P_TEXT("sandbox", r.sandbox), P_TEXT("tenant", r.tenant),
                      P_TEXT("host", r.host), P_INT("port", r.port), P_INT("allow", r.allow),
                      P_TEXT("by", r.created_by), P_INT("now", r.created_ms)),
               e) < 0)
        return -1;
    rule_event(t, "rule.added", &r);
    return 0;
}
