/* question: asks of anybody: made, taken back, expired. */
#include "core/approval/approval_internal.h"

#define KEPT 1000 /* decided ones, per asker */
#define LATE "nobody decided in time"

static int find_key(struct team *t, const struct approval *a, struct approval_list *ret,
                    struct err *e)
{
    *ret = (struct approval_list){0};
    if (a->key.n == 0)
        return 0;
    return approval_read(t, APPROVAL_SELECT "WHERE asker = :asker AND ask_key = :key",
                         PARAMS(P_TEXT("asker", a->asker), P_TEXT("key", a->key)), ret, e);
}

static bool is_same(const struct approval *a, const struct approval *b)
{
    return str_eq(a->kind, b->kind) && str_eq(a->question, b->question) &&
           str_eq(a->hash, b->hash) && str_eq(a->alternatives, b->alternatives) &&
           str_eq(a->attachments, b->attachments);
}

static int make_room(struct team *t, const struct approval *a, struct err *e)
{
    int64_t pending;

    if (team_number(t, "SELECT COUNT(*) FROM approvals WHERE state = 0 AND asker = :asker",
                    PARAMS(P_TEXT("asker", a->asker)), &pending, e) < 0)
        return -1;
    if (pending >= t->conf.questions_max) {
        err_set(e, ERR_LIMIT, 0, "%lld of your questions are undecided", (long long)pending);
        return err_limit(e, "questions_max", t->conf.questions_max,
                         "wait for answers, or cancel some (holt approval ls)");
    }
    return tx_run(t->tx,
                  "DELETE FROM approvals WHERE asker = :asker AND state <> 0 AND id NOT IN "
                  "(SELECT id FROM approvals WHERE asker = :asker ORDER BY id DESC LIMIT :kept)",
                  PARAMS(P_TEXT("asker", a->asker), P_INT("kept", KEPT)), e) < 0
               ? -1
               : 0;
}

int question_make(struct team *t, struct approval *a, struct err *e)
{
    const struct approval_kind *k = approval_kind(a->kind);
    struct approval_list same;

    assert(k && k->ask);
    a->asker = t->who.owner;
    a->person = t->who.person;
    a->tenant = t->who.tenant;
    a->agent = t->who.agent;
    a->alternatives = a->alternatives.n > 0 ? a->alternatives : STR("[]");
    a->attachments = a->attachments.n > 0 ? a->attachments : STR("[]");
    a->hash = approval_text(a->hash);
    if (find_key(t, a, &same, e) < 0)
        return -1;
    if (same.n > 0 && !is_same(a, &same.v[0])) {
        err_set(e, ERR_CONFLICT, 0, "another question of yours has this key");
        err_hint(e, "use a new key for a new question");
        return err_object(e, "approval", arena_cstr(t->arena, same.v[0].id));
    }
    if (same.n > 0) {
        *a = same.v[0];
        return 0;
    }
    return make_room(t, a, e) < 0 ? -1 : approval_new(t, a, e);
}

int question_cancel(struct team *t, struct str id, struct str reason, struct approval *ret,
                    struct err *e)
{
    if (approval_need(t, NULL, id, ret, e) < 0)
        return -1;
    if (!approval_kind(ret->kind)->ask)
        return err_set(e, ERR_CONFLICT, 0, "a question of kind '" STR_FMT "' cannot be cancelled",
                       STR_ARG(ret->kind));
    if (ret->state != APPROVAL_PENDING)
        return err_set(e, ERR_CONFLICT, 0, "the question is %s already",
                       approval_state_name(ret->state));
    ret->state = APPROVAL_CANCELLED;
    ret->reason = approval_text(reason);
    if (approval_end(t, ret, e) < 0)
        return -1;
    approval_event(t, "approval.cancelled", ret);
    return 0;
}

#define EXPIRED "state = 0 AND expires_ms > 0 AND expires_ms <= :now AND asker <> ''"

int questions_due(struct team *t, bool *ret, struct err *e)
{
    int64_t n;

    if (team_number(t, "SELECT COUNT(*) FROM approvals WHERE " EXPIRED,
                    PARAMS(P_INT("now", t->now_ms)), &n, e) < 0)
        return -1;
    *ret = n > 0;
    return 0;
}

int questions_wait(struct team *t, struct questions_waiting *ret, struct err *e)
{
    const struct store_param pending[] = {P_INT("state", APPROVAL_PENDING)};

    if (team_number(t, "SELECT COUNT(*) FROM approvals WHERE state = :state", pending, 1,
                    &ret->count, e) < 0)
        return -1;
    return team_number(t, "SELECT MIN(created_ms) FROM approvals WHERE state = :state", pending, 1,
                       &ret->oldest_ms, e);
}

int questions_expire(struct team *t, struct err *e)
{
    struct approval_list l;

    if (approval_read(t, APPROVAL_SELECT "WHERE " EXPIRED " ORDER BY id LIMIT :limit",
                      PARAMS(P_INT("now", t->now_ms), P_INT("limit", TEAM_PAGE_MAX)), &l, e) < 0)
        return -1;
    for (size_t i = 0; i < l.n; i++) {
        l.v[i].state = APPROVAL_EXPIRED;
        l.v[i].reason = STR(LATE);
        if (approval_end(t, &l.v[i], e) < 0)
            return -1;
        approval_event(t, "approval.expired", &l.v[i]);
    }
    return 0;
}
