/* publish: a playbook as a file of a commit. */
#include "api/share/publish.h"

#include "api/share/sandbox.h"
#include "base/mem.h"
#include "core/playbook/playbook.h"

#define NAME_MAX_LEN 128
#define REVIEWER_MAX 128

struct publish_job {
    struct waiter waiter;
    char *remote, *branch, *path;
    published_fn done;
};

static void job_free(struct publish_job *j)
{
    mem_free(j->remote);
    mem_free(j->branch);
    mem_free(j->path);
    mem_free(j);
}

static void on_published(void *arg, const struct publish_result *result, const struct err *e)
{
    struct publish_job *j = arg;
    struct request *r = waiter_end(&j->waiter);
    const struct published p = {str_of(j->remote), str_of(j->branch), str_of(j->path), result};

    if (r)
        j->done(r, &p, e);
    job_free(j);
}

/* Part of a branch and of a path. */
static int check_name(struct str name, struct err *e)
{
    bool ok = name.n > 0 && name.n <= NAME_MAX_LEN && name.p[0] != '-' && name.p[0] != '.' &&
              !str_ends(name, STR(".lock")) && !str_ends(name, STR("."));

    for (size_t i = 0; ok && i < name.n; i++)
        ok = (name.p[i] >= 'a' && name.p[i] <= 'z') || (name.p[i] >= 'A' && name.p[i] <= 'Z') ||
             (name.p[i] >= '0' && name.p[i] <= '9') || name.p[i] == '-' || name.p[i] == '_' ||
             (name.p[i] == '.' && name.p[i - 1] != '.');
    return ok ? 0
              : err_set(e, ERR_INVALID, 0,
                        "field 'branch': letters, digits and '._-', a letter or digit first");
}

/* One line: a line of its own would be another trailer. */
static int check_reviewer(struct str who, struct err *e)
{
    bool ok = who.n > 0 && who.n <= REVIEWER_MAX && str_is_utf8(who);

    for (size_t i = 0; ok && i < who.n; i++)
        ok = (unsigned char)who.p[i] >= ' ' && who.p[i] != 0x7f;
    return ok ? 0
              : err_set(e, ERR_INVALID, 0, "field 'reviewers': names of 1 to %d bytes in one line",
                        REVIEWER_MAX);
}

static void put_message(struct buf *to, const struct publish_request *q,
                        const struct playbook_info *i, const char *owner)
{
    if (q->message.n > 0)
        buf_add_str(to, q->message);
    else
        buf_printf(to, "Playbook " STR_FMT, STR_ARG(i->name));
    buf_printf(to, "\n\nPlaybook: " STR_FMT "\nRequested-by: %s\n", STR_ARG(i->name), owner);
    for (size_t k = 0; k < q->reviewer_count; k++)
        buf_printf(to, "Reviewer: " STR_FMT "\n", STR_ARG(q->reviewers[k]));
}

int publish_begin(struct request *r, const struct publish_request *q, published_fn done,
                  struct err *e)
{
    const struct config *c = r->api->c.conf;
    AUTO(buf_done) struct buf content = {0}, message = {0};
    struct playbook_info i;
    struct publish_job *j;
    struct str name;

    if (c->publish_url[0] == '\0')
        return 1;
    playbook_info(q->playbook, &i);
    name = q->name.n > 0 ? q->name : i.name;
    if (check_name(name, e) < 0 || check_name(i.name, e) < 0)
        return -1;
    for (size_t k = 0; k < q->reviewer_count; k++)
        if (check_reviewer(q->reviewers[k], e) < 0)
            return -1;
    playbook_yaml(i.name, i.hosts, i.become, playbook_tasks(q->playbook), &content);
    put_message(&message, q, &i, principal_owner(&r->who));
    j = xzalloc(sizeof *j);
    j->done = done;
    j->remote = xstrdup(c->publish_url);
    j->branch = xasprintf("holt/" STR_FMT, STR_ARG(name));
    j->path = xasprintf("playbooks/" STR_FMT ".yml", STR_ARG(i.name));
    if (publish(r->api->c.sandboxes,
                &(struct publish_spec){.url = str_of(j->remote),
                                       .base = str_of(c->publish_branch),
                                       .branch = str_of(j->branch),
                                       .user = str_of(c->publish_user),
                                       .secret = str_of(c->publish_secret),
                                       .author = str_of(c->publish_author),
                                       .email = str_of(c->publish_email),
                                       .path = str_of(j->path),
                                       .content = buf_str(&content),
                                       .message = buf_str(&message)},
                on_published, j, e) < 0) {
        job_free(j);
        return -1;
    }
    request_wait(r, &j->waiter);
    return 0;
}
