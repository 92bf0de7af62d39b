/* playbook_generate: the operation playbook.generate: a diff, its tasks, a playbook. */
#include "core/playbook/generate.h"

#include "api/native/generate_secrets.h"
#include "api/native/handlers.h"
#include "api/share/named.h"
#include "base/mem.h"
#include "core/network/secret.h"
#include "core/playbook/playbook.h"
#include "ops/playbook.h"
#include "proto/scrub.h"

#define BYTES_MAX (64 * 1024 * 1024)

struct generate_job {
    struct waiter waiter;
    struct change_diff *d;
    struct scrub values; /* of the secrets that the sandbox uses */
};

static void generate_job_free(struct generate_job *j)
{
    scrub_done(&j->values);
    mem_free(j);
}

/* The sandbox holds placeholders; a value in a file came another way. */
void generate_read_secrets(struct request *r, struct str to, struct scrub *ret)
{
    AUTO(buf_wipe) struct buf list = {0};
    AUTO(json_decref) json_t *v = NULL;
    struct err none = {0};
    const struct sandbox *s = sandbox_find(r->api->c.sandboxes, &r->who, to, &none);
    struct sandbox_info i;

    if (!s)
        return;
    sandbox_info(s, &i);
    secrets_print(r->api->c.secrets, i.secrets, i.secret_count, &list);
    v = json_loadb(buf_data(&list), buf_len(&list), 0, NULL);
    for (size_t k = 0; k < json_array_size(v); k++) {
        const json_t *one = json_array_get(v, k);
        const char *value = json_string_value(json_object_get(one, "value"));

        if (value && *value)
            scrub_add(ret, str_of(value),
                      str_of(json_string_value(json_object_get(one, "placeholder"))));
    }
}

static void make_playbook(struct request *r, struct generate_job *j, const struct change_list *l)
{
    const struct playbook_generate_in *in = r->in;
    const struct generate_options o = {.vault = in->secrets == PLAYBOOK_SECRETS_VAULT,
                                       .values = &j->values};
    AUTO(json_decref) json_t *tasks = NULL, *notes = NULL;
    struct err e = {0};
    struct named_call c;

    if (playbook_generate(l, &o, &tasks, &notes, &e) < 0) {
        request_fail(r, &e);
        return;
    }
    c = named_wait(r, playbook_write);
    named_reply_later(r, &c,
                      playbook_create(r->api->c.playbooks,
                                      &(struct playbook_spec){.name = in->name,
                                                              .hosts = in->hosts,
                                                              .become = in->become,
                                                              .tasks = tasks,
                                                              .notes = notes},
                                      &c, &e),
                      &e);
}

static void on_collected(void *arg, struct change_list *l, const struct err *e)
{
    struct generate_job *j = arg;
    struct request *r = waiter_end(&j->waiter);

    if (r && e->code != ERR_NONE)
        request_fail(r, e);
    else if (r)
        make_playbook(r, j, l);
    generate_job_free(j);
}

static void client_gone(struct waiter *w)
{
    struct generate_job *j = CONTAINER_OF(w, struct generate_job, waiter);

    change_cancel(j->d);
    generate_job_free(j);
}

void playbook_generate_run(struct request *r)
{
    const struct playbook_generate_in *in = r->in;
    struct generate_job *j = xzalloc(sizeof *j);
    struct err e = {0};

    generate_read_secrets(r, in->to, &j->values);
    j->d = change_collect(r->api->c.changes,
                          &(struct change_spec){.from = in->from,
                                                .to = in->to,
                                                .paths = in->path.v,
                                                .path_count = in->path.n,
                                                .no_text = true,
                                                .all = in->all,
                                                .content_max = GENERATE_CONTENT_MAX,
                                                .by = &r->who},
                          BYTES_MAX, on_collected, j, &e);
    if (!j->d) {
        generate_job_free(j);
        request_fail(r, &e);
        return;
    }
    j->waiter.gone = client_gone;
    request_wait(r, &j->waiter);
}
