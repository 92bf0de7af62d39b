/* audit: verifies the audit log. */
#include "api/native/handlers.h"
#include "base/enc.h"
#include "base/mem.h"
#include "ops/event.h"

struct verify_job {
    struct waiter waiter;
    bool head_asked;
};

static void write_result(struct jw *w, const struct audit_result *a, bool head_asked)
{
    char head[2 * sizeof a->head + 1];

    enc_hex(a->head, sizeof a->head, head);
    jw_object(w);
    jw_kbool(w, "ok", a->broken_seq == 0 && (!head_asked || a->head_found));
    jw_kint(w, "first_seq", a->first_seq);
    jw_kint(w, "last_seq", a->last_seq);
    jw_kint(w, "checked", a->checked);
    jw_kc(w, "head", head);
    jw_kint_if(w, "broken_seq", a->broken_seq != 0, a->broken_seq);
    jw_kc(w, "broken_why", a->broken_seq ? a->broken_why : NULL);
    jw_key(w, "head_found");
    if (head_asked)
        jw_bool(w, a->head_found);
    else
        jw_null(w);
    jw_kint_if(w, "head_seq", head_asked && a->head_found, a->head_seq);
    jw_object_end(w);
}

static void audit_verified(void *arg, const struct audit_result *a, const struct err *e)
{
    struct verify_job *j = arg;
    struct request *r = waiter_end(&j->waiter);
    bool head_asked = j->head_asked;
    struct jw w;

    mem_free(j);
    if (!r)
        return;
    if (e->code != ERR_NONE) {
        request_fail(r, e);
        return;
    }
    w = request_json(r);
    write_result(&w, a, head_asked);
    request_send_json(r, 0);
}

void audit_verify_run(struct request *r)
{
    const struct audit_verify_in *in = r->in;
    unsigned char head[32];
    struct verify_job *j;
    struct err e = {0};

    if (in->head.p && dec_hex(in->head, head, sizeof head) < 0) {
        err_set(&e, ERR_INVALID, 0, "field 'head' must be 64 hexadecimal digits");
        request_fail(r, &e);
        return;
    }
    j = xzalloc(sizeof *j);
    j->head_asked = in->head.p != NULL;
    request_wait(r, &j->waiter);
    events_verify(r->api->c.events, in->head.p ? head : NULL, audit_verified, j);
}
