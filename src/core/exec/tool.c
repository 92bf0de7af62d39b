/* tool: runs a program in a throw-away sandbox, with files, input and output. */
#include "core/exec/tool.h"

#include "base/buf.h"
#include "base/log.h"
#include "base/mem.h"
#include "core/exec/exec.h"
#include "link/guest.h"

#define ARGS_MAX 64
#define FILES_MAX 16
#define LOG_BYTES (64 * 1024)
#define STREAM_BYTES (4 * 1024 * 1024) /* of output that is read as it comes */
#define LIVES_LONGER_MS 60000          /* longer than its program may run: holtd may be slow */

/* A cancel returns at once; the sandbox is destroyed at whatever step it is. */
struct tool {
    struct tool_events events; /* zeroed by cancel */
    struct arena a;            /* copy of the spec */
    struct exec_spec run;
    struct tool_file files[FILES_MAX];
    size_t file_count, file; /* the one being sent */
    struct sandbox *s;
    struct guest_pipe *upload;
    size_t uploaded, output_max;
    struct exec *x;
    struct exec_wait *wait;
    struct exec_reader *reader;
    struct buf out, err_out;
    struct tool_result result;
    struct err err;
    bool eof, ending, wants_room;
    bool over, read; /* its command has ended; its output was read to the end */
};

static const struct principal by_system = {.role = ROLE_ADMIN, .actor = "system"};

/* --- the end --- */

static void tool_free(struct tool *t)
{
    if (t->run.tx_hook) /* the command was never asked for */
        t->run.tx_hook->free(t->run.tx_hook_arg);
    t->x = exec_unref(t->x);
    t->s = sandbox_unref(t->s);
    buf_done(&t->out);
    buf_done(&t->err_out);
    arena_done(&t->a);
    mem_free(t);
}

static void sandbox_destroyed(void *arg, struct sandbox *s, const struct err *e)
{
    struct tool *t = arg;

    (void)s;
    if (e->code != ERR_NONE && e->code != ERR_NOT_FOUND)
        log_warn("the sandbox of a tool could not be destroyed", LOG_E(e));
    t->result.out = buf_str(&t->out);
    t->result.err = buf_str(&t->err_out);
    if (t->events.done)
        t->events.done(t->events.arg, &t->result, &t->err);
    tool_free(t);
}

static void stop_calls(struct tool *t)
{
    if (t->upload)
        guest_pipe_cancel(t->upload);
    if (t->wait)
        exec_wait_cancel(t->wait);
    exec_reader_end(t->reader);
    t->upload = NULL;
    t->wait = NULL;
    t->reader = NULL;
}

static void end(struct tool *t, const struct err *e)
{
    if (t->ending)
        return;
    t->ending = true;
    t->err = *e;
    stop_calls(t);
    if (t->s)
        sandbox_destroy(t->s, &by_system, sandbox_destroyed, t);
    else
        sandbox_destroyed(t, NULL, &(struct err){0});
}

/* --- output --- */

static int on_output(void *arg, enum exec_which stream, int64_t offset, int64_t time_us,
                     struct str bytes)
{
    struct tool *t = arg;
    struct buf *to = stream == EXEC_STDOUT ? &t->out : &t->err_out;

    (void)time_us;
    if (t->events.output)
        t->events.output(t->events.arg, offset, bytes);
    if (stream == EXEC_STDOUT && t->events.piped)
        return t->events.piped(t->events.arg, bytes);
    buf_add(to, bytes.p, size_min(bytes.n, t->output_max - size_min(buf_len(to), t->output_max)));
    return 0;
}

static int on_gap(void *arg, enum exec_which stream, int64_t from, int64_t to)
{
    (void)arg;
    (void)stream;
    (void)from;
    (void)to;
    return 0;
}

static void end_if_over(struct tool *t, const struct err *e)
{
    struct exec_info info;
    struct str failure = {0};

    if (!t->over || !t->read)
        return;
    exec_info(t->x, &info);
    if (info.state == EXEC_LOST)
        failure = info.failure.n > 0 ? info.failure : STR("its command was lost");
    else if (info.state == EXEC_FAILED)
        failure = info.failure.n > 0 ? info.failure : STR("its command could not be run");
    t->result = (struct tool_result){.exit_code = info.exit_code,
                                     .timed_out = info.timed_out,
                                     .oom = info.oom,
                                     .failure = arena_str(&t->a, failure)};
    end(t, e);
}

static void on_output_end(void *arg, const struct err *e)
{
    struct tool *t = arg;

    t->reader = NULL;
    t->read = true;
    end_if_over(t, e);
}

static const struct exec_reader_ops output_ops = {
    .bytes = on_output, .gap = on_gap, .end = on_output_end};

static void command_ended(void *arg, struct exec *exec, const struct err *e)
{
    struct tool *t = arg;

    t->wait = NULL;
    t->over = true;
    if (e->code != ERR_NONE)
        end(t, e);
    else if (t->events.output || t->events.piped) /* the reader follows it already */
        end_if_over(t, e);
    else
        t->reader = exec_read(exec, EXEC_BOTH, 0, 0, false, &output_ops, t);
}

static void follow_command(struct tool *t, struct exec *exec)
{
    t->x = exec_ref(exec);
    t->wait = exec_wait(exec, command_ended, t);
    if (t->events.output || t->events.piped)
        t->reader =
            exec_read(exec, t->events.piped ? EXEC_BOTH : EXEC_STDOUT, 0, 0, true, &output_ops, t);
}

/* --- the run --- */

static void on_room(void *arg)
{
    struct tool *t = arg;

    if (t->ending)
        return;
    if (t->eof)
        (void)exec_stdin(t->x, STR(""), true, on_room, t);
    else if (t->wants_room && t->events.room) {
        t->wants_room = false;
        t->events.room(t->events.arg);
    }
}

static void command_started(void *arg, struct exec *exec, const struct err *e)
{
    struct tool *t = arg;

    if (t->ending)
        return;
    if (e->code != ERR_NONE || !exec) {
        end(t, e);
        return;
    }
    follow_command(t, exec);
    on_room(t);
}

/* --- sending files --- */

static void next_file(struct tool *t);

static void upload_more(struct guest_pipe *p)
{
    struct tool *t = guest_pipe_arg(p);
    struct str content = t->files[t->file].content;

    t->uploaded += guest_pipe_write(p, str_skip(content, t->uploaded));
    if (t->uploaded == content.n)
        guest_pipe_eof(p);
}

static void input_uploaded(struct guest_pipe *p, const struct guest_file_done *info,
                           const struct err *e)
{
    struct tool *t = guest_pipe_arg(p);
    struct err why = *e;

    (void)info;
    t->upload = NULL;
    if (t->ending)
        return;
    if (e->code == ERR_NONE) {
        t->file++;
        next_file(t);
        return;
    }
    err_wrap(&why, "send '" STR_FMT "' into a tool's sandbox", STR_ARG(t->files[t->file].path));
    end(t, &why);
}

static void next_file(struct tool *t)
{
    static const struct guest_pipe_ops ops = {.room = upload_more, .done = input_uploaded};
    const struct tool_file *f = &t->files[t->file];
    struct err why = {0};
    struct guest *g;

    if (t->file == t->file_count) {
        struct exec_spec run = t->run;

        t->run.tx_hook = NULL; /* exec_start frees it */
        exec_start(t->s, &run, &by_system, command_started, t);
        return;
    }
    t->uploaded = 0;
    g = sandbox_guest(t->s, &why);
    if (g && guest_file(g,
                        &(struct guest_file_call){
                            .op = GUEST_FILE_WRITE, .path = f->path, .mode = (uint32_t)f->mode},
                        &ops, t, &t->upload, &why) == 0) {
        upload_more(t->upload);
        return;
    }
    end(t, &why);
}

static void sandbox_created(void *arg, struct sandbox *s, const struct err *e)
{
    struct tool *t = arg;
    struct err why = *e;

    if (s)
        t->s = sandbox_ref(s);
    if (t->ending) { /* cancelled meanwhile */
        if (s)
            sandbox_destroy(s, &by_system, sandbox_destroyed, t);
        else
            sandbox_destroyed(t, NULL, &(struct err){0});
        return;
    }
    if (e->code == ERR_NONE) {
        next_file(t);
        return;
    }
    err_wrap(&why, "make a sandbox for a tool");
    end(t, &why);
}

/* Layers are unpacked with the host's ids and files: a runtime with a kernel of its own does not
 * do that, and one that the operator prefers for sandboxes gains nothing here.  Empty: the
 * default. */
static struct str runtime_for_tools(const struct sandboxes *l)
{
    const struct driver_ops *d;

    for (size_t i = 0; (d = sandboxes_driver(l, i)); i++)
        if (d->caps & DRIVER_RUNS_TOOLS)
            return str_of(d->name);
    return (struct str){0};
}

/* --- interface --- */

static void keep_spec(struct tool *t, const struct tool_spec *s)
{
    struct str *argv = arena_zalloc(&t->a, s->argc * sizeof *argv);
    struct pair *env = arena_zalloc(&t->a, (s->env_count + 1) * sizeof *env);

    for (size_t i = 0; i < s->argc; i++)
        argv[i] = arena_str(&t->a, s->argv[i]);
    for (size_t i = 0; i < s->env_count; i++)
        env[i] = (struct pair){arena_str(&t->a, s->env[i].key), arena_str(&t->a, s->env[i].value)};
    for (size_t i = 0; i < s->file_count; i++) {
        t->files[i] = s->files[i];
        t->files[i].path = arena_str(&t->a, s->files[i].path);
    }
    t->file_count = s->file_count;
    t->run = (struct exec_spec){.argv = argv,
                                .argc = s->argc,
                                .env = env,
                                .env_count = s->env_count,
                                .cwd = STR("/"),
                                .want_stdin = true,
                                .kill_rest = true,
                                .timeout_ms = s->time_ms,
                                .merge = s->events.output != NULL,
                                .tx_hook = s->tx_hook,
                                .tx_hook_arg = s->tx_hook_arg,
                                .block_when_full = s->events.piped != NULL,
                                .output_bytes = s->events.piped    ? STREAM_BYTES
                                                : s->log_bytes > 0 ? s->log_bytes
                                                                   : LOG_BYTES};
}

struct tool *tool_start(struct sandboxes *l, const struct tool_spec *s)
{
    const struct pair label = {STR(TOOL_LABEL), str_of(s->name)};
    struct tool *t = xzalloc(sizeof *t);

    assert(s->argc > 0 && s->argc <= ARGS_MAX && s->file_count <= FILES_MAX);
    t->events = s->events;
    t->output_max = s->output_max;
    t->eof = !s->takes_input;
    keep_spec(t, s);
    sandbox_create(l,
                   &(struct sandbox_spec){.image = STR("host"),
                                          .runtime = runtime_for_tools(l),
                                          .traits = {.memory_upper = true,
                                                     .limits = s->limits,
                                                     .ttl_ms = s->time_ms + LIVES_LONGER_MS},
                                          .network = s->network,
                                          .labels = &label,
                                          .label_count = 1,
                                          .mounts = s->mounts,
                                          .mount_count = s->mount_count,
                                          .secrets = s->secrets,
                                          .secret_count = s->secret_count},
                   s->by ? s->by : &by_system, sandbox_created, t);
    return t;
}

size_t tool_write(struct tool *t, struct str bytes)
{
    size_t n = 0;

    if (t->x && !t->ending)
        n = exec_stdin(t->x, bytes, false, on_room, t);
    t->wants_room = n < bytes.n;
    return n;
}

void tool_eof(struct tool *t)
{
    t->eof = true;
    if (t->x && !t->ending)
        (void)exec_stdin(t->x, STR(""), true, on_room, t);
}

void tool_go_on(struct tool *t)
{
    if (t->reader && !t->ending)
        exec_reader_resume(t->reader);
}

static bool is_tool(const struct sandbox_info *i, const char *name)
{
    if (!str_eq_c(i->owner, principal_owner(&by_system)))
        return false;
    for (size_t k = 0; k < i->label_count; k++)
        if (str_eq_c(i->labels[k].key, TOOL_LABEL) && str_eq_c(i->labels[k].value, name))
            return true;
    return false;
}

void tools_sweep(struct sandboxes *l, const char *name, int64_t since_ms)
{
    struct sandbox *s, *next;
    struct sandbox_info i;

    for (s = sandbox_next(l, &by_system, STR("")); s; s = next) {
        sandbox_info(s, &i);
        next = sandbox_next(l, &by_system, str_of(i.id));
        if (is_tool(&i, name) && i.created_ms < since_ms && !i.destroying)
            sandbox_destroy(s, &by_system, NULL, NULL);
    }
}

void tool_cancel(struct tool *t)
{
    struct err e = {0};

    t->events = (struct tool_events){0};
    err_set(&e, ERR_CANCELLED, 0, "it was cancelled");
    if (t->s)
        end(t, &e);
    else
        t->ending = true; /* `created` continues from there */
}

/* --- found again --- */

void tool_leave(struct tool *t)
{
    assert(t->x); /* before its command runs there is nothing to find again */
    stop_calls(t);
    tool_free(t);
}

bool tool_runs(const struct tool *t)
{
    return t->x != NULL && !t->ending;
}

/* Anybody may give a sandbox a label. */
static bool is_run_of(const struct sandbox_info *i, const char *name)
{
    if (!str_eq_c(i->owner, principal_owner(&by_system)))
        return false;
    for (size_t k = 0; k < i->label_count; k++)
        if (str_eq_c(i->labels[k].key, TOOL_LABEL) && str_eq_c(i->labels[k].value, name))
            return !i->destroying;
    return false;
}

struct sandbox *tool_left(struct sandboxes *l, const char *name)
{
    struct sandbox_info i = {.id = ""};

    for (struct sandbox *s = sandbox_next(l, &principal_system, STR("")); s;
         s = sandbox_next(l, &principal_system, str_of(i.id))) {
        sandbox_info(s, &i);
        if (is_run_of(&i, name))
            return s;
    }
    return NULL;
}

struct tool *tool_resume(struct sandboxes *l, const char *name, size_t output_max,
                         const struct tool_events *events)
{
    struct sandbox *s = tool_left(l, name);
    struct err e = {0};
    struct exec *x = s ? exec_newest(s, &e) : NULL;
    struct tool *t;

    if (!x)
        return NULL;
    t = xzalloc(sizeof *t);
    t->events = *events;
    t->output_max = output_max;
    t->s = sandbox_ref(s);
    follow_command(t, x);
    return t;
}
