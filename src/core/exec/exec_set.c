/* exec_set: the commands of one sandbox and of all sandboxes, as core/sandbox calls them. */
#include "core/exec/exec_internal.h"

#include "base/clock.h"
#include "base/mem.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#define EXECS_MAX 256
#define OUTPUT_BYTES (64LL << 20)

static struct exec_set *set_of(struct sandbox_commands *c)
{
    return CONTAINER_OF(c, struct exec_set, counts);
}

struct exec_set *exec_set_of(const struct sandbox *s)
{
    return set_of(sandbox_commands(s));
}

bool execs_are_closed(const struct execs *all)
{
    return sandboxes_is_closed(all->sandboxes);
}

int64_t execs_moment(struct execs *all)
{
    all->moment_us = i64_max(clock_wall_us(), all->moment_us + 1);
    return all->moment_us;
}

void execs_moment_was(struct execs *all, int64_t us)
{
    all->moment_us = i64_max(all->moment_us, us);
}

/* --- all of them --- */

static struct execs *execs_open(struct sandboxes *of, struct timers *timers,
                                const struct sandboxes_config *c)
{
    struct execs *all = xzalloc(sizeof *all);

    *all = (struct execs){
        .sandboxes = of,
        .loop = c->loop,
        .store = c->store,
        .timers = timers,
        .space = c->space,
        .dir = xasprintf("%s/execs", c->state),
        .execs_max = c->execs_max > 0 ? c->execs_max : EXECS_MAX,
        .output_bytes = c->output_bytes > 0 ? c->output_bytes : OUTPUT_BYTES,
        .output_keep_ms = c->output_keep_ms,
        .command_time_ms = c->command_time_ms,
        .session_time_ms = c->session_time_ms,
        .relay_output_bytes = c->relay_output_bytes > 0 ? c->relay_output_bytes : OUTPUT_BYTES,
        .block = xmalloc(LOG_BLOCK),
    };
    list_init(&all->unsafe);
    list_init(&all->told);
    exec_metrics_add();
    return all;
}

static void execs_close(struct execs *all)
{
    execs_tell_all(all);
    timer_stop(&all->spill);
    all->timers = NULL;
}

static void execs_free(struct execs *all)
{
    assert(list_is_empty(&all->unsafe) && all->shares.count == 0);
    map_done(&all->shares);
    mem_free(all->block);
    mem_free(all->dir);
    mem_free(all);
}

/* --- log files of sandboxes that are gone --- */

struct logs_job {
    uv_work_t work;
    char *dir;
    void (*done)(void *arg);
    void *arg;
};

static void logs_work(uv_work_t *w)
{
    struct logs_job *j = CONTAINER_OF(w, struct logs_job, work);
    DIR *d = opendir(j->dir);
    const struct dirent *entry;

    if (!d)
        return;
    while ((entry = readdir(d)))
        if (entry->d_name[0] != '.')
            (void)unlinkat(dirfd(d), entry->d_name, 0);
    (void)closedir(d);
    (void)rmdir(j->dir);
}

static void logs_done(uv_work_t *w, int status)
{
    struct logs_job *j = CONTAINER_OF(w, struct logs_job, work);

    (void)status;
    if (j->done)
        j->done(j->arg);
    mem_free(j->dir);
    mem_free(j);
}

static void logs_remove(struct execs *all, const char *sandbox, void (*done)(void *arg), void *arg)
{
    struct logs_job *j = xzalloc(sizeof *j);

    j->dir = xasprintf("%s/%s", all->dir, sandbox);
    j->done = done;
    j->arg = arg;
    (void)uv_queue_work(all->loop, &j->work, logs_work, logs_done);
}

static void stray_logs_remove(struct execs *all)
{
    DIR *d = opendir(all->dir);
    const struct dirent *entry;

    if (!d)
        return;
    while ((entry = readdir(d)))
        if (id_is_valid("sb", str_of(entry->d_name)) &&
            !sandboxes_get(all->sandboxes, str_of(entry->d_name)))
            logs_remove(all, entry->d_name, NULL, NULL);
    (void)closedir(d);
}

/* --- those of one sandbox --- */

static struct sandbox_commands *set_new(struct execs *all, struct sandbox *s)
{
    struct exec_set *set = xzalloc(sizeof *set);

    set->all = all;
    set->sandbox = s;
    list_init(&set->list);
    list_init(&set->journals);
    return &set->counts;
}

static void set_free(struct sandbox_commands *c)
{
    struct exec_set *set = set_of(c);

    assert(list_is_empty(&set->list) && set->count == 0 && c->live == 0 && c->standing == 0);
    assert(list_is_empty(&set->journals) && !set->notes);
    mem_free(set);
}

static void set_linked(struct sandbox_commands *c, const struct guest_hello_init *h, bool other)
{
    exec_set_linked(set_of(c), h, other);
}

static void set_terminate(struct sandbox_commands *c)
{
    LIST_EACH (&set_of(c)->list, node) {
        struct exec *x = LIST_ENTRY(node, struct exec, link);

        if (x->ch && exec_is_live(x))
            guest_exec_signal(x->ch, SIGTERM, GUEST_SCOPE_ALL);
    }
}

static void set_kill(struct sandbox_commands *c)
{
    LIST_EACH (&set_of(c)->list, node)
        exec_kill(LIST_ENTRY(node, struct exec, link), 0);
}

static void set_lose(struct sandbox_commands *c, const char *why)
{
    LIST_EACH (&set_of(c)->list, node) {
        struct exec *x = LIST_ENTRY(node, struct exec, link);

        if (exec_is_live(x))
            exec_lose(x, why);
    }
    assert(c->live == 0);
}

static void set_tick(struct sandbox_commands *c)
{
    LIST_EACH (&set_of(c)->list, node)
        exec_tick(LIST_ENTRY(node, struct exec, link));
    exec_set_retain(set_of(c));
}

static void set_drop(struct sandbox_commands *c)
{
    struct exec_set *set = set_of(c);
    const struct err gone = {.code = execs_are_closed(set->all) ? ERR_CANCELLED : ERR_GONE,
                             .msg = "the sandbox was destroyed"};

    journals_end(set, &gone);
    notes_close(set);
    while (!list_is_empty(&set->list))
        exec_forget(LIST_ENTRY(set->list.next, struct exec, link));
}

static void set_remove_logs(struct sandbox_commands *c, void (*done)(void *arg), void *arg)
{
    const struct exec_set *set = set_of(c);

    if (set->has_logs)
        logs_remove(set->all, sandbox_id(set->sandbox), done, arg);
    else
        done(arg);
}

const struct commands_ops exec_commands = {
    .open = execs_open,
    .load = execs_load,
    .remove_stray_logs = stray_logs_remove,
    .close = execs_close,
    .free = execs_free,
    .attach = set_new,
    .linked = set_linked,
    .terminate = set_terminate,
    .kill = set_kill,
    .lose = set_lose,
    .tick = set_tick,
    .drop = set_drop,
    .remove_logs = set_remove_logs,
    .erase = execs_erase,
    .free_one = set_free,
};
