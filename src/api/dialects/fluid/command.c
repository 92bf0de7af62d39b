/* command: runs commands for fluid's clients. */
#include "api/dialects/fluid/fluid.h"

#include "api/share/command.h"
#include "base/clock.h"
#include "base/mem.h"
#include "core/policy/policy.h"

#define CODE_NOT_STARTED 255
#define CODE_TIMED_OUT (-1)

struct shell_in {
    struct str command, user, private_key_path;
    int64_t timeout_sec;
    struct fluid_map env;
};
static const struct fluid_field run_fields[] = {
    {"command", FLUID_STR, offsetof(struct shell_in, command), true},
    {"user", FLUID_STR, offsetof(struct shell_in, user), false},
    {"username", FLUID_STR, offsetof(struct shell_in, user), false}, /* of SDK 0.0.15 */
    {"private_key_path", FLUID_STR, offsetof(struct shell_in, private_key_path), false},
    {"timeout_sec", FLUID_INT, offsetof(struct shell_in, timeout_sec), false},
    {"env", FLUID_MAP, offsetof(struct shell_in, env), false},
};
const struct fluid_form fluid_run_form = {FLUID_FORM(run_fields, struct shell_in)};

/* --- as JSON --- */

static bool is_shell_line(const struct exec_info *i)
{
    return i->argc == 3 && (str_eq_c(i->argv[0], "bash") || str_eq_c(i->argv[0], "/bin/sh")) &&
           (str_eq_c(i->argv[1], "-lc") || str_eq_c(i->argv[1], "-c"));
}

void fluid_command_text(const struct exec_info *i, struct buf *to)
{
    if (is_shell_line(i)) {
        buf_add_str(to, i->argv[2]);
        return;
    }
    for (size_t k = 0; k < i->argc; k++) {
        buf_add_c(to, k ? " " : "");
        buf_add_str(to, i->argv[k]);
    }
}

bool fluid_is_command(const struct exec_info *i)
{
    return !i->pty && i->ended_ms > 0 && (i->state == EXEC_EXITED || i->state == EXEC_LOST);
}

static void write_stream(struct jw *w, const char *key, const struct collect *c, size_t n,
                         struct str instead)
{
    jw_kstr(w, key, c && buf_len(&c->streams[n]) > 0 ? buf_str(&c->streams[n]) : instead);
}

void fluid_write_command(struct jw *w, const struct exec *x, const struct collect *c,
                         struct str env)
{
    AUTO(buf_done) struct buf text = {0};
    struct sandbox_info s;
    struct exec_info i;
    char id[FLUID_ID];

    exec_info(x, &i);
    sandbox_info(exec_sandbox(x), &s);
    fluid_command_text(&i, &text);
    jw_object(w);
    jw_kc(w, "id", fluid_id("CMD-", i.id, id));
    jw_kstr(w, "sandbox_id", fluid_sandbox_id(&s));
    jw_kstr(w, "command", buf_str(&text));
    if (env.n > 0)
        jw_kstr(w, "env_json", env);
    write_stream(w, "stdout", c, 0, STR(""));
    write_stream(w, "stderr", c, 1, i.state == EXEC_FAILED ? i.failure : STR(""));
    jw_kint(w, "exit_code",
            i.timed_out              ? CODE_TIMED_OUT
            : i.state == EXEC_FAILED ? CODE_NOT_STARTED
                                     : i.exit_code);
    jw_ktime(w, "started_at", i.started_ms > 0 ? i.started_ms : i.created_ms);
    jw_ktime(w, "ended_at", i.ended_ms > 0 ? i.ended_ms : clock_wall_ms());
    if (c && c->truncated)
        jw_kbool(w, "truncated", true);
    jw_object_end(w);
}

/* --- running --- */

struct run_job {
    struct waiter waiter;
    struct api *api;
    struct principal by;
    struct sandbox *s;
    struct command *command;
    struct arena a;
    struct exec_spec spec; /* in the arena */
    struct str argv[3], line, env;
    bool silent; /* the reply is empty: it was not the client's own command */
};

static void run_free(struct run_job *j)
{
    sandbox_unref(j->s);
    arena_done(&j->a);
    mem_free(j);
}
DEFINE_AUTO(struct run_job *, run_free)

/* A client that goes away ends its command. */
static void asker_gone(struct waiter *w)
{
    struct run_job *j = CONTAINER_OF(w, struct run_job, waiter);

    command_drop(j->command, true);
    run_free(j);
}

static void begin(struct run_job *j);

/* Its shell is not there: then the shell that every system has. */
static bool try_other_shell(struct run_job *j, const struct exec *x)
{
    struct exec_info i;

    if (!x || j->spec.argc == 0 || j->silent)
        return false;
    exec_info(x, &i);
    if (i.state != EXEC_FAILED || !str_find(i.failure, STR("No such file")))
        return false;
    j->spec.argc = 0;
    j->spec.shell = j->line;
    begin(j);
    return true;
}

static void send_result(struct request *r, const struct run_job *j, const struct exec *x,
                        const struct collect *c)
{
    struct exec_info i;
    struct jw w;

    exec_info(x, &i);
    if (j->silent && (i.state != EXEC_EXITED || i.exit_code != 0)) {
        fluid_error(r, 500, "the key was not written: " STR_FMT,
                    STR_ARG(c ? str_trim(buf_str(&c->streams[1])) : i.failure));
        return;
    }
    if (j->silent) {
        request_send(r, 204, NULL, STR(""));
        return;
    }
    w = request_json(r);
    jw_object(&w);
    jw_key(&w, "command");
    fluid_write_command(&w, x, c, j->env);
    jw_object_end(&w);
    fluid_send(r, 200);
}

static void command_ended(void *arg, struct exec *x, const struct collect *c, const struct err *e)
{
    struct run_job *j = arg;
    struct request *r;

    if (try_other_shell(j, x))
        return;
    r = waiter_end(&j->waiter);
    if (r && !x)
        fluid_refuse(r, e);
    else if (r)
        send_result(r, j, x, c);
    run_free(j);
}

static void begin(struct run_job *j)
{
    static const struct command_ops ops = {.done = command_ended};
    static const struct exec_input nothing = {0};

    j->command = command_start(j->api, j->s, &j->spec, &nothing, &j->by, &ops, j);
}

static struct run_job *run_new(struct request *r, struct sandbox *s)
{
    struct run_job *j = xzalloc(sizeof *j);

    j->api = r->api;
    j->by = request_who(r);
    j->s = sandbox_ref(s);
    j->waiter.gone = asker_gone;
    j->spec.timeout_ms = fluid_settings(r->api->c.conf)->command_timeout_ms;
    request_wait(r, &j->waiter);
    return j;
}

/* A login shell, as ssh starts it; rules of a policy are about the line, not about this shell. */
static void set_line(struct run_job *j, struct str line)
{
    struct policy_force rules;

    sandbox_policies(j->s, &rules);
    j->line = arena_str(&j->a, line);
    j->argv[0] = STR("bash");
    j->argv[1] = STR("-lc");
    j->argv[2] = j->line;
    j->spec.argv = j->argv;
    j->spec.argc = rules.n == 0 ? 3 : 0;
    j->spec.shell = rules.n == 0 ? STR("") : j->line;
}

/* Keys have [A-Za-z0-9_]: anything else becomes '_'. */
static struct str variable(struct arena *a, struct str key)
{
    char *to = arena_alloc(a, key.n + 1);

    for (size_t i = 0; i < key.n; i++) {
        char c = key.p[i];
        bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');

        to[i] = plain ? c : '_';
    }
    return str_make(to, key.n);
}

static void set_env(struct run_job *j, const struct fluid_map *env)
{
    struct pair *to = arena_zalloc(&j->a, (env->n + 1) * sizeof *to);
    AUTO(buf_done) struct buf json = {0};
    struct jw w = {.to = &json};

    jw_object(&w);
    for (size_t i = 0; i < env->n; i++) {
        to[i] = (struct pair){variable(&j->a, env->v[i].key), arena_str(&j->a, env->v[i].value)};
        jw_kstr(&w, env->v[i].key.p, env->v[i].value);
    }
    jw_object_end(&w);
    j->spec.env = to;
    j->spec.env_count = env->n;
    if (env->n > 0)
        j->env = arena_str(&j->a, buf_str(&json));
}

/* Commands need no key: one may be named only where the operator expects keys. */
static bool key_is_allowed(const struct request *r, struct str path)
{
    const struct conf_list *dirs = &fluid_settings(r->api->c.conf)->key_dirs;

    if (path.n == 0)
        return true;
    if (str_find(path, STR("..")))
        return false;
    for (size_t i = 0; i < dirs->n; i++) {
        struct str dir = str_of(dirs->v[i]);

        if (str_starts(path, dir) && path.n > dir.n + 1 && path.p[dir.n] == '/')
            return true;
    }
    return false;
}

void fluid_run(struct request *r)
{
    const struct shell_in *in = r->in;
    struct sandbox *s = fluid_find(r);
    struct run_job *j;

    if (!s)
        return;
    if (!key_is_allowed(r, in->private_key_path)) {
        fluid_error(r, 403,
                    "private_key_path must be below a directory of the setting fluid_key_dirs; "
                    "commands need no key: leave it out");
        return;
    }
    if (in->timeout_sec < 0 || in->timeout_sec > EXEC_TIMEOUT_MAX_MS / 1000) {
        fluid_error(r, 400, "timeout_sec must be from 0 to %lld", EXEC_TIMEOUT_MAX_MS / 1000);
        return;
    }
    j = run_new(r, s);
    set_line(j, in->command);
    set_env(j, &in->env);
    j->spec.user = arena_str(&j->a, in->user);
    if (in->timeout_sec > 0)
        j->spec.timeout_ms = in->timeout_sec * 1000;
    begin(j);
}

/* --- keys --- */

struct sshkey_in {
    struct str public_key, username;
};
static const struct fluid_field sshkey_fields[] = {
    {"public_key", FLUID_STR, offsetof(struct sshkey_in, public_key), true},
    {"username", FLUID_STR, offsetof(struct sshkey_in, username), true},
};
const struct fluid_form fluid_sshkey_form = {FLUID_FORM(sshkey_fields, struct sshkey_in)};

/* User and key are its arguments, never a part of the script. */
static const char add_key[] = "home=$(getent passwd \"$0\" | cut -d: -f6); "
                              "[ -n \"$home\" ] || { echo \"no user '$0'\" >&2; exit 1; }; "
                              "mkdir -p \"$home/.ssh\" && chmod 700 \"$home/.ssh\" && "
                              "grep -qxF -- \"$1\" \"$home/.ssh/authorized_keys\" 2>/dev/null || "
                              "printf '%s\\n' \"$1\" >> \"$home/.ssh/authorized_keys\" && "
                              "chmod 600 \"$home/.ssh/authorized_keys\" && "
                              "chown -R \"$0\" \"$home/.ssh\"";

static bool is_key(struct str text)
{
    static const char *const kinds[] = {"ssh-ed25519 ", "ssh-rsa ", "ecdsa-sha2-nistp256 ",
                                        "ecdsa-sha2-nistp384 ", "ecdsa-sha2-nistp521 "};

    for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
        if (str_starts(text, str_of(kinds[i])))
            return str_index(text, '\n') < 0 && str_index(text, '\r') < 0;
    return false;
}

void fluid_sshkey(struct request *r)
{
    const struct sshkey_in *in = r->in;
    struct sandbox *s = fluid_find(r);
    struct str *argv, key = in->public_key;
    struct run_job *j;

    if (!s)
        return;
    while (key.n > 0 && (key.p[key.n - 1] == '\n' || key.p[key.n - 1] == ' '))
        key.n--;
    if (!is_key(key)) {
        fluid_error(r, 400, "public_key must be one line of OpenSSH: ed25519, rsa or ecdsa");
        return;
    }
    j = run_new(r, s);
    j->silent = true;
    argv = arena_zalloc(&j->a, 5 * sizeof *argv);
    argv[0] = STR("/bin/sh");
    argv[1] = STR("-c");
    argv[2] = str_of(add_key);
    argv[3] = arena_str(&j->a, in->username);
    argv[4] = arena_str(&j->a, key);
    j->spec.argv = argv;
    j->spec.argc = 5;
    begin(j);
}
