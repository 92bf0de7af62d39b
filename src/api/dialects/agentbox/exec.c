/* exec: runs shell lines and pip for agentbox sessions. */
#include "api/dialects/agentbox/agentbox.h"
#include "api/idempotency.h"
#include "api/share/command.h"
#include "api/share/tracer.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "link/guest.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>

#define TIMEOUT_DEFAULT 30 /* seconds */
#define TIMED_OUT "Command timed out"
#define ARGUMENT_MAX 131071 /* execve(2): MAX_ARG_STRLEN, its NUL included */

/* The original's runtime works in /workspace. */
static void absolute(struct str workdir, struct buf *to)
{
    if (workdir.n > 0 && workdir.p[0] != '/')
        buf_add_c(to, "/workspace/");
    buf_add_str(to, workdir);
}

/* --- why a command did not start --- */

struct explain {
    char *workdir, *failure;
    agentbox_why told;
    void *arg;
};

static void failure_explained(struct explain *x, const char *text)
{
    x->told(x->arg, text);
    mem_free(x->workdir);
    mem_free(x->failure);
    mem_free(x);
}

static void directory_looked_up(struct guest_pipe *p, const struct guest_file_done *info,
                                const struct err *e)
{
    struct explain *x = guest_pipe_arg(p);
    AUTO(buf_done) struct buf text = {0};
    int sys = e->code != ERR_NONE ? e->sys : info->kind != DT_DIR ? ENOTDIR : 0;

    if (sys == 0 || e->code == ERR_CANCELLED || e->code == ERR_UNAVAILABLE) {
        failure_explained(x, x->failure);
        return;
    }
    agentbox_say_errno(sys, str_of(x->workdir), &text);
    failure_explained(x, buf_cstr(&text));
}

/* The original's runtime names the directory as Python does.  Whether the directory was the cause
 * is found out afterwards, so that commands that start pay nothing. */
void agentbox_explain(struct sandbox *s, struct str workdir, struct str failure, agentbox_why told,
                      void *arg)
{
    static const struct guest_pipe_ops ops = {.done = directory_looked_up};
    struct explain *x = xzalloc(sizeof *x);
    AUTO(buf_done) struct buf path = {0};
    struct guest_file_call c = {.op = GUEST_FILE_STAT};
    struct guest_pipe *p;
    struct guest *g;
    struct err e = {0};

    absolute(workdir, &path);
    c.path = buf_str(&path);
    *x = (struct explain){
        .workdir = str_dup(workdir), .failure = str_dup(failure), .told = told, .arg = arg};
    g = sandbox_guest(s, &e);
    if (!g || guest_file(g, &c, &ops, x, &p, &e) < 0)
        failure_explained(x, x->failure);
}

/* --- the spec of a line --- */

const char *agentbox_cannot_start(const struct agentbox_line *l)
{
    if (str_index(l->command, '\0') >= 0 || str_index(l->workdir, '\0') >= 0)
        return "embedded null byte";
    return l->command.n > ARGUMENT_MAX ? "[Errno 7] Argument list too long: '/bin/sh'" : NULL;
}

void agentbox_spec(const struct agentbox_line *l, struct arena *a, struct exec_spec *ret)
{
    AUTO(buf_done) struct buf cwd = {0};

    absolute(l->workdir, &cwd);
    *ret = (struct exec_spec){
        .shell = l->command,
        .cwd = arena_str(a, buf_str(&cwd)),
        .env = l->env,
        .env_count = l->env_count,
        .timeout_ms = i64_min(l->timeout_ms, AGENTBOX_TIMEOUT_MAX_MS),
        .want_stdin = l->stdin_bytes.n > 0,
    };
}

static void tell(struct request *r, const struct agentbox_exec_response *a)
{
    if (r->rpc)
        rpc_reply(r, a);
    else
        process_tell_exec(r, a);
}

static void answer(struct request *r, int32_t code, struct str out, struct str err, bool timed_out)
{
    const struct agentbox_exec_response a = {
        .exit_code = code, .stdout = out, .stderr = err, .timed_out = timed_out};

    tell(r, &a);
}

void agentbox_refuse(struct request *r, const char *why)
{
    answer(r, -1, STR(""), str_of(why), false);
}

/* --- running to the end --- */

struct run_job {
    struct waiter waiter;
    struct command *command;
    struct sandbox *s;
    char *workdir;
};

static void job_free(struct run_job *j)
{
    sandbox_unref(j->s);
    mem_free(j->workdir);
    mem_free(j);
}

static void asker_gone(struct waiter *w)
{
    struct run_job *j = CONTAINER_OF(w, struct run_job, waiter);

    if (!j->command)
        return; /* the explanation will follow */
    command_drop(j->command, true);
    job_free(j);
}

static void not_started(void *arg, const char *text)
{
    struct run_job *j = arg;
    struct request *r = waiter_end(&j->waiter);

    if (r)
        agentbox_refuse(r, text);
    job_free(j);
}

static int32_t wire_code(const struct exec_info *i)
{
    if (i->timed_out)
        return -1;
    return i->signal > 0 ? -i->signal : i->exit_code;
}

/* Output from before the deadline is kept; the reason comes last. */
static void add_reason(struct buf *err, const struct exec_info *i)
{
    const char *reason = i->timed_out ? TIMED_OUT
                         : i->state == EXEC_LOST
                             ? "the sandbox's init ended and took the command with it"
                         : i->cancelled ? "Command was cancelled"
                                        : NULL;

    if (!reason)
        return;
    if (buf_len(err) > 0 && buf_cstr(err)[buf_len(err) - 1] != '\n')
        buf_add_char(err, '\n');
    buf_add_c(err, reason);
}

static void reply(struct request *r, const struct exec_info *i, const struct collect *c)
{
    AUTO(buf_done) struct buf out = {0}, err = {0};
    struct agentbox_exec_response a = {
        .exit_code = i->state == EXEC_LOST ? -1 : wire_code(i),
        .timed_out = i->timed_out,
        .truncated = c->truncated,
    };

    (void)utf8_replace(&out, buf_str(&c->streams[0]), true);
    (void)utf8_replace(&err, buf_str(&c->streams[1]), true);
    add_reason(&err, i);
    a.stdout = buf_str(&out);
    a.stderr = buf_str(&err);
    tell(r, &a);
}

static void command_ended(void *arg, struct exec *x, const struct collect *c, const struct err *e)
{
    struct run_job *j = arg;
    struct exec_info i = {0};
    struct request *r;

    j->command = NULL;
    if (x)
        exec_info(x, &i);
    if (e->code != ERR_NONE || i.state == EXEC_FAILED) {
        agentbox_explain(j->s, str_of(j->workdir), e->code != ERR_NONE ? str_of(e->msg) : i.failure,
                         not_started, j);
        return;
    }
    r = waiter_end(&j->waiter);
    reply(r, &i, c);
    job_free(j);
}

void agentbox_run(struct request *r, struct sandbox *s, const struct agentbox_line *l)
{
    static const struct command_ops ops = {.done = command_ended};
    struct exec_input input = {.bytes = l->stdin_bytes, .eof = l->stdin_bytes.n > 0};
    const struct principal by = request_who(r);
    struct exec_spec spec;
    struct run_job *j;

    if (l->timeout_ms < 0) {
        answer(r, -1, STR(""), STR(TIMED_OUT), true);
        return;
    }
    if (agentbox_cannot_start(l)) {
        agentbox_refuse(r, agentbox_cannot_start(l));
        return;
    }
    j = xzalloc(sizeof *j);
    j->s = sandbox_ref(s);
    j->workdir = str_dup(l->workdir);
    j->waiter.gone = asker_gone;
    request_wait(r, &j->waiter);
    agentbox_spec(l, xchg_arena(r->x), &spec);
    tracer_spec(r, &spec);
    idem_of_exec(r, &spec);
    if (spec.again.n > 0)
        input = (struct exec_input){0}; /* it got that before */
    j->command = command_start(r->api, s, &spec, &input, &by, &ops, j);
}

void agentbox_exec(struct request *r, const void *in)
{
    const struct agentbox_exec_request *q = in;
    struct sandbox *s = agentbox_session(r, q->session_id);
    struct pair *env = arena_alloc(xchg_arena(r->x), size_max(q->env_count, 1) * sizeof *env);
    const struct agentbox_line l = {
        .command = q->command,
        .workdir = q->workdir.n > 0 ? q->workdir : STR("/workspace"),
        .stdin_bytes = q->stdin,
        .env = env,
        .env_count = q->env_count,
        .timeout_ms = (q->timeout ? (int64_t)q->timeout : TIMEOUT_DEFAULT) * 1000,
    };

    for (size_t i = 0; i < q->env_count; i++)
        env[i] = (struct pair){q->env[i].key, q->env[i].value};
    if (!s)
        agentbox_refuse(r, AGENTBOX_NO_SESSION);
    else if (q->command.n == 0)
        agentbox_refuse(r, "");
    else
        agentbox_run(r, s, &l);
}

/* --- pip --- */

static size_t count_while(struct str s, bool (*is)(char c))
{
    size_t n = 0;

    while (n < s.n && is(s.p[n]))
        n++;
    return n;
}

static bool is_alnum(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_name(char c)
{
    return is_alnum(c) || c == '.' || c == '_' || c == '-';
}

static bool is_extra(char c)
{
    return is_name(c) || c == ',';
}

static bool is_operator(char c)
{
    return c != '\0' && strchr("<>=!~", c);
}

static bool is_version(char c)
{
    return is_alnum(c) || is_operator(c) || c == '.' || c == '*' || c == ',';
}

/* name, name[extra,…], each with an optional version: nothing that a shell or pip could interpret
 * otherwise. */
static bool is_specifier(struct str s)
{
    if (s.n == 0 || !is_alnum(s.p[0]))
        return false;
    s = str_skip(s, count_while(s, is_name));
    if (s.n > 0 && s.p[0] == '[') {
        size_t n = count_while(str_skip(s, 1), is_extra);

        if (n == 0 || n + 1 >= s.n || s.p[n + 1] != ']')
            return false;
        s = str_skip(s, n + 2);
    }
    if (s.n == 0)
        return true;
    if (!is_operator(s.p[0]))
        return false;
    s = str_skip(s, count_while(s, is_operator));
    return s.n > 0 && count_while(s, is_version) == s.n;
}

void agentbox_pip_install(struct request *r, const void *in)
{
    const struct agentbox_pip_install_request *q = in;
    struct sandbox *s = agentbox_session(r, q->session_id);
    AUTO(buf_done) struct buf line = {0}, wrong = {0};

    if (!s) {
        agentbox_refuse(r, AGENTBOX_NO_SESSION);
        return;
    }
    if (!agentbox_may_pip(s, &wrong)) {
        agentbox_refuse(r, buf_cstr(&wrong));
        return;
    }
    buf_add_c(&line, "pip install --user");
    for (size_t i = 0; i < q->packages_count; i++) {
        if (!is_specifier(q->packages[i])) {
            buf_printf(&wrong, "Invalid package specifier: " STR_FMT, STR_ARG(q->packages[i]));
            agentbox_refuse(r, buf_cstr(&wrong));
            return;
        }
        buf_printf(&line, " '" STR_FMT "'", STR_ARG(q->packages[i]));
    }
    agentbox_run(r, s,
                 &(struct agentbox_line){.command = buf_str(&line),
                                         .workdir = STR("/workspace"),
                                         .timeout_ms = 120 * 1000});
}
