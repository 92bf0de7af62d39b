/* task_place: the sandbox of a task: an idle one that takes tasks, or a new one. */
#include "core/task/task_internal.h"

#include "base/log.h"
#include "base/mem.h"
#include "core/network/secret.h"
#include "core/sandbox/commands.h"
#include "core/sandbox/volume.h"

#include <stdio.h>

#define LABEL_TASK "holt.task"
#define PREPARE_MS (10LL * 60 * 1000)

/* --- one that is there --- */

static bool has_label(const struct sandbox_info *i, const char *key, const char *value)
{
    for (size_t k = 0; k < i->label_count; k++)
        if (str_eq_c(i->labels[k].key, key) && str_eq_c(i->labels[k].value, value))
            return true;
    return false;
}

static bool is_taken(const struct tasks *l, const char *sandbox)
{
    for (size_t i = 0; i < l->count; i++)
        if (strcmp(l->sorted[i]->sandbox, sandbox) == 0 &&
            !task_state_is_end((enum task_state)l->sorted[i]->sm.state))
            return true;
    return false;
}

/* A limit that the task asks for must be there: 0 is none. */
static bool is_enough(int64_t has, int64_t wanted)
{
    return has == 0 || has >= wanted;
}

static bool fits(const struct task *t, const struct sandbox_info *i)
{
    const struct sandbox_limits *has = &i->traits.limits;

    return i->state == SANDBOX_RUNNING && str_eq_c(i->tenant, t->tenant) && !i->reconnecting &&
           !i->destroying && i->execs_live == 0 && has_label(i, TASK_LABEL, TASK_LABEL_ACCEPT) &&
           t->m.loadout.n == 0 && /* what it has is not known */
           (t->m.image.n == 0 || str_eq(t->m.image, i->image)) &&
           (t->m.runtime.n == 0 || str_eq(t->m.runtime, i->runtime)) &&
           is_enough(has->memory_bytes, t->m.memory_bytes) &&
           is_enough(has->cpu_millis, t->m.cpu_millis) &&
           is_enough(has->disk_bytes, t->m.disk_bytes) && !is_taken(t->all, i->id);
}

static struct sandbox *find_idle(struct task *t)
{
    struct principal by = task_principal(t);
    struct sandboxes *all = t->all->c.sandboxes;
    struct sandbox_info i = {.id = ""};

    for (struct sandbox *s = sandbox_next(all, &by, STR("")); s;
         s = sandbox_next(all, &by, str_of(i.id))) {
        sandbox_info(s, &i);
        if (fits(t, &i))
            return s;
    }
    return NULL;
}

/* The one it was given, or an idle one that it takes now: kept with its next move. */
struct sandbox *place_found(struct task *t)
{
    struct sandbox *s =
        t->sandbox[0] ? sandboxes_get(t->all->c.sandboxes, str_of(t->sandbox)) : find_idle(t);
    struct sandbox_info i;

    if (!s)
        return NULL;
    sandbox_info(s, &i);
    if (t->sandbox[0] == '\0') {
        (void)snprintf(t->sandbox, sizeof t->sandbox, "%s", i.id);
        t->borrowed = true;
    }
    return sandbox_ref(s);
}

static struct sandbox *find_labelled(struct task *t, const char *key, const char *value)
{
    struct principal by = task_principal(t);
    struct sandboxes *all = t->all->c.sandboxes;
    struct sandbox_info i = {.id = ""};

    for (struct sandbox *s = sandbox_next(all, &by, STR("")); s;
         s = sandbox_next(all, &by, str_of(i.id))) {
        sandbox_info(s, &i);
        if (has_label(&i, key, value) && str_eq_c(i.owner, t->owner) && !i.destroying)
            return s; /* of another's, anybody could give it this label */
    }
    return NULL;
}

struct sandbox *place_made(struct task *t)
{
    return find_labelled(t, LABEL_TASK, t->id);
}

struct sandbox *place_clone_left(struct task *t)
{
    return find_labelled(t, TOOL_LABEL, t->key);
}

/* --- the workspace inside --- */

/* ~/inbox/ID is what it was given, ~/inbox/current its copy to work on. */
static const char prepare_script[] =
    "set -eu\n"
    "umask 022\n"
    "mkdir -p /mnt/inbox /mnt/outbox /mnt/workspace\n"
    "rm -rf \"/mnt/workspace/$TASK_ID\" /mnt/outbox/* /mnt/outbox/.[!.]* 2>/dev/null || true\n"
    "cp -a \"/mnt/inbox/$TASK_ID/repo\" \"/mnt/workspace/$TASK_ID\"\n"
    "chmod -R a-w \"/mnt/inbox/$TASK_ID\" 2>/dev/null || true\n"
    "ln -sfn \"/mnt/workspace/$TASK_ID${SUBPATH:+/$SUBPATH}\" /mnt/inbox/current\n"
    "for name in inbox outbox global; do\n"
    "  [ -L \"$HOME/$name\" ] || [ -e \"$HOME/$name\" ] || ln -s \"/mnt/$name\" \"$HOME/$name\"\n"
    "done\n"
    "[ -L \"$HOME/outputs\" ] || [ -e \"$HOME/outputs\" ] || ln -s /mnt/outbox \"$HOME/outputs\"\n";

static void prepared(struct task *t, int exit_code, struct str output, const struct err *e)
{
    if (task_stops(t))
        return;
    if (e->code != ERR_NONE)
        task_fail(t, e);
    else if (exit_code != 0)
        task_failed(t, "the workspace could not be made (status %d): " STR_FMT, exit_code,
                    (int)size_min(output.n, 2000), output.p ? output.p : "");
    else
        task_go(t, TASK_READY, "ready");
}

static void prepare(struct task *t)
{
    const struct pair env[] = {{STR("TASK_ID"), str_of(t->id)}, {STR("SUBPATH"), t->m.subpath}};

    task_script_run(t, &(struct task_script){.text = prepare_script,
                                             .cwd = STR("/"),
                                             .env = env,
                                             .env_count = ARRAY_LEN(env),
                                             .time_ms = PREPARE_MS,
                                             .done = prepared});
}

/* --- a new one --- */

static void sandbox_made(void *arg, struct sandbox *s, const struct err *e)
{
    struct task *t = arg;
    struct sandbox_info i;

    t->busy = false;
    if (t->all->closed)
        return;
    if (s) {
        sandbox_info(s, &i);
        (void)snprintf(t->sandbox, sizeof t->sandbox, "%s", i.id);
        t->s = sandbox_ref(s);
    }
    if (task_stops(t))
        return;
    if (!s)
        task_fail(t, e);
    else
        prepare(t);
}

static void place_outfitted(struct task *t)
{
    struct principal by = task_principal(t);
    struct str inbox = str_of(arena_printf(&t->a, "/mnt/inbox/%s", t->id));
    struct str global = str_of(arena_printf(&t->a, "%s/global", share_root(t->all->c.share)));
    const struct volume_use volume = {.name = str_of(t->key), .path = inbox, .readonly = true};
    const struct sandbox_mount mount = {
        .kind = STR("host"), .source = global, .target = STR("/mnt/global"), .readonly = true};
    const struct pair labels[] = {{STR(LABEL_TASK), str_of(t->id)}};
    struct secret_use *secrets = arena_zalloc(&t->a, (t->m.secret_count + 1) * sizeof *secrets);

    for (size_t i = 0; i < t->m.secret_count; i++)
        secrets[i] = (struct secret_use){.name = t->m.secrets[i].key, .env = t->m.secrets[i].env};
    t->busy = true;
    sandbox_create(t->all->c.sandboxes,
                   &(struct sandbox_spec){.name = str_of(t->key),
                                          .image = t->m.image.n > 0 ? t->m.image : STR("host"),
                                          .runtime = t->m.runtime,
                                          .tenant = str_of(t->tenant),
                                          .traits = {.limits = {.cpu_millis = t->m.cpu_millis,
                                                                .memory_bytes = t->m.memory_bytes,
                                                                .disk_bytes = t->m.disk_bytes}},
                                          .labels = labels,
                                          .label_count = ARRAY_LEN(labels),
                                          .mounts = &mount,
                                          .mount_count = 1,
                                          .volumes = &volume,
                                          .volume_count = 1,
                                          .secrets = secrets,
                                          .secret_count = t->m.secret_count,
                                          .network = manifest_policy(&t->m, &t->a)},
                   &by, sandbox_made, t);
}

static void place_new(struct task *t)
{
    if (t->m.loadout.n > 0 && !t->outfitted)
        outfit_begin(t, place_outfitted);
    else
        place_outfitted(t);
}

static void made_removed(void *arg, struct sandbox *s, const struct err *e)
{
    struct task *t = arg;

    (void)s;
    t->busy = false;
    if (e->code != ERR_NONE && e->code != ERR_NOT_FOUND && !t->all->closed)
        log_warn("a sandbox of a task is not removed yet", LOG_C("id", t->id), LOG_E(e));
    if (!task_stops(t))
        place_new(t);
}

void place_begin(struct task *t)
{
    struct principal by = task_principal(t);
    struct sandbox *s;
    struct sandbox_info i;

    t->s = sandbox_unref(t->s);
    if (t->borrowed) {
        s = sandboxes_get(t->all->c.sandboxes, str_of(t->sandbox));
        if (!s) {
            task_failed(t, "its sandbox '%s' is gone", t->sandbox);
            return;
        }
        t->s = sandbox_ref(s);
        prepare(t);
        return;
    }
    s = place_made(t);
    if (!s) {
        place_new(t);
        return;
    }
    sandbox_info(s, &i);
    if (i.state == SANDBOX_RUNNING) { /* a command waits for its connection */
        sandbox_made(t, s, &(struct err){0});
        return;
    }
    t->busy = true;
    sandbox_destroy(s, &by, made_removed, t);
}
