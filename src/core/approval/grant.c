/* grant: makes, uses, lists and revokes the leaves that people gave. */
#include "core/approval/grant.h"

#include "base/enc.h"
#include "base/wild.h"
#include "core/approval/approval_internal.h"
#include "proto/digest.h"

#define GRANTS_MAX 10000 /* live ones */
#define GRANT_SELECT                                                                               \
    "SELECT id, approval, asker, operation, hash, sandbox, pattern, uses, used, expires_ms, "      \
    "created_by, created_ms FROM grants "
#define LIVE "uses <> 0 AND expires_ms > :now "

/* --- exact actions --- */

void grant_hash(struct str operation, const json_t *arguments, char ret[GRANT_HASH])
{
    unsigned char hash[SHA256_SIZE];
    AUTO(buf_done) struct buf text = {0};
    char *dumped = json_dumps(arguments, JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY);

    buf_add_str(&text, operation);
    buf_add_char(&text, '\n');
    buf_add_c(&text, dumped ? dumped : "");
    free(dumped);
    sha256(buf_str(&text), hash);
    for (size_t i = 0; i < sizeof hash; i++)
        (void)snprintf(ret + 2 * i, 3, "%02x", hash[i]);
}

/* --- rows --- */

static void grant_event(struct team *t, const char *type, const struct grant *g)
{
    AUTO(buf_done) struct buf data = {0};
    struct jw w = {.to = &data};

    jw_object(&w);
    jw_kstr(&w, "id", g->id);
    jw_kstr(&w, "approval", g->approval);
    jw_kstr(&w, "asker", g->asker);
    jw_kstr(&w, "operation", g->operation);
    jw_kstr(&w, "hash", g->hash);
    jw_kstr(&w, "sandbox", g->sandbox);
    jw_kstr(&w, "pattern", g->pattern);
    jw_kint(&w, "uses", g->uses);
    jw_kint(&w, "used", g->used);
    jw_kstr(&w, "created_by", g->created_by);
    jw_ktime(&w, "created_at", g->created_ms);
    jw_ktime(&w, "expires_at", g->expires_ms);
    jw_object_end(&w);
    team_event(t, type, "grant", g->id, &data);
}

static void read_grant(const struct team *t, const struct store_rows *r, void *to)
{
    *(struct grant *)to = (struct grant){
        .id = team_column(t, r, 0),
        .approval = team_column(t, r, 1),
        .asker = team_column(t, r, 2),
        .operation = team_column(t, r, 3),
        .hash = team_column(t, r, 4),
        .sandbox = team_column(t, r, 5),
        .pattern = team_column(t, r, 6),
        .uses = rows_int(r, 7),
        .used = rows_int(r, 8),
        .expires_ms = rows_int(r, 9),
        .created_by = team_column(t, r, 10),
        .created_ms = rows_int(r, 11),
    };
}

static int read_grants(struct team *t, const char *sql, const struct store_param *p, size_t n,
                       struct grant_list *ret, struct err *e)
{
    struct team_rows l = {.size = sizeof *ret->v, .read = read_grant};
    int r = team_read(t, sql, p, n, &l, e);

    *ret = (struct grant_list){l.v, l.n};
    return r;
}

int grant_all(struct team *t, struct str after, int64_t limit, struct grant_list *ret,
              struct err *e)
{
    return read_grants(t,
                       GRANT_SELECT "WHERE " LIVE "AND id > :after AND "
                                    "(:asker = '' OR asker = :asker) ORDER BY id LIMIT :limit",
                       PARAMS(P_INT("now", t->now_ms), P_TEXT("after", approval_text(after)),
                              P_TEXT("asker", team_is_person(t) ? STR("") : t->who.owner),
                              P_INT("limit", limit)),
                       ret, e);
}

/* --- making --- */

int grant_plan(struct team *t, const struct approval *a, const struct approval_decision *d,
               struct grant *ret, struct err *e)
{
    bool wide = d->scope != APPROVAL_ONCE, exact = !wide || d->scope == APPROVAL_TIME;
    int64_t ms = d->for_ms > 0 ? d->for_ms : wide ? GRANT_WIDE_MS : GRANT_ONCE_MS;

    if (d->scope == APPROVAL_SANDBOX && a->sandbox.n == 0)
        return err_set(e, ERR_INVALID, 0, "field 'scope': the action is about no sandbox");
    if ((d->scope == APPROVAL_RULE) != (d->pattern.n > 0))
        return err_set(e, ERR_INVALID, 0,
                       "field 'pattern': the scope 'rule' needs one, and no other has one");
    *ret = (struct grant){
        .id = STR(""),
        .approval = a->id,
        .asker = a->asker,
        .operation = a->action,
        .hash = exact ? a->hash : STR(""),
        .sandbox = wide ? a->sandbox : STR(""),
        .pattern = approval_text(d->pattern),
        .uses = wide ? -1 : 1,
        .expires_ms = t->now_ms + i64_min(ms, GRANT_MAX_MS),
        .created_by = arena_str(t->arena, str_of(t->who.actor)),
        .created_ms = t->now_ms,
    };
    return 0;
}

int grant_make(struct team *t, struct grant *g, struct err *e)
{
    int64_t n;

    if (tx_run(t->tx, "DELETE FROM grants WHERE uses = 0 OR expires_ms <= :now",
               PARAMS(P_INT("now", t->now_ms)), e) < 0 ||
        team_number(t, "SELECT COUNT(*) FROM grants", NO_PARAMS, &n, e) < 0)
        return -1;
    if (n >= GRANTS_MAX) {
        err_set(e, ERR_LIMIT, 0, "there are %d grants already", GRANTS_MAX);
        return err_limit_fixed(e, GRANTS_MAX, "revoke some (holt approval grants)");
    }
    g->id = team_id(t, "gr");
    if (tx_run(t->tx,
               "INSERT INTO grants (id, approval, asker, operation, hash, sandbox, pattern, uses, "
               "used, expires_ms, created_by, created_ms) VALUES (:id, :approval, :asker, "
               ":operation, :hash, :sandbox, :pattern, :uses, 0, :expires, :by, :now)",
               PARAMS(P_TEXT("id", g->id), P_TEXT("approval", g->approval),
                      P_TEXT("asker", g->asker), P_TEXT("operation", g->operation),
                      P_TEXT("hash", g->hash), P_TEXT("sandbox", g->sandbox),
                      P_TEXT("pattern", g->pattern), P_INT("uses", g->uses),
                      P_INT("expires", g->expires_ms), P_TEXT("by", g->created_by),
                      P_INT("now", g->created_ms)),
               e) < 0)
        return -1;
    grant_event(t, "grant.made", g);
    return 0;
}

int grant_revoke(struct team *t, struct str id, struct err *e)
{
    struct grant_list found;

    if (team_need_person(t, "revoke a grant", e) < 0 ||
        read_grants(t, GRANT_SELECT "WHERE id = :id AND " LIVE,
                    PARAMS(P_TEXT("id", id), P_INT("now", t->now_ms)), &found, e) < 0)
        return -1;
    if (found.n == 0)
        return team_missing(t, "grant", id, e);
    if (tx_run(t->tx, "DELETE FROM grants WHERE id = :id", PARAMS(P_TEXT("id", id)), e) < 0)
        return -1;
    grant_event(t, "grant.revoked", &found.v[0]);
    return 0;
}

/* --- using --- */

static bool fits(const struct grant *g, const struct grant_action *a)
{
    return (g->hash.n == 0 || str_eq(g->hash, a->hash)) &&
           (g->sandbox.n == 0 || str_eq(g->sandbox, a->sandbox)) &&
           (g->pattern.n == 0 || (a->text.n > 0 && wild_fits(g->pattern, a->text)));
}

int grant_use(struct team *t, const struct grant_action *a, struct grant *ret, struct err *e)
{
    struct grant_list all;
    struct grant *best = NULL;

    if (read_grants(t,
                    GRANT_SELECT "WHERE asker = :asker AND operation = :operation AND " LIVE
                                 "ORDER BY id",
                    PARAMS(P_TEXT("asker", a->asker), P_TEXT("operation", a->operation),
                           P_INT("now", t->now_ms)),
                    &all, e) < 0)
        return -1;
    for (size_t i = 0; i < all.n; i++) /* one for any number of uses first */
        if (fits(&all.v[i], a) && (!best || (best->uses > 0 && all.v[i].uses < 0)))
            best = &all.v[i];
    if (!best)
        return 0;
    if (tx_run(t->tx,
               "UPDATE grants SET uses = CASE WHEN uses > 0 THEN uses - 1 ELSE uses END, "
               "used = used + 1 WHERE id = :id",
               PARAMS(P_TEXT("id", best->id)), e) < 0)
        return -1;
    best->uses -= best->uses > 0;
    best->used++;
    grant_event(t, "grant.used", best);
    *ret = *best;
    return 1;
}
