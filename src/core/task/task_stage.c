/* task_stage: clones the repository of a task. */
#include "core/task/task_internal.h"

#include "base/mem.h"
#include "core/network/secret.h"
#include "core/sandbox/volume.h"

#include <stdio.h>

/* git runs in a throw-away sandbox that reaches nothing else, and writes into a volume that the
 * agent's sandbox mounts read-only.  A task on a sandbox that was there before is cloned inside it:
 * volumes cannot be added later. */
#define STAGE_MS (30LL * 60 * 1000)
#define OUTPUT_MAX (64 * 1024)
#define INBOX_OF_CLONE "/inbox"

/* Texts come by the environment: nothing of the manifest is part of the script. */
static const char stage_script[] =
    "set -eu\n"
    "umask 022\n"
    "mkdir -p \"$INBOX\"\n"
    "chmod -R u+w \"$INBOX\" 2>/dev/null || true\n"
    "rm -rf \"$INBOX/repo\"\n"
    "printf '%s' \"$TASK_TEXT\" > \"$INBOX/TASK.md\"\n"
    "mkdir \"$INBOX/repo\"\n"
    "[ -n \"$URL\" ] || exit 0\n"
    "command -v git >/dev/null || { echo 'there is no git in this sandbox: install it'; exit 3; }\n"
    "export GIT_TERMINAL_PROMPT=0 GIT_CONFIG_NOSYSTEM=1 HOME=/tmp\n"
    "cd \"$INBOX/repo\"\n"
    "git init -q .\n"
    "git remote add origin \"$URL\"\n"
    "if [ -n \"$COMMIT\" ]; then\n"
    "  git fetch -q --depth 1 origin \"$COMMIT\" || git fetch -q origin $BRANCH\n"
    "  git checkout -q --detach \"$COMMIT\"\n"
    "else\n"
    "  git fetch -q --depth 1 origin \"refs/heads/$BRANCH:refs/remotes/origin/$BRANCH\"\n"
    "  git checkout -q -b \"$BRANCH\" \"refs/remotes/origin/$BRANCH\"\n"
    "fi\n"
    "[ -z \"$SUBPATH\" ] || [ -d \"$SUBPATH\" ] ||\n"
    "  { echo \"the repository has no directory '$SUBPATH'\"; exit 4; }\n";

#define STAGE_ENV 6
static void stage_env(struct task *t, struct str inbox, struct pair *to)
{
    AUTO(buf_done) struct buf text = {0};

    buf_printf(&text, "# " STR_FMT "\n\n" STR_FMT "\n\nTask: %s\n", STR_ARG(t->m.name),
               STR_ARG(t->m.prompt), t->id);
    to[0] = (struct pair){STR("INBOX"), inbox};
    to[1] = (struct pair){STR("URL"), t->m.url};
    to[2] = (struct pair){STR("BRANCH"), t->m.branch};
    to[3] = (struct pair){STR("COMMIT"), t->m.commit};
    to[4] = (struct pair){STR("SUBPATH"), t->m.subpath};
    to[5] = (struct pair){STR("TASK_TEXT"), arena_str(&t->a, buf_str(&text))};
}

static void staged(struct task *t, int exit_code, struct str output)
{
    output = str_trim(output);
    while (output.n > 0 && output.p[output.n - 1] == '\n')
        output.n--;
    if (exit_code == 0)
        task_go(t, TASK_PROVISIONING, "making the sandbox");
    else
        task_failed(t, "the repository could not be cloned (status %d): " STR_FMT, exit_code,
                    (int)size_min(output.n, 2000), output.p ? output.p : "");
}

/* --- in a sandbox that was there before --- */

static void staged_inside(struct task *t, int exit_code, struct str output, const struct err *e)
{
    if (task_stops(t))
        return;
    if (e->code != ERR_NONE)
        task_fail(t, e);
    else
        staged(t, exit_code, output);
}

static void stage_inside(struct task *t)
{
    struct pair env[STAGE_ENV];

    stage_env(t, str_of(arena_printf(&t->a, "/mnt/inbox/%s", t->id)), env);
    task_script_run(t, &(struct task_script){.text = stage_script,
                                             .cwd = STR("/"),
                                             .env = env,
                                             .env_count = STAGE_ENV,
                                             .time_ms = i64_min(STAGE_MS, t->m.timeout_ms),
                                             .done = staged_inside});
}

/* --- in a sandbox of its own, into a volume --- */

static void tool_ended(void *arg, const struct tool_result *r, const struct err *e)
{
    struct task *t = arg;

    t->tool = NULL;
    t->busy = false;
    if (task_stops(t))
        return;
    if (e->code != ERR_NONE)
        task_fail(t, e);
    else if (r->timed_out)
        task_failed(t, "the clone took too long");
    else
        staged(t, r->exit_code, r->err.n > 0 ? r->err : r->out);
}

static struct secret_use *task_secrets(struct task *t)
{
    struct secret_use *u = arena_zalloc(&t->a, (t->m.secret_count + 1) * sizeof *u);

    for (size_t i = 0; i < t->m.secret_count; i++)
        u[i] = (struct secret_use){.name = t->m.secrets[i].key, .env = t->m.secrets[i].env};
    return u;
}

static void clone_into(struct task *t, struct volume *v)
{
    const struct str argv[] = {STR("/bin/sh"), STR("-c"), str_of(stage_script)};
    struct principal by = task_principal(t);
    struct pair env[STAGE_ENV];
    struct volume_info i;
    struct sandbox_mount mount;

    volume_info(v, &i);
    mount = (struct sandbox_mount){
        .kind = STR("volume"), .source = str_of(i.id), .target = STR(INBOX_OF_CLONE)};
    stage_env(t, STR(INBOX_OF_CLONE), env);
    t->busy = true;
    t->tool = tool_start(t->all->c.sandboxes,
                         &(struct tool_spec){.name = t->key, /* to be found again */
                                             .argv = argv,
                                             .argc = ARRAY_LEN(argv),
                                             .env = env,
                                             .env_count = STAGE_ENV,
                                             .mounts = &mount,
                                             .mount_count = 1,
                                             .network = manifest_clone_policy(&t->m, &t->a),
                                             .secrets = task_secrets(t),
                                             .secret_count = t->m.url.n > 0 ? t->m.secret_count : 0,
                                             .by = &by,
                                             .limits = {.pids = 256, .memory_bytes = 2LL << 30},
                                             .time_ms = i64_min(STAGE_MS, t->m.timeout_ms),
                                             .output_max = OUTPUT_MAX,
                                             .events = {.done = tool_ended, .arg = t}});
}

static struct volume *own_volume(struct task *t)
{
    struct err e = {0};
    struct principal by = task_principal(t);

    return volume_find(t->all->c.volumes, &by, VOLUME_SEE, STR(""), str_of(t->key), &e);
}

static void volume_made(void *arg, struct named *n, const struct err *e)
{
    struct task *t = arg;
    struct volume *v = volume_of(n);

    t->busy = false;
    if (t->all->closed)
        return;
    t->has_volume = v || t->has_volume;
    if (task_stops(t))
        return;
    if (!v)
        task_fail(t, e);
    else
        clone_into(t, v);
}

/* It would hold the volume until its own end. */
static void clone_removed(void *arg, struct sandbox *s, const struct err *e)
{
    struct task *t = arg;

    (void)s, (void)e;
    t->busy = false;
    if (!task_stops(t))
        stage_begin(t);
}

void stage_begin(struct task *t)
{
    struct principal by = task_principal(t);
    struct sandbox *left = place_clone_left(t);
    struct volume *v = own_volume(t);
    struct err e = {0};

    if (left) {
        t->busy = true;
        sandbox_destroy(left, &by, clone_removed, t);
        return;
    }
    t->s = sandbox_unref(t->s);
    t->s = place_found(t);
    if (t->borrowed) {
        if (t->s)
            stage_inside(t);
        else
            task_failed(t, "its sandbox '%s' is gone", t->sandbox);
        return;
    }
    t->has_volume = t->has_volume || v;
    if (v) {
        clone_into(t, v);
        return;
    }
    t->busy = true;
    if (volume_create(t->all->c.volumes,
                      &(struct volume_spec){.name = str_of(t->key), .kind = VOLUME_DISK},
                      &(struct named_call){.by = &by, .done = volume_made, .arg = t}, &e) < 0) {
        t->busy = false;
        task_fail(t, &e);
    }
}
