/* rollout_run: the check and the run of a rollout; a run goes on without holtd. */
#include "base/mem.h"
#include "core/exec/exec.h"
#include "core/playbook/playbook.h"
#include "core/playbook/rollout_internal.h"
#include "core/playbook/target.h"
#include "core/texts.h"

#define CHECK_MS (15LL * 60 * 1000)
#define RUN_MS (4LL * 3600 * 1000)
#define UNREACHABLE 4 /* ansible-playbook: no host could be reached */

static struct rollouts *all_of(const struct rollout *ro)
{
    return CONTAINER_OF(ro->named.list, struct rollouts, list);
}

static enum rollout_phase phase_of(const struct rollout *ro)
{
    return ro->sm.state == ROLLOUT_CHECKING ? ROLLOUT_CHECK : ROLLOUT_RUN;
}

static void on_output(void *arg, int64_t offset, struct str bytes)
{
    struct rollout *ro = arg;

    rollout_log_add(ro, phase_of(ro), offset, bytes);
}

/* Whether it could be run; otherwise the rollout has failed. */
static bool was_run(struct rollout *ro, const struct tool_result *r, const struct err *e)
{
    struct err why = *e;

    if (why.code == ERR_NONE && r->failure.n > 0) {
        err_set(&why, ERR_UNAVAILABLE, 0, STR_FMT, STR_ARG(r->failure));
        err_hint(&why, "ansible-playbook must be installed on holtd's machine");
    } else if (why.code == ERR_NONE && r->timed_out) {
        err_set(&why, ERR_TIMEOUT, 0, "it took too long, and was ended");
    } else if (why.code == ERR_NONE && r->oom) {
        err_set(&why, ERR_LIMIT, ENOMEM, "ansible-playbook needs too much memory");
        err_hint(&why, "make several playbooks of it");
    }
    if (why.code == ERR_NONE)
        return true;
    err_wrap(&why, ro->sm.state == ROLLOUT_CHECKING ? "check the playbook" : "run the playbook");
    rollout_fail(ro, &why);
    return false;
}

/* --- the check --- */

static void check_ended(void *arg, const struct tool_result *r, const struct err *e)
{
    struct rollout *ro = arg;

    ro->run = NULL;
    ro->busy = false;
    if (rollout_stops(ro) || !was_run(ro, r, e))
        return;
    ro->check_exit = r->exit_code;
    if (r->exit_code == UNREACHABLE)
        rollout_failed(ro, "target '%s' could not be reached: holt rollout logs %s --phase check",
                       ro->target_name, ro->named.id);
    else if (ro->check && r->exit_code != 0)
        rollout_failed(ro, "the check ended with status %d", r->exit_code);
    else if (ro->check)
        rollout_go(ro, ROLLOUT_SUCCEEDED);
    else if (rollout_needs_people(ro))
        rollout_ask(ro);
    else /* whatever it said: a service that has yet to be installed fails in a check */
        rollout_go(ro, ROLLOUT_APPROVED);
}

void rollout_check_begin(struct rollout *ro)
{
    struct err e = {0};

    rollout_log_begin(ro, ROLLOUT_CHECK);
    ro->run = ansible_start(all_of(ro),
                            &(struct ansible_spec){.name = ro->named.id,
                                                   .at = &ro->at,
                                                   .playbook = str_of(ro->text),
                                                   .check = true,
                                                   .time_ms = CHECK_MS,
                                                   .output = on_output,
                                                   .done = check_ended,
                                                   .arg = ro},
                            &e);
    ro->busy = ro->run != NULL;
    if (!ro->run)
        rollout_fail(ro, &e);
}

/* --- the run --- */

static void run_ended(void *arg, const struct tool_result *r, const struct err *e)
{
    struct rollout *ro = arg;

    ro->run = NULL;
    ro->busy = false;
    if (all_of(ro)->closed)
        return;
    if (ro->sm.state == ROLLOUT_APPLYING && e->code == ERR_NONE)
        ro->exit_code = r->exit_code;
    if (rollout_stops(ro) || !was_run(ro, r, e))
        return;
    if (r->exit_code == 0)
        rollout_go(ro, ROLLOUT_SUCCEEDED);
    else if (r->exit_code == UNREACHABLE)
        rollout_failed(ro, "target '%s' could not be reached: holt rollout logs %s",
                       ro->target_name, ro->named.id);
    else
        rollout_failed(ro, "ansible-playbook ended with status %d: holt rollout logs %s",
                       r->exit_code, ro->named.id);
}

struct commit { /* the move to applying, in the transaction of the command's row */
    struct rollout *ro;
    struct row *row;
    struct buf data;
    char id[ID_SIZE];
};

static void commit_ready(void *arg, const void *object)
{
    struct commit *c = arg;

    (void)object;
    rollout_state_set(c->ro, ROLLOUT_APPLYING);
    rollout_event_data(c->ro, &c->data);
    c->row = row_take(rollout_kind.columns, c->ro);
}

static int commit_write(struct store_tx *tx, void *arg, struct err *e)
{
    const struct commit *c = arg;

    if (row_save(tx, c->row, e) < 0)
        return -1;
    rollout_put_event(tx, c->id, ROLLOUT_APPLYING, "system", buf_str(&c->data));
    return 0;
}

static void commit_free(void *arg)
{
    struct commit *c = arg;

    row_free(c->row);
    buf_done(&c->data);
    mem_free(c);
}

/* Its first bytes: by then the move is on disk. */
static void on_run_output(void *arg, int64_t offset, struct str bytes)
{
    struct rollout *ro = arg;

    ro->shown = ro->sm.state;
    rollout_log_add(ro, ROLLOUT_RUN, offset, bytes);
}

static struct ansible_spec run_spec(struct rollout *ro)
{
    return (struct ansible_spec){.name = ro->named.id,
                                 .at = &ro->at,
                                 .playbook = str_of(ro->text),
                                 .time_ms = RUN_MS,
                                 .output = on_run_output,
                                 .done = run_ended,
                                 .arg = ro};
}

void rollout_run_begin(struct rollout *ro)
{
    static const struct tx_hook hook = {
        .ready = commit_ready, .write = commit_write, .free = commit_free};
    struct ansible_spec s = run_spec(ro);
    struct commit *c = xzalloc(sizeof *c);
    struct err e = {0};

    c->ro = ro;
    memcpy(c->id, ro->named.id, sizeof c->id);
    s.tx_hook = &hook;
    s.tx_hook_arg = c;
    rollout_log_begin(ro, ROLLOUT_RUN);
    ro->run = ansible_start(all_of(ro), &s, &e);
    ro->busy = ro->run != NULL;
    if (!ro->run)
        rollout_fail(ro, &e);
}

/* Never twice: what it did before its sandbox was lost stays, and somebody has to look. */
void rollout_run_resume(struct rollout *ro)
{
    struct ansible_spec s = run_spec(ro);

    ro->run = ansible_resume(all_of(ro), &s);
    ro->busy = ro->run != NULL;
    if (!ro->run)
        rollout_failed(ro,
                       "it was interrupted: its sandbox is gone, and the playbook may have run in "
                       "part; holt rollout logs %s has what it wrote",
                       ro->named.id);
}

/* --- stop --- */

void rollout_run_stop(struct rollout *ro)
{
    ansible_cancel(TAKE(ro->run));
    ro->busy = false;
}

void rollout_run_leave(struct rollout *ro)
{
    if (ro->run)
        ansible_leave(TAKE(ro->run));
}
