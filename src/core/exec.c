#include "core/sandbox_inside.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"

#include <signal.h>
#include <stdio.h>

#define LATE_MS 2000   /* no report of the end this long after a kill: the driver's turn */
#define SPILL_MS 250   /* how long small output may be in init's hands alone */
#define AGAIN_MS 1000  /* a log that cannot be written is tried again */
#define IDLE_MS 5000   /* an ended log's memory goes when nobody read it for so long */
#define BEGIN_MS 10000 /* for a start that waits for a connection */
#define STDIN_MAX (2 * GUEST_WINDOW_DOWN)

const struct sm_state exec_states[] = {
    [EXEC_STARTING] = {"starting", SM_TO(EXEC_RUNNING) | SM_TO(EXEC_EXITED) | SM_TO(EXEC_FAILED) |
                                       SM_TO(EXEC_LOST)},
    [EXEC_RUNNING] = {"running", SM_TO(EXEC_EXITED) | SM_TO(EXEC_FAILED) | SM_TO(EXEC_LOST)},
    [EXEC_EXITED] = {"exited", 0},
    [EXEC_FAILED] = {"failed", 0},
    [EXEC_LOST] = {"lost", 0},
};
_Static_assert(ARRAY_LEN(exec_states) == EXEC_STATE_COUNT, "a state without a row");

/* --- the object --- */

static void exec_moved(struct sm *m, int from)
{
    struct exec *x = CONTAINER_OF(m, struct exec, sm);

    if (m->state == EXEC_RUNNING) {
        if (x->started_ms == 0)
            x->started_ms = clock_wall_ms();
    } else if (from <= EXEC_RUNNING) {
        x->ended_ms = clock_wall_ms();
        if (x->duration_ms == 0 && x->started_ms > 0)
            x->duration_ms = i64_max(x->ended_ms - x->started_ms, 0);
        x->sandbox->execs_live--;
    }
    log_debug("exec", LOG_C("id", x->id), LOG_C("state", sm_name(m)),
              LOG_C("why", x->failure ? x->failure : ""));
}

struct exec *exec_new(struct sandbox *s, const char *id)
{
    struct exec *x = xzalloc(sizeof *x);
    AUTO(mem_free) char *path = xasprintf("%s/execs/%s/%s.log", s->all->state, s->id, id);

    x->refs = 1;
    x->sandbox = sandbox_ref(s);
    x->sm = (struct sm){.table = exec_states, .on_move = exec_moved, .state = EXEC_STARTING};
    x->exit_code = -1;
    (void)snprintf(x->id, sizeof x->id, "%s", id);
    list_init(&x->link);
    list_init(&x->unsafe);
    list_init(&x->readers);
    list_init(&x->waits);
    exec_log_init(&x->log, path, s->all->output_bytes);
    return x;
}

struct exec *exec_ref(struct exec *x)
{
    x->refs++;
    return x;
}

static void stop_timers(struct exec *x)
{
    timer_stop(&x->begin);
    timer_stop(&x->check);
    timer_stop(&x->deadline);
}

struct exec *exec_unref(struct exec *x)
{
    if (!x || --x->refs > 0)
        return NULL;
    assert(!x->ch && list_is_empty(&x->readers) && list_is_empty(&x->waits));
    stop_timers(x);
    timer_stop(&x->tell);
    list_unlink(&x->unsafe);
    exec_log_done(&x->log);
    buf_done(&x->in);
    arena_done(&x->start_mem);
    mem_free(x->argv);
    mem_free(x->cwd);
    mem_free(x->user);
    mem_free(x->failure);
    mem_free(x->idempotency);
    sandbox_unref(x->sandbox);
    mem_free(x);
    return NULL;
}

bool exec_is_live(const struct exec *x)
{
    return x->sm.state <= EXEC_RUNNING;
}

void exec_add(struct exec *x)
{
    struct sandbox *s = x->sandbox;

    list_push(&s->execs, &x->link);
    s->exec_count++;
    if (exec_is_live(x))
        s->execs_live++;
}

/* What is in the file, when it was last open in another life of holtd. */
int exec_warm(struct exec *x, struct err *e)
{
    if (!x->log_cold)
        return 0;
    if (exec_log_recover(&x->log, e) < 0)
        return -1;
    x->log_cold = false;
    return 0;
}

static void detach(struct exec *x)
{
    struct guest_exec *ch = TAKE(x->ch);

    if (ch)
        guest_exec_drop(ch);
}

void exec_forget(struct exec *x)
{
    struct err gone = {.code = ERR_GONE, .msg = "the sandbox is gone"};

    detach(x);
    stop_timers(x);
    list_unlink(&x->unsafe);
    list_unlink(&x->link);
    x->sandbox->exec_count--;
    if (x->sandbox->all->closed) /* it goes on without us, and who looks is told */
        gone = (struct err){.code = ERR_CANCELLED, .msg = "holtd is ending"};
    if (exec_is_live(x)) {
        x->sandbox->execs_live--;
        if (x->started)
            TAKE(x->started)(x->started_arg, NULL, &gone);
        readers_end(x, &gone);
        waits_end(x, &gone);
    } else if (x->sandbox->all->closed) {
        readers_end(x, &gone);
        waits_end(x, &gone);
    }
    exec_unref(x);
}

struct sandbox *exec_sandbox(const struct exec *x)
{
    return x->sandbox;
}

const char *exec_state_name(enum exec_state s)
{
    return exec_states[s].name;
}

struct exec *exec_find(struct sandbox *s, struct str id, struct err *e)
{
    LIST_EACH (&s->execs, node) {
        struct exec *x = LIST_ENTRY(node, struct exec, link);

        if (str_eq_c(id, x->id))
            return x;
    }
    err_set(e, ERR_NOT_FOUND, 0, "sandbox '%s' has no command '" STR_FMT "'", s->id,
            (int)size_min(id.n, 64), id.p ? id.p : "");
    err_object(e, "sandbox", s->id);
    err_hint(e, "holt ps %s lists them; only the newest %lld are kept", s->id,
             (long long)s->all->execs_max);
    return NULL;
}

struct exec *exec_next(struct sandbox *s, struct str after)
{
    LIST_EACH (&s->execs, node) {
        struct exec *x = LIST_ENTRY(node, struct exec, link);
        struct str id = str_of(x->id);
        int order = memcmp(id.p, after.p ? after.p : "", size_min(id.n, after.n));

        if (order > 0 || (order == 0 && id.n > after.n))
            return x;
    }
    return NULL;
}

static struct str text(const char *s)
{
    return str_of(s ? s : "");
}

void exec_info(const struct exec *x, struct exec_info *ret)
{
    int64_t now = clock_wall_ms();

    *ret = (struct exec_info){
        .id = x->id,
        .sandbox = x->sandbox->id,
        .state = (enum exec_state)x->sm.state,
        .argv = x->argv,
        .argc = x->argc,
        .cwd = text(x->cwd),
        .user = text(x->user),
        .failure = text(x->failure),
        .pty = x->flags & EXEC_PTY,
        .timed_out = x->flags & EXEC_TIMED_OUT,
        .cancelled = x->flags & EXEC_CANCELLED,
        .oom = x->flags & EXEC_OOM,
        .takes_input = exec_is_live(x) && !x->in_eof && (x->flags & (EXEC_STDIN | EXEC_PTY)) != 0,
        .exit_code = x->exit_code,
        .signal = x->signal,
        .created_ms = x->created_ms,
        .started_ms = x->started_ms,
        .ended_ms = x->ended_ms,
        .duration_ms =
            exec_is_live(x) && x->started_ms > 0 ? i64_max(now - x->started_ms, 0) : x->duration_ms,
        .timeout_ms = x->timeout_ms,
        .user_us = x->user_us,
        .system_us = x->system_us,
        .max_rss_kib = x->max_rss_kib,
        .out_from = x->log.from[LOG_OUT],
        .out_end = x->log.end[LOG_OUT],
        .err_from = x->log.from[LOG_ERR],
        .err_end = x->log.end[LOG_ERR],
        .pid = x->pid,
    };
}

/* --- its end --- */

static void tell_started(struct exec *x, const struct err *e)
{
    exec_cb started = TAKE(x->started);

    if (started)
        started(x->started_arg, e->code == ERR_NONE ? x : NULL, e);
}

static void end_saved(struct exec *x, const struct err *e)
{
    struct sandbox *s = x->sandbox;

    if (e->code != ERR_NONE) {
        x->unsaved = true;
        return;
    }
    x->unsaved = false;
    x->ended_saved = true;
    if (x->ch) {
        guest_exec_forget(TAKE(x->ch));
    } else if (s->guest_ready && (x->listed || x->sm.state != EXEC_LOST)) {
        const struct guest_exec_row row = {.id = str_of(x->id),
                                           .out_end = (uint64_t)x->log.end[LOG_OUT],
                                           .err_end = (uint64_t)x->log.end[LOG_ERR]};

        link_forget(s, &row);
    }
    if (x->flags & EXEC_ROW_OUTPUT)
        exec_log_unlink(&x->log);
    x->idle_since_ms = clock_mono_ms();
    tell_started(x, e);
    exec_wake(x);
    sandbox_exec_over(s);
}

static const char *end_event(const struct exec *x)
{
    if (x->sm.state == EXEC_LOST)
        return "exec.lost";
    if (x->sm.state == EXEC_FAILED)
        return "exec.failed";
    return x->flags & EXEC_TIMED_OUT   ? "exec.timed_out"
           : x->flags & EXEC_CANCELLED ? "exec.cancelled"
                                       : "exec.exited";
}

void exec_end(struct exec *x, enum exec_state to)
{
    bool small = false;
    struct err e = {0};

    if (!exec_is_live(x))
        return;
    stop_timers(x);
    list_unlink(&x->unsafe);
    arena_done(&x->start_mem);
    x->start = NULL;
    buf_done(&x->in);
    sm_move(&x->sm, to);
    if (exec_log_settle(&x->log, &small, &e) < 0)
        log_warn("an output log stays a file", LOG_C("exec", x->id), LOG_E(&e));
    else if (small)
        x->flags |= EXEC_ROW_OUTPUT;
    exec_save(x, end_event(x), NULL, end_saved);
}

void exec_lose(struct exec *x, const char *why)
{
    detach(x);
    text_set(&x->failure, str_of(why));
    exec_end(x, EXEC_LOST);
}

static void exec_fail(struct exec *x, const struct err *e)
{
    detach(x);
    text_set(&x->failure, str_of(e->msg));
    exec_end(x, EXEC_FAILED);
}

/* --- kill and deadlines --- */

static void kill_done(void *arg, const struct err *e)
{
    struct exec *x = arg;

    if (e->code != ERR_NONE)
        log_warn("the runtime could not kill", LOG_C("exec", x->id), LOG_E(e));
    exec_unref(x);
}

static void kill_late(struct timer *t)
{
    struct exec *x = CONTAINER_OF(t, struct exec, deadline);
    struct sandbox *s = x->sandbox;

    if (!exec_is_live(x))
        return;
    if (x->kills > 2) {
        exec_lose(x, "it was killed, and no end was reported");
        return;
    }
    if (x->kills > 0)
        s->driver->ops->kill(s->driver, s->id, x->kills == 1 ? DRIVER_WORK : DRIVER_ALL, kill_done,
                             exec_ref(x));
    x->kills++;
    timer_set(s->all->timers, &x->deadline, clock_mono_ms() + LATE_MS, kill_late);
}

void exec_kill(struct exec *x, uint32_t flag)
{
    if (!exec_is_live(x))
        return;
    x->flags |= flag;
    if (x->start && !x->ch) {
        exec_lose(x, "it was ended before it began");
        return;
    }
    if (x->ch)
        guest_exec_signal(x->ch, SIGKILL, GUEST_SCOPE_ALL);
    if (x->kills > 0)
        return;
    x->kills = 1;
    timer_set(x->sandbox->all->timers, &x->deadline, clock_mono_ms() + LATE_MS, kill_late);
}

static void deadline_due(struct timer *t)
{
    exec_kill(CONTAINER_OF(t, struct exec, deadline), EXEC_TIMED_OUT);
}

void exec_arm(struct exec *x)
{
    int64_t left;

    if (x->timeout_ms <= 0 || x->kills > 0 || !exec_is_live(x))
        return;
    left = x->started_ms + x->timeout_ms - clock_wall_ms();
    /* A clock that was set must not make a deadline longer than was asked for. */
    left = i64_max(0, i64_min(left, x->timeout_ms));
    timer_set(x->sandbox->all->timers, &x->deadline, i64_max(clock_mono_ms() + left, 1),
              deadline_due);
}

/* --- output --- */

static void ack_all(struct exec *x)
{
    if (!x->ch)
        return;
    guest_exec_ack(x->ch, GUEST_OUT, (uint64_t)x->log.end[LOG_OUT]);
    guest_exec_ack(x->ch, GUEST_ERR, (uint64_t)x->log.end[LOG_ERR]);
}

/* Of what its slowest reader has not had yet; without one, of all. */
static bool is_full(const struct exec *x)
{
    return x->log.hold && x->log.size - x->log.floor >= x->log.keep;
}

/* The log cannot be written (a full disk): init keeps what it has, and the command waits. */
static void log_failed(struct exec *x, const struct err *e)
{
    log_warn("a command's output cannot be written; it waits", LOG_C("exec", x->id), LOG_E(e));
    detach(x);
    timer_set(x->sandbox->all->timers, &x->check, clock_mono_ms() + AGAIN_MS, exec_attach_again);
}

static void spill(struct exec *x)
{
    struct err e = {0};

    x->sandbox->has_logs = true;
    if (exec_log_spill(&x->log, &e) < 0) {
        log_failed(x, &e);
        return;
    }
    if (!is_full(x))
        ack_all(x);
}

void exec_spill_due(struct timer *t)
{
    struct sandboxes *all = CONTAINER_OF(t, struct sandboxes, spill);
    int64_t now = clock_mono_ms();

    LIST_EACH (&all->unsafe, node) {
        struct exec *x = LIST_ENTRY(node, struct exec, unsafe);

        if (x->unsafe_since_ms + SPILL_MS > now) { /* in order of time */
            timer_set(all->timers, &all->spill, x->unsafe_since_ms + SPILL_MS, exec_spill_due);
            return;
        }
        list_unlink(&x->unsafe);
        spill(x);
    }
}

/* In memory only: init has the other copy, for a moment. */
static void wait_for_spill(struct exec *x)
{
    struct sandboxes *all = x->sandbox->all;

    if (!list_is_empty(&x->unsafe))
        return;
    x->unsafe_since_ms = clock_mono_ms();
    list_push(&all->unsafe, &x->unsafe);
    if (!timer_is_set(&all->spill))
        timer_set(all->timers, &all->spill, x->unsafe_since_ms + SPILL_MS, exec_spill_due);
}

static void on_output(struct guest_exec *ch, enum guest_stream gs, uint64_t offset,
                      struct str bytes)
{
    struct exec *x = guest_exec_arg(ch);
    enum log_stream s = gs == GUEST_OUT ? LOG_OUT : LOG_ERR;
    int64_t at = (int64_t)offset, end = x->log.end[s];
    struct err e = {0};

    if (!exec_is_live(x))
        return;
    if (at < end) /* it has been sent before */
        bytes = str_skip(bytes, size_min((size_t)(end - at), bytes.n));
    else if (at > end)
        exec_log_skip(&x->log, s, at);
    if (bytes.n > 0 && exec_log_append(&x->log, s, clock_wall_ms(), bytes, &e) < 0) {
        log_failed(x, &e);
        return;
    }
    if (!x->log.in_file) {
        wait_for_spill(x);
    } else {
        list_unlink(&x->unsafe);
        x->sandbox->has_logs = true;
        if (!is_full(x))
            ack_all(x);
    }
    if (!list_is_empty(&x->readers))
        exec_wake(x);
}

void exec_log_read_on(struct exec *x)
{
    if (!(x->flags & EXEC_BLOCKS) || !x->log.in_file)
        return;
    exec_log_retain(&x->log);
    if (exec_is_live(x) && !is_full(x))
        ack_all(x);
}

/* --- stdin --- */

static void push_stdin(struct exec *x)
{
    uint64_t acked;
    size_t skip, taken;
    struct str rest;

    if (!x->ch || !x->in_known)
        return;
    acked = guest_exec_stdin_at(x->ch);
    if (acked > x->in_at) {
        skip = size_min((size_t)(acked - x->in_at), buf_len(&x->in));
        buf_take(&x->in, skip);
        x->in_at += skip;
        buf_shrink(&x->in, 0);
    }
    rest = str_skip(buf_str(&x->in), (size_t)(x->in_sent - x->in_at));
    if (rest.n == 0 && (!x->in_eof || x->in_eof_sent))
        return;
    taken = guest_exec_stdin(x->ch, x->in_sent, rest, x->in_eof);
    x->in_sent += taken;
    x->in_eof_sent = x->in_eof && taken == rest.n;
}

static void on_stdin_room(struct guest_exec *ch)
{
    struct exec *x = guest_exec_arg(ch);
    void (*room)(void *arg);

    push_stdin(x);
    if (buf_len(&x->in) >= STDIN_MAX)
        return;
    room = TAKE(x->room);
    if (room)
        room(x->room_arg);
}

size_t exec_stdin(struct exec *x, struct str bytes, bool eof, void (*room)(void *arg), void *arg)
{
    size_t n;

    if (!exec_is_live(x) || x->in_eof || !(x->flags & (EXEC_STDIN | EXEC_PTY)))
        return bytes.n; /* nobody reads it any more: gone, as in a closed pipe */
    push_stdin(x);
    n = size_min(bytes.n, STDIN_MAX - buf_len(&x->in));
    buf_add(&x->in, bytes.p, n);
    x->in_eof = eof && n == bytes.n;
    push_stdin(x);
    sandbox_touch(x->sandbox);
    x->room = n < bytes.n ? room : NULL;
    x->room_arg = arg;
    return n;
}

/* --- the channel --- */

static void started_if_all(struct exec *x)
{
    if (x->started && x->start_saved && x->sm.state == EXEC_RUNNING)
        tell_started(x, &(struct err){0});
}

static void on_running(struct guest_exec *ch, const struct guest_exec_running *r)
{
    struct exec *x = guest_exec_arg(ch);
    uint64_t end;

    if (!exec_is_live(x))
        return;
    x->pid = r->pid;
    timer_stop(&x->begin);
    if (x->sm.state == EXEC_STARTING) {
        x->start = NULL;
        arena_done(&x->start_mem);
        sm_move(&x->sm, EXEC_RUNNING);
    }
    if (!x->in_known && buf_len(&x->in) == 0)
        x->in_at = r->in_at; /* after a restart: init knows */
    x->in_known = true;
    end = x->in_at + buf_len(&x->in);
    x->in_sent = r->in_at < x->in_at ? x->in_at : r->in_at > end ? end : r->in_at;
    x->in_eof_sent = false;
    if (x->kills > 0)
        guest_exec_signal(ch, SIGKILL, GUEST_SCOPE_ALL);
    else
        exec_arm(x);
    push_stdin(x);
    started_if_all(x);
}

static void on_exited(struct guest_exec *ch, const struct guest_exec_exit *how)
{
    struct exec *x = guest_exec_arg(ch);

    if (!exec_is_live(x))
        return;
    x->user_us = (int64_t)how->user_us;
    x->system_us = (int64_t)how->system_us;
    x->max_rss_kib = (int64_t)how->max_rss_kib;
    x->duration_ms = (int64_t)(how->wall_us / 1000);
    x->flags |= how->oom ? EXEC_OOM : 0;
    if (how->how == GUEST_FAILED) {
        text_set(&x->failure, str_of(how->err.msg));
        x->exit_code = how->err.code == ERR_NOT_FOUND ? 127 : 126;
        exec_end(x, EXEC_FAILED);
        return;
    }
    x->signal = how->how == GUEST_SIGNALLED ? how->code : 0;
    x->exit_code = x->signal ? 128 + x->signal : how->code;
    if (x->started_ms == 0)
        x->started_ms = clock_wall_ms();
    exec_end(x, EXEC_EXITED);
}

/* It was this channel alone, since the connection is there. */
static void gone_check(struct timer *t)
{
    struct exec *x = CONTAINER_OF(t, struct exec, check);

    if (!exec_is_live(x) || x->ch || !x->sandbox->guest_ready)
        return;
    if (x->start)
        exec_fail(x, &x->gone);
    else
        exec_lose(x, x->gone.msg);
}

static void on_gone(struct guest_exec *ch, const struct err *e)
{
    struct exec *x = guest_exec_arg(ch);

    x->ch = NULL;
    x->gone = *e;
    if (exec_is_live(x))
        timer_set(x->sandbox->all->timers, &x->check, TIMER_SOON, gone_check);
}

static const struct guest_exec_ops channel_ops = {on_running, on_output, on_stdin_room, on_exited,
                                                  on_gone};

static void send_start(struct exec *x)
{
    struct err e = {0};

    if (guest_exec_start(x->sandbox->guest, x->start, &channel_ops, x, &x->ch, &e) < 0)
        exec_fail(x, &e);
}

static void attach(struct exec *x)
{
    const struct guest_exec_attach a = {.id = str_of(x->id),
                                        .out_from = (uint64_t)x->log.end[LOG_OUT],
                                        .err_from = (uint64_t)x->log.end[LOG_ERR]};
    struct err e = {0};

    if (guest_exec_attach(x->sandbox->guest, &a, &channel_ops, x, &x->ch, &e) < 0) {
        log_warn("a command is attached again later", LOG_C("exec", x->id), LOG_E(&e));
        timer_set(x->sandbox->all->timers, &x->check, clock_mono_ms() + AGAIN_MS,
                  exec_attach_again);
    }
}

void exec_attach_again(struct timer *t)
{
    struct exec *x = CONTAINER_OF(t, struct exec, check);

    if (exec_is_live(x) && !x->ch && x->sandbox->guest_ready)
        attach(x);
}

void exec_link(struct exec *x, const struct guest_exec_row *row)
{
    if (x->ch)
        return;
    timer_stop(&x->check);
    if (x->start)
        send_start(x); /* init knows it already if it came through the last time */
    else if (row)
        attach(x);
    else
        exec_lose(x, "its init does not know it: it never began, or another init is there");
}

/* --- starting --- */

static void start_saved(struct exec *x, const struct err *e)
{
    if (e->code != ERR_NONE) {
        x->flags |= EXEC_CANCELLED;
        if (x->ch)
            guest_exec_signal(x->ch, SIGKILL, GUEST_SCOPE_ALL);
        tell_started(x, e);
        return;
    }
    x->start_saved = true;
    started_if_all(x);
}

static void begin_late(struct timer *t)
{
    struct exec *x = CONTAINER_OF(t, struct exec, begin);
    struct err e = {0};

    err_set(&e, ERR_UNAVAILABLE, 0, "the sandbox's init does not answer");
    exec_fail(x, &e);
}

void exec_begin(struct exec *x, const char *actor)
{
    struct sandbox *s = x->sandbox;

    exec_add(x);
    sandbox_touch(s);
    exec_save(x, "exec.started", actor, start_saved);
    timer_set(s->all->timers, &x->begin, clock_mono_ms() + BEGIN_MS, begin_late);
    if (s->guest_ready)
        send_start(x);
}

void exec_tick(struct exec *x)
{
    if (x->unsaved) {
        x->unsaved = false;
        exec_save(x, end_event(x), NULL, end_saved);
    }
    if (x->ended_saved && list_is_empty(&x->readers) &&
        clock_mono_ms() - x->idle_since_ms > IDLE_MS)
        exec_log_forget(&x->log);
}
