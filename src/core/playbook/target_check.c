/* target_check: whether a target can be reached, by the way that rollouts take. */
#include "base/mem.h"
#include "core/playbook/rollout_internal.h"
#include "core/playbook/target.h"
#include "core/texts.h"

#define CHECKS_MAX 4 /* at once */
#define CHECK_MS (2LL * 60 * 1000)

struct target_checking {
    struct rollouts *l;
    struct ansible *run;
    struct machine at;
    target_check_cb done;
    void *arg;
};

static struct target_checking *checking_free(struct target_checking *c)
{
    if (!c)
        return NULL;
    mem_free(c->at.address);
    mem_free(c->at.login);
    mem_free(c->at.host_key);
    mem_free(c->at.principals);
    mem_free(c);
    return NULL;
}
DEFINE_AUTO(struct target_checking *, checking_free)

static void ping_ended(void *arg, const struct tool_result *r, const struct err *e)
{
    AUTO(checking_free) struct target_checking *c = arg;
    struct err why = *e;
    struct target_answer a = {
        .reached = r->exit_code == 0, .exit_code = r->exit_code, .output = r->out};

    c->l->checks--;
    if (why.code == ERR_NONE && r->failure.n > 0) {
        err_set(&why, ERR_UNAVAILABLE, 0, STR_FMT, STR_ARG(r->failure));
        err_hint(&why, "ansible must be installed on holtd's machine");
    } else if (why.code == ERR_NONE && r->timed_out) {
        err_set(&why, ERR_TIMEOUT, 0, "the target did not answer in time");
    }
    if (why.code != ERR_NONE)
        err_wrap(&why, "check the target");
    c->done(c->arg, &a, &why);
}

static void take_machine(struct machine *at, const struct target_info *i)
{
    at->address = str_dup(i->address);
    at->login = str_dup(i->user);
    at->host_key = str_dup(i->host_key);
    at->principals = str_dup(i->principals);
    at->port = i->port;
    at->become = i->become;
    (void)snprintf(at->sandbox, sizeof at->sandbox, STR_FMT, STR_ARG(i->sandbox));
}

int target_check(struct rollouts *l, const struct target *t, target_check_cb done, void *arg,
                 struct err *e)
{
    AUTO(checking_free) struct target_checking *c = NULL;
    char name[ID_SIZE];
    struct target_info i;

    if (l->checks >= CHECKS_MAX) {
        err_set(e, ERR_LIMIT, 0, "%d targets are being checked already", CHECKS_MAX);
        return err_limit_fixed(e, CHECKS_MAX, "try again in a moment");
    }
    target_info(t, &i);
    c = xzalloc(sizeof *c);
    *c = (struct target_checking){.l = l, .done = done, .arg = arg};
    take_machine(&c->at, &i);
    c->run = ansible_start(l,
                           &(struct ansible_spec){.name = id_make("tc", name),
                                                  .at = &c->at,
                                                  .time_ms = CHECK_MS,
                                                  .done = ping_ended,
                                                  .arg = c},
                           e);
    if (!c->run)
        return err_wrap(e, "check target '%s'", i.id);
    l->checks++;
    (void)TAKE(c);
    return 0;
}
