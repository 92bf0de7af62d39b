/* kind: the kinds of approvals. */
#include "core/approval/approval_internal.h"
#include "core/approval/egress_rule.h"

static void put_proposal(struct jw *w, const struct approval *a)
{
    jw_kstr(w, "agent", a->agent);
    jw_kstr(w, "action", a->action);
    jw_kstr(w, "project", a->project);
    jw_kstr(w, "task_id", a->card);
    jw_kc(w, "to", str_eq_c(a->action, "move") ? card_status_name(a->move.to) : NULL);
    jw_kstr(w, "note", a->move.note);
    jw_kstr(w, "blocked_reason", a->move.blocked_reason);
    jw_kstr(w, "blocked_by", a->move.blocked_by);
}

static void put_egress(struct jw *w, const struct approval *a)
{
    jw_kstr(w, "sandbox", a->sandbox);
    jw_kstr(w, "tenant", a->tenant);
    jw_kstr(w, "host", a->host);
    jw_kint(w, "port", a->port);
    jw_kc(w, "scope", a->decided_ms > 0 ? approval_scopes[a->scope] : NULL);
    jw_ktime(w, "expires_at", a->expires_ms);
}

/* Attachments are left out: they may be large, and hold what only the queue's readers may see. */
static void put_ask(struct jw *w, const struct approval *a)
{
    jw_kstr(w, "asker", a->asker);
    jw_kstr(w, "person", a->person);
    jw_kstr(w, "agent", a->agent);
    jw_kstr(w, "sandbox", a->sandbox);
    jw_kstr(w, "tenant", a->tenant);
    jw_kstr(w, "question", a->question);
    jw_kstr(w, "action", a->action);
    jw_kstr(w, "hash", a->hash);
    jw_kc(w, "urgency", approval_urgencies[a->urgency]);
    jw_key(w, "alternatives");
    jw_raw(w, a->alternatives);
    jw_kstr(w, "choice", a->choice);
    jw_kint(w, "people", a->people);
    jw_kint(w, "votes", a->votes);
    jw_kc(w, "scope", a->decided_ms > 0 ? approval_scopes[a->scope] : NULL);
    jw_ktime(w, "expires_at", a->expires_ms);
}

/* What it answers to a secret is in no event. */
static void put_prompt(struct jw *w, const struct approval *a)
{
    jw_kstr(w, "sandbox", a->sandbox);
    jw_kstr(w, "tenant", a->tenant);
    jw_kstr(w, "exec", a->exec);
    jw_kstr(w, "way", a->way);
    jw_kstr(w, "question", a->question);
    jw_kstr(w, "note", a->move.note);
    jw_key(w, "alternatives");
    jw_raw(w, a->alternatives);
    if (!str_eq_c(a->way, APPROVAL_SECRET))
        jw_kstr(w, "choice", approval_text(a->choice));
}

static int execute_proposal(struct team *t, struct approval *a, struct err *e)
{
    return a->state == APPROVAL_APPROVED ? proposal_execute(t, a, e) : 0;
}

/* An answer for all sandboxes of a tenant also answers the others' questions. */
static int close_alike(struct team *t, const struct approval *a, struct err *e)
{
    struct approval_list l;

    if (approval_read(
            t,
            APPROVAL_SELECT "WHERE state = 0 AND tenant = :tenant AND host = :host AND "
                            "port = :port AND kind = '" APPROVAL_EGRESS "'",
            PARAMS(P_TEXT("tenant", a->tenant), P_TEXT("host", a->host), P_INT("port", a->port)),
            &l, e) < 0)
        return -1;
    return approvals_close(t, &l, "it was answered for all sandboxes of the tenant", e);
}

static int execute_egress(struct team *t, struct approval *a, struct err *e)
{
    if (a->scope == APPROVAL_ONCE)
        return 0;
    if (egress_rule_add(t,
                        &(struct egress_rule){
                            .sandbox = a->scope == APPROVAL_SANDBOX ? a->sandbox : STR(""),
                            .tenant = a->tenant,
                            .host = a->host,
                            .port = a->port,
                            .allow = a->state == APPROVAL_APPROVED,
                        },
                        e) < 0)
        return -1;
    /* subscribers then know the reason */
    return a->scope == APPROVAL_ALWAYS ? close_alike(t, a, e) : 0;
}

#define BIT(scope) (1U << (scope))
#define OF_EGRESS (BIT(APPROVAL_ONCE) | BIT(APPROVAL_SANDBOX) | BIT(APPROVAL_ALWAYS))
#define OF_ACTION                                                                                  \
    (BIT(APPROVAL_ONCE) | BIT(APPROVAL_SANDBOX) | BIT(APPROVAL_TIME) | BIT(APPROVAL_RULE))

/* In the order of op_approval_kinds (ops/approval.c). */
static const struct approval_kind kinds[] = {
    {APPROVAL_PROPOSAL, "proposal", false, false, BIT(APPROVAL_ONCE), put_proposal,
     execute_proposal},
    {APPROVAL_EGRESS, "question", false, false, OF_EGRESS, put_egress, execute_egress},
    {APPROVAL_ASK, "question", true, false, OF_ACTION, put_ask, NULL},
    {"destructive", "question", true, false, OF_ACTION, put_ask, NULL},
    {"sensitive", "question", true, false, OF_ACTION, put_ask, NULL},
    {"irreversible", "question", true, false, OF_ACTION, put_ask, NULL},
    {APPROVAL_PROMPT, "prompt", false, true, BIT(APPROVAL_ONCE), put_prompt, prompt_execute},
};

const struct approval_kind *approval_kind(struct str name)
{
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
        if (str_eq_c(name, kinds[i].name))
            return &kinds[i];
    return NULL;
}

bool approval_needs_two(const struct team *t, const struct approval_kind *k)
{
    return t->conf.two_people & (1U << (k - kinds));
}
