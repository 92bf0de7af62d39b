/* publish: fluid's publication of a job's playbook to a git remote. */
#include "api/share/publish.h"

#include "api/dialects/fluid/fluid.h"
#include "core/playbook/playbook.h"

struct publish_in {
    struct str job_id, message;
    struct fluid_strs reviewers;
};
static const struct fluid_field publish_fields[] = {
    {"job_id", FLUID_STR, offsetof(struct publish_in, job_id), true},
    {"message", FLUID_STR, offsetof(struct publish_in, message), false},
    {"reviewers", FLUID_STRS, offsetof(struct publish_in, reviewers), false},
};
const struct fluid_form fluid_publish_form = {FLUID_FORM(publish_fields, struct publish_in)};

static void job_published(struct request *r, const struct published *p, const struct err *e)
{
    struct jw w;

    if (e->code != ERR_NONE) {
        fluid_refuse(r, e);
        return;
    }
    w = request_json(r);
    jw_object(&w);
    jw_kc(&w, "message", "published");
    jw_kc(&w, "note",
          p->result->changed ? "review the branch and merge it" : "the branch had it already");
    jw_kstr(&w, "repo_url", p->remote);
    jw_kstr(&w, "branch", p->branch);
    jw_kstr(&w, "commit_sha", p->result->commit);
    jw_kc(&w, "status", "COMMITTED");
    jw_object_end(&w);
    fluid_send(r, 200);
}

/* As the original, which publishes nothing. */
static void send_unset(struct request *r)
{
    struct jw w = request_json(r);

    jw_object(&w);
    jw_kc(&w, "message", "this installation publishes nothing");
    jw_kc(&w, "note", "an operator sets 'publish_url' to a git remote");
    jw_object_end(&w);
    fluid_send(r, 501);
}

/* The playbook of a job has the job's name: from generate, or made by hand. */
void fluid_publish(struct request *r)
{
    const struct publish_in *in = r->in;
    struct err e = {0};
    struct playbook *p;
    int begun;

    if (!fluid_find(r))
        return;
    if (r->api->c.conf->publish_url[0] == '\0') {
        send_unset(r);
        return;
    }
    p = playbook_find(r->api->c.playbooks, &r->who, OWNER_SEE, in->job_id, &e);
    if (!p) {
        fluid_error(r, 404, "job has no playbook: " STR_FMT, (int)size_min(in->job_id.n, 64),
                    in->job_id.p);
        return;
    }
    begun = publish_begin(r,
                          &(struct publish_request){.playbook = p,
                                                    .name = in->job_id,
                                                    .message = in->message,
                                                    .reviewers = in->reviewers.v,
                                                    .reviewer_count = in->reviewers.n},
                          job_published, &e);
    if (begun > 0)
        send_unset(r);
    else if (begun < 0)
        fluid_refuse(r, &e);
}
