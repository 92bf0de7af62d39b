/* merge: the operation fork.apply. */
#include "core/change/merge.h"

#include "api/native/handlers.h"
#include "api/share/change_json.h"
#include "api/share/sandbox.h"
#include "base/mem.h"
#include "ops/change.h"

#define OTHERS_MAX 1000
#define BYTES_MAX (16 * 1024 * 1024)

struct merge_job {
    struct waiter waiter;
    struct merge *m;
    char sandbox[ID_SIZE], fork[ID_SIZE];
    struct buf changes;
    struct jw w;
    int64_t others;
};

static void merge_job_free(struct merge_job *j)
{
    buf_done(&j->changes);
    mem_free(j);
}

static void on_change(void *arg, const struct change *c)
{
    struct merge_job *j = arg;
    bool counts = c->verdict == CHANGE_CONFLICT || c->verdict == CHANGE_KEPT;

    if (buf_len(&j->changes) > BYTES_MAX || (!counts && j->others++ >= OTHERS_MAX))
        return;
    change_write_json(&j->w, c);
}

static void send_result(struct request *r, struct merge_job *j, const struct merge_result *n)
{
    struct jw w = request_json(r);

    jw_array_end(&j->w);
    jw_object(&w);
    jw_kc(&w, "sandbox", j->sandbox);
    jw_kc(&w, "fork", j->fork);
    jw_kbool(&w, "done", n->done);
    jw_ktext(&w, "undo", str_of(n->undo));
    jw_kint(&w, "applied", n->applied);
    jw_kint(&w, "already", n->already);
    jw_kint(&w, "conflicts", n->conflicts);
    jw_kint(&w, "kept", n->kept);
    jw_key(&w, "changes");
    jw_raw(&w, buf_str(&j->changes));
    jw_object_end(&w);
    request_send_json(r, 0);
}

static void on_done(void *arg, const struct merge_result *n, const struct err *e)
{
    struct merge_job *j = arg;
    struct request *r = waiter_end(&j->waiter);

    if (r && e->code != ERR_NONE)
        request_fail(r, e);
    else if (r)
        send_result(r, j, n);
    merge_job_free(j);
}

static void client_gone(struct waiter *w)
{
    struct merge_job *j = CONTAINER_OF(w, struct merge_job, waiter);

    merge_forget(j->m);
    merge_job_free(j);
}

void merge_run(struct request *r)
{
    const struct merge_in *in = r->in;
    struct sandbox *fork = request_sandbox(r, in->id);
    struct sandbox *onto = fork ? request_sandbox(r, in->onto) : NULL;
    struct merge_job *j;
    struct sandbox_info i;
    struct err e = {0};

    if (!onto)
        return;
    j = xzalloc(sizeof *j);
    sandbox_info(fork, &i);
    (void)snprintf(j->fork, sizeof j->fork, "%s", i.id);
    sandbox_info(onto, &i);
    (void)snprintf(j->sandbox, sizeof j->sandbox, "%s", i.id);
    j->w.to = &j->changes;
    jw_array(&j->w);
    request_wait(r, &j->waiter);
    j->m = merge_start(r->api->c.changes,
                       &(struct merge_spec){.fork = fork,
                                            .onto = onto,
                                            .dry = in->dry_run,
                                            .ours = in->ours.v,
                                            .ours_count = in->ours.n,
                                            .theirs = in->theirs.v,
                                            .theirs_count = in->theirs.n,
                                            .by = &r->who},
                       &(struct merge_events){on_change, on_done, j}, &e);
    if (!j->m) {
        (void)waiter_end(&j->waiter);
        merge_job_free(j);
        request_fail(r, &e);
        return;
    }
    j->waiter.gone = client_gone;
}
