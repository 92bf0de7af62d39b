/* tool: one command of the agent interface, by the rules of a policy, without a shell. */
#include "api/dialects/fluid/fluid.h"

#include "api/share/command.h"
#include "base/mem.h"
#include "core/policy/policy.h"

#define TIMEOUT_PRESET_MS 30000
#define TIMEOUT_MAX_MS (5 * 60 * 1000)
#define ARGS_MAX 1024

struct tool_in {
    struct str command, work_dir, sandbox_id;
    struct fluid_strs args, env;
    int64_t timeout;
    bool dry_run;
};
static const struct fluid_field tool_fields[] = {
    {"command", FLUID_STR, offsetof(struct tool_in, command), true},
    {"args", FLUID_STRS, offsetof(struct tool_in, args), false},
    {"work_dir", FLUID_STR, offsetof(struct tool_in, work_dir), false},
    {"timeout", FLUID_INT, offsetof(struct tool_in, timeout), false},
    {"dry_run", FLUID_BOOL, offsetof(struct tool_in, dry_run), false},
    {"env", FLUID_STRS, offsetof(struct tool_in, env), false},
    {"sandbox_id", FLUID_STR, offsetof(struct tool_in, sandbox_id), false},
};
const struct fluid_form fluid_tool_form = {FLUID_FORM(tool_fields, struct tool_in),
                                           .lenient = true};

/* --- the rules --- */

const struct policy *fluid_rules(const struct request *r)
{
    struct err none = {0};
    const char *name = fluid_settings(r->api->c.conf)->agent_policy;

    return name[0] ? policy_find(r->api->c.policies, str_of(name), &none) : NULL;
}

static const struct policy_rules *rules_of(const struct request *r)
{
    const struct policy *p = fluid_rules(r);
    struct policy_info i;

    if (!p)
        return NULL;
    policy_info(p, &i);
    return i.rules;
}

static void write_list(struct jw *w, const char *key, const struct policy_texts *l)
{
    jw_key(w, key);
    jw_array(w);
    for (size_t i = 0; l && i < l->n; i++)
        jw_str(w, l->v[i]);
    jw_array_end(w);
}

void fluid_tool_allowed(struct request *r)
{
    const struct policy_rules *rules = rules_of(r);
    AUTO(buf_done) struct buf json = {0};
    struct jw w = {.to = &json};

    jw_object(&w);
    write_list(&w, "allowed", rules ? &rules->list[POLICY_COMMANDS_ALLOW] : NULL);
    write_list(&w, "denied", rules ? &rules->list[POLICY_COMMANDS_DENY] : NULL);
    jw_object_end(&w);
    fluid_reply(r, 200, buf_str(&json));
}

/* --- running --- */

struct tool_job {
    struct waiter waiter;
    struct command *command;
    struct arena a;
    struct str *argv; /* the command and its arguments */
    size_t argc;
    struct pair *env;
    size_t env_count;
};

static void tool_free(struct tool_job *j)
{
    arena_done(&j->a);
    mem_free(j);
}

static void asker_gone(struct waiter *w)
{
    struct tool_job *j = CONTAINER_OF(w, struct tool_job, waiter);

    command_drop(j->command, true);
    tool_free(j);
}

static void write_head(struct jw *w, const struct tool_job *j, bool dry)
{
    jw_kstr(w, "command", j->argv[0]);
    jw_key(w, "args");
    jw_array(w);
    for (size_t i = 1; i < j->argc; i++)
        jw_str(w, j->argv[i]);
    jw_array_end(w);
    jw_kbool(w, "dry_run", dry);
}

static void send_dry(struct request *r, const struct tool_job *j)
{
    AUTO(buf_done) struct buf json = {0};
    struct jw w = {.to = &json};

    jw_object(&w);
    write_head(&w, j, true);
    jw_kc(&w, "stdout", "");
    jw_kc(&w, "stderr", "");
    jw_kint(&w, "exit_code", 0);
    jw_kint(&w, "duration_ms", 0);
    jw_kbool(&w, "timed_out", false);
    jw_object_end(&w);
    fluid_reply(r, 200, buf_str(&json));
}

static void write_errors(struct jw *w, const struct exec_info *i, const struct collect *c)
{
    AUTO(buf_done) struct buf text = {0};

    if (i->timed_out)
        buf_printf(&text, "command timed out after %lld s\n", (long long)i->timeout_ms / 1000);
    if (i->state == EXEC_FAILED)
        buf_add_str(&text, i->failure);
    if (c)
        buf_add_str(&text, buf_str(&c->streams[1]));
    jw_kstr(w, "stderr", buf_str(&text));
}

static void send_result(struct request *r, const struct tool_job *j, const struct exec *x,
                        const struct collect *c)
{
    AUTO(buf_done) struct buf json = {0};
    struct jw w = {.to = &json};
    struct exec_info i;

    exec_info(x, &i);
    jw_object(&w);
    write_head(&w, j, false);
    jw_kstr(&w, "stdout", c ? buf_str(&c->streams[0]) : STR(""));
    write_errors(&w, &i, c);
    jw_kint(&w, "exit_code", i.timed_out ? -1 : i.state == EXEC_FAILED ? 127 : i.exit_code);
    jw_kint(&w, "duration_ms", i.duration_ms);
    jw_kbool(&w, "timed_out", i.timed_out);
    if (c && c->truncated)
        jw_kbool(&w, "truncated", true);
    jw_object_end(&w);
    fluid_reply(r, 200, buf_str(&json));
}

static void tool_ended(void *arg, struct exec *x, const struct collect *c, const struct err *e)
{
    struct tool_job *j = arg;
    struct request *r = waiter_end(&j->waiter);

    if (r && x)
        send_result(r, j, x, c);
    else if (r && e->code == ERR_FORBIDDEN)
        fluid_blocked(r, e);
    else if (r)
        fluid_refuse(r, e);
    tool_free(j);
}

static struct tool_job *tool_new(const struct tool_in *in)
{
    struct tool_job *j = xzalloc(sizeof *j);

    j->argv = arena_zalloc(&j->a, (in->args.n + 1) * sizeof *j->argv);
    j->argv[j->argc++] = arena_str(&j->a, in->command);
    for (size_t i = 0; i < in->args.n; i++)
        j->argv[j->argc++] = arena_str(&j->a, in->args.v[i]);
    j->env = arena_zalloc(&j->a, (in->env.n + 1) * sizeof *j->env);
    for (size_t i = 0; i < in->env.n; i++) {
        struct pair *p = &j->env[j->env_count++];

        p->key = str_cut(arena_str(&j->a, in->env.v[i]), '=', &p->value);
    }
    return j;
}

static int check(const struct request *r, const struct tool_job *j, struct err *e)
{
    const struct policy *p = fluid_rules(r);
    struct str *names = arena_zalloc(xchg_arena(r->x), (j->env_count + 1) * sizeof *names);

    for (size_t i = 0; i < j->env_count; i++)
        names[i] = j->env[i].key;
    if (!p)
        return 0;
    return policy_check_command(
        p,
        &(struct policy_command){
            .argv = j->argv, .argc = j->argc, .env = names, .env_count = j->env_count},
        e);
}

/* A longer time than the rules allow is an error, not cut. */
static bool read_timeout(struct request *r, int64_t seconds, int64_t *ret_ms)
{
    const struct policy_rules *rules = rules_of(r);
    int64_t preset = rules && rules->timeout_ms ? rules->timeout_ms : TIMEOUT_PRESET_MS;
    int64_t max = rules && rules->timeout_max_ms ? rules->timeout_max_ms : TIMEOUT_MAX_MS;

    if (seconds < 0 || seconds > max / 1000) {
        fluid_error(r, 400, "timeout must be from 0 to %lld s", (long long)max / 1000);
        return false;
    }
    *ret_ms = seconds > 0 ? seconds * 1000 : preset;
    return true;
}

void fluid_tool_run(struct request *r, struct sandbox *s)
{
    static const struct command_ops ops = {.done = tool_ended};
    static const struct exec_input nothing = {0};
    const struct tool_in *in = r->in;
    const struct principal by = request_who(r);
    struct exec_spec spec = {.cwd = in->work_dir};
    struct tool_job *j;
    struct err e = {0};

    if (!read_timeout(r, in->timeout, &spec.timeout_ms))
        return;
    if (in->args.n > ARGS_MAX || in->env.n > ARGS_MAX) {
        fluid_error(r, 400, "args and env have at most %d entries", ARGS_MAX);
        return;
    }
    j = tool_new(in);
    if (check(r, j, &e) < 0 || in->dry_run) {
        if (e.code != ERR_NONE)
            fluid_blocked(r, &e);
        else
            send_dry(r, j);
        tool_free(j);
        return;
    }
    spec.argv = j->argv;
    spec.argc = j->argc;
    spec.env = j->env;
    spec.env_count = j->env_count;
    j->waiter.gone = asker_gone;
    request_wait(r, &j->waiter);
    j->command = command_start(r->api, s, &spec, &nothing, &by, &ops, j);
}
