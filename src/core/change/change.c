/* change: runs holt-compare, reads its records, and adds the commands that ran in between. */
#include "core/change/change.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/starter.h"
#include "conf/conf.h"
#include "core/change/change_internal.h"
#include "core/exec/exec.h"
#include "core/exec/tool.h"

#define PROGRAM_MAX (16 * 1024 * 1024)
#define PROGRAM_INSIDE "/tmp/holt-compare"
#define REQUEST_INSIDE "/tmp/request"
#define MEMORY_BYTES (1LL << 30)
#define PIDS 16
#define FILES_MAX 65536
#define TIME_MS 600000
#define TEXT_MAX (256 * 1024)
#define COMMAND_MAX 65536

struct change_diff {
    struct list link;
    struct changes *l;
    struct change_events events;
    struct change_state before, after;
    struct tool *tool;  /* NULL: it has ended */
    struct buf request; /* borrowed by the tool */
    struct buf pending; /* part of a record, or records that nobody wanted yet */
    struct change_counts counts;
    struct err err;
    bool paused, said_end, commands, delivering;
    char command[ID_SIZE]; /* the last one that was told */
    int64_t from_ms, to_ms;
};

/* --- the registry --- */

int changes_open(const struct changes_config *c, struct changes **ret, struct err *e)
{
    struct changes *l = xzalloc(sizeof *l);

    l->c = *c;
    l->started_ms = clock_wall_ms();
    list_init(&l->running);
    list_init(&l->merges);
    list_init(&l->tars);
    if (merges_load(l, e) < 0) {
        changes_free(l);
        return err_wrap(e, "read the merges");
    }
    *ret = l;
    return 0;
}

static void diff_free(struct change_diff *d)
{
    list_unlink(&d->link);
    d->l->count--;
    change_state_done(d->l, &d->before);
    change_state_done(d->l, &d->after);
    buf_done(&d->request);
    buf_done(&d->pending);
    mem_free(d);
}

struct changes *changes_free(struct changes *l)
{
    if (!l)
        return NULL;
    merges_free(l);
    change_tars_free(l);
    while (!list_is_empty(&l->running))
        change_cancel(LIST_ENTRY(l->running.next, struct change_diff, link));
    buf_done(&l->program);
    mem_free(l);
    return NULL;
}

void changes_tick(struct changes *l)
{
    if (l->swept || !sandboxes_settled(l->c.sandboxes))
        return;
    l->swept = true;
    tools_sweep(l->c.sandboxes, CHANGE_TOOL, l->started_ms);
    merges_recover(l);
}

/* --- telling --- */

void change_count(struct change_counts *n, const struct change *c)
{
    if (c->kind != CHANGE_FILE)
        n->others++;
    else if (c->what == CHANGE_ADDED)
        n->files_added++;
    else if (c->what == CHANGE_REMOVED)
        n->files_removed++;
    else
        n->files_changed++;
}

static void tell(struct change_diff *d, const struct change *c)
{
    change_count(&d->counts, c);
    if (d->events.change && d->events.change(d->events.arg, c) != 0)
        d->paused = true;
}

static void finish(struct change_diff *d)
{
    struct change_events ev = d->events;
    struct change_counts n = d->counts;
    struct err e = d->err;

    diff_free(d);
    if (ev.done)
        ev.done(ev.arg, &n, &e);
}

/* What it says of its own failure is shown to people: unprintable characters become '?'. */
static void take_end(struct change_diff *d, const struct change *c)
{
    char code[32] = "", text[200];
    size_t n = size_min(c->old_value.n, sizeof text - 1);

    d->said_end = true;
    if (c->name.n == 0)
        return;
    memcpy(code, c->name.p, size_min(c->name.n, sizeof code - 1));
    for (size_t i = 0; i < n; i++)
        text[i] = (unsigned char)c->old_value.p[i] < ' ' || c->old_value.p[i] == 0x7f
                      ? '?'
                      : c->old_value.p[i];
    text[n] = '\0';
    (void)err_set(&d->err, err_code_from_name(code), 0, "%s", text);
}

/* The records that are whole. */
static void tell_records(struct change_diff *d)
{
    struct str in = buf_str(&d->pending);
    struct change c;
    int r = 1;

    while (r > 0 && !d->paused && d->err.code == ERR_NONE && !d->said_end) {
        r = change_get(&in, &c, &d->err);
        if (r > 0 && c.kind == CHANGE_END)
            take_end(d, &c);
        else if (r > 0 && c.kind == CHANGE_COMMAND)
            (void)err_set(&d->err, ERR_INTERNAL, 0, "holt-compare sent a wrong record");
        else if (r > 0)
            tell(d, &c);
    }
    buf_take(&d->pending, buf_len(&d->pending) - in.n);
}

/* --- commands --- */

static void put_command(const struct exec_info *i, struct buf *to)
{
    for (size_t k = 0; k < i->argc && buf_len(to) < COMMAND_MAX; k++) {
        if (k > 0)
            buf_add_char(to, ' ');
        buf_add(to, i->argv[k].p, size_min(i->argv[k].n, COMMAND_MAX));
    }
}

static void tell_command(struct change_diff *d, const struct exec_info *i)
{
    AUTO(buf_done) struct buf text = {0};
    char status[16] = "";

    put_command(i, &text);
    if (i->exit_code >= 0)
        (void)snprintf(status, sizeof status, "%d", i->exit_code);
    tell(d, &(struct change){.kind = CHANGE_COMMAND,
                             .name = buf_str(&text),
                             .old_value = str_of(status),
                             .size = (uint64_t)i64_max(i->created_ms, 0)});
}

/* Those that began in (from, to]; ids are in the order of time. */
static void tell_commands(struct change_diff *d)
{
    struct err none = {0};
    struct sandbox *s =
        sandbox_find(d->l->c.sandboxes, &principal_system, str_of(d->after.sandbox), &none);
    struct exec_info i;
    struct exec *x;

    while (s && !d->paused && (x = exec_next(s, str_of(d->command)))) {
        exec_info(x, &i);
        (void)snprintf(d->command, sizeof d->command, "%s", i.id);
        if (i.created_ms > d->from_ms && (d->to_ms == 0 || i.created_ms <= d->to_ms))
            tell_command(d, &i);
    }
    if (!d->paused)
        d->commands = false;
}

/* --- the flow --- */

/* May free it. */
static void go_on(struct change_diff *d)
{
    d->delivering = true;
    tell_records(d);
    if (!d->tool && !d->paused && d->err.code == ERR_NONE && !d->said_end)
        (void)err_set(&d->err, ERR_INTERNAL, 0, "the records of holt-compare are cut off");
    if (!d->tool && !d->paused && d->err.code == ERR_NONE && d->commands)
        tell_commands(d);
    d->delivering = false;
    if (!d->tool && (!d->paused || d->err.code != ERR_NONE))
        finish(d);
}

static int on_output(void *arg, struct str bytes)
{
    struct change_diff *d = arg;

    if (d->err.code != ERR_NONE || d->said_end)
        return 0; /* what follows is of no interest */
    buf_add_str(&d->pending, bytes);
    d->delivering = true;
    tell_records(d);
    d->delivering = false;
    return d->paused;
}

static void on_done(void *arg, const struct tool_result *r, const struct err *e)
{
    struct change_diff *d = arg;

    d->tool = NULL;
    if (d->err.code != ERR_NONE || d->said_end) {
        go_on(d);
        return;
    }
    if (e->code != ERR_NONE)
        d->err = *e;
    else if (r->timed_out)
        (void)err_set(&d->err, ERR_TIMEOUT, 0, "the comparison took too long");
    else if (r->oom)
        (void)err_set(&d->err, ERR_TOO_LARGE, 0, "the comparison needs too much memory");
    else if (buf_len(&d->pending) == 0 || r->exit_code > 1)
        (void)err_set(&d->err, ERR_INTERNAL, 0, "holt-compare exited with status %d", r->exit_code);
    if (d->err.code != ERR_NONE)
        err_wrap(&d->err, "compare");
    go_on(d);
}

void change_resume(struct change_diff *d)
{
    assert(!d->delivering);
    if (!d->paused)
        return;
    d->paused = false;
    if (!d->tool) {
        go_on(d);
        return;
    }
    d->delivering = true;
    tell_records(d);
    d->delivering = false;
    if (!d->paused)
        tool_go_on(d->tool);
}

void change_cancel(struct change_diff *d)
{
    struct change_events ev = d->events;

    if (d->tool)
        tool_cancel(d->tool);
    diff_free(d);
    if (ev.cancelled)
        ev.cancelled(ev.arg);
}

/* --- start --- */

static int read_program(struct changes *l, struct err *e)
{
    int r;

    if (buf_len(&l->program) > 0)
        return 0;
    r = starter_read(l->c.program, PROGRAM_MAX, &l->program);
    if (r == 0)
        return 0;
    err_set(e, ERR_UNSUPPORTED, -r, "read '%s'", l->c.program);
    return err_hint(e, "install all of holt: holt-compare is part of it");
}

static int check_room(const struct changes *l, struct err *e)
{
    const struct driver_ops *d;
    bool can = false;

    for (size_t i = 0; (d = sandboxes_driver(l->c.sandboxes, i)); i++)
        can = can || d->caps & DRIVER_RUNS_TOOLS;
    if (!can) {
        err_set(e, ERR_UNSUPPORTED, 0, "files are compared in a native sandbox");
        return err_hint(e, "holt doctor says what this host lacks for the runtime 'native'");
    }
    if (l->count < *l->c.jobs_max)
        return 0;
    err_set(e, ERR_LIMIT, 0, "%lld comparisons are running", (long long)l->count);
    return err_limit(e, "diffs_max", *l->c.jobs_max, "try again when one has ended");
}

void change_put_path(struct buf *to, const char *key, struct str path)
{
    /* as inside: "/etc/" is "etc", and "/" everything */
    while (path.n > 0 && path.p[0] == '/')
        path = str_skip(path, 1);
    while (path.n > 0 && path.p[path.n - 1] == '/')
        path.n--;
    buf_printf(to, "%s=" STR_FMT, key, STR_ARG(path));
    buf_add_char(to, '\0');
}

/* A skipped path is a pattern; a rule's is not. */
static void put_denied(void *arg, struct str path)
{
    struct buf *to = arg;
    AUTO(buf_done) struct buf plain = {0};

    for (size_t i = 0; i < path.n; i++) {
        if (strchr("*?[\\", path.p[i]))
            buf_add_char(&plain, '\\');
        buf_add_char(&plain, path.p[i]);
    }
    change_put_path(to, "skip", buf_str(&plain));
}

/* What an agent may not read inside, it does not read here. */
static int put_rules(const struct changes *l, const struct change_spec *s,
                     const struct change_state *state, struct buf *to, struct err *e)
{
    struct err none = {0};
    const struct sandbox *of = state->sandbox[0] ? sandbox_find(l->c.sandboxes, &principal_system,
                                                                str_of(state->sandbox), &none)
                                                 : NULL;

    return sandbox_denied(l->c.sandboxes, of, s->by, put_denied, to, e);
}

static int put_request(const struct changes *l, const struct change_spec *s, struct buf *to,
                       struct err *e)
{
    for (size_t i = 0; i < s->path_count; i++) {
        if (s->paths[i].n == 0 || s->paths[i].p[0] != '/' ||
            memchr(s->paths[i].p, '\0', s->paths[i].n))
            return err_set(e, ERR_INVALID, 0, "'" STR_FMT "' is not an absolute path",
                           (int)size_min(s->paths[i].n, 100), s->paths[i].p);
        change_put_path(to, "path", s->paths[i]);
    }
    for (size_t i = 0; !s->all && i < l->c.ignore->n; i++)
        change_put_path(to, "skip", str_of(l->c.ignore->v[i]));
    buf_printf(to, "text_max=%zu", s->no_text ? 0 : s->text_max ? s->text_max : TEXT_MAX);
    buf_add_char(to, '\0');
    buf_printf(to, "content_max=%zu", size_min(s->content_max, CHANGE_CONTENT_MAX));
    buf_add_char(to, '\0');
    return 0;
}

struct tool *change_tool(struct changes *l, const struct change_mounts *m, struct str request,
                         int64_t time_ms, const struct tool_events *ev)
{
    const struct tool_file files[] = {
        {STR(PROGRAM_INSIDE), buf_str(&l->program), 0755},
        {STR(REQUEST_INSIDE), request, 0600},
    };

    return tool_start(
        l->c.sandboxes,
        &(struct tool_spec){
            .name = CHANGE_TOOL,
            .argv = (const struct str[]){STR(PROGRAM_INSIDE), STR(REQUEST_INSIDE)},
            .argc = 2,
            .files = files,
            .file_count = ARRAY_LEN(files),
            .mounts = m->v,
            .mount_count = m->n,
            .network = STR("none"),
            .limits = {.memory_bytes = MEMORY_BYTES, .pids = PIDS, .nofile = FILES_MAX},
            .time_ms = time_ms > 0 ? time_ms : TIME_MS,
            .output_max = 4096,
            .events = *ev,
        });
}

struct change_diff *change_run(struct changes *l, struct change_mounts *m, int64_t time_ms,
                               const struct change_events *ev, struct err *e)
{
    struct change_diff *d;

    if (change_check(l, e) < 0)
        return NULL;
    d = xzalloc(sizeof *d);
    d->l = l;
    d->events = *ev;
    list_push(&l->running, &d->link);
    l->count++;
    d->request = m->request;
    d->tool = change_tool(l, m, buf_str(&d->request), time_ms,
                          &(struct tool_events){.piped = on_output, .done = on_done, .arg = d});
    return d;
}

int change_prepare(struct changes *l, const struct change_spec *s, struct change_state *before,
                   struct change_state *after, struct change_mounts *m, struct err *e)
{
    if (change_state_find(l, s, s->to, false, after, e) < 0 ||
        change_state_find(l, s, s->from.n > 0 ? s->from : s->to, s->from.n == 0, before, e) < 0 ||
        change_mounts_make(before, after, m, e) < 0 ||
        put_rules(l, s, before, &m->request, e) < 0 || put_rules(l, s, after, &m->request, e) < 0)
        return -1;
    return put_request(l, s, &m->request, e);
}

int change_check(struct changes *l, struct err *e)
{
    return check_room(l, e) < 0 ? -1 : read_program(l, e);
}

struct change_diff *change_diff(struct changes *l, const struct change_spec *s,
                                const struct change_events *ev, struct err *e)
{
    struct change_state before = {0}, after = {0};
    struct change_mounts m = {0};
    struct change_diff *d = NULL;

    if (change_prepare(l, s, &before, &after, &m, e) == 0)
        d = change_run(l, &m, s->time_ms, ev, e);
    if (!d) {
        buf_done(&m.request);
        change_state_done(l, &before);
        change_state_done(l, &after);
        return NULL;
    }
    d->before = before;
    d->after = after;
    d->from_ms = before.at_ms;
    d->to_ms = after.at_ms;
    d->commands = !s->no_commands && after.sandbox[0];
    return d;
}
