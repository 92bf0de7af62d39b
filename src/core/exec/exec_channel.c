/* exec_channel: a command's channel to init: output, input, start, exit. */
#include "core/exec/exec_internal.h"
#include "core/exec/output_share.h"

#include "base/clock.h"
#include "base/enc.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/point.h"

#include <signal.h>

#define SPILL_MS 250  /* how long small output may be kept only by init */
#define AGAIN_MS 1000 /* retry interval for a log that cannot be written */
#define OFFSET_MAX (1ULL << 60)
#define STDIN_MAX (2 * GUEST_WINDOW_DOWN)

/* --- output --- */

static void ack_all(struct exec *x)
{
    if (!x->ch)
        return;
    point_reached("output written");
    guest_exec_ack(x->ch, GUEST_OUT, (uint64_t)x->log.end[LOG_OUT]);
    guest_exec_ack(x->ch, GUEST_ERR, (uint64_t)x->log.end[LOG_ERR]);
}

/* Counts output its slowest reader has not read; without readers, all of it.  A killed command
 * writes no more: the rest that init holds is small, and its end comes after it. */
static bool is_full(const struct exec *x)
{
    return x->log.hold && x->kills == 0 && x->log.size - x->log.floor >= x->log.keep;
}

/* The log cannot be written (a full disk): init keeps its output, and the command waits. */
static void log_failed(struct exec *x, const struct err *e)
{
    log_warn("a command's output cannot be written; the command waits", LOG_C("exec", x->id),
             LOG_E(e));
    x->no_room = true;
    exec_detach(x);
    timer_set(x->set->all->timers, &x->check, clock_mono_ms() + AGAIN_MS, exec_attach_again);
}

int exec_spill(struct exec *x)
{
    struct err e = {0};

    list_unlink(&x->unsafe);
    x->set->has_logs = true;
    if (space_ask(x->set->all->space, buf_len(&x->log.mem), &e) < 0 ||
        exec_log_spill(&x->log, &e) < 0) {
        log_failed(x, &e);
        return -1;
    }
    output_share_count(x);
    if (!is_full(x))
        ack_all(x);
    x->no_room = false;
    return 0;
}

static void spill_due(struct timer *t)
{
    struct execs *all = CONTAINER_OF(t, struct execs, spill);
    int64_t now = clock_mono_ms();

    LIST_EACH (&all->unsafe, node) {
        struct exec *x = LIST_ENTRY(node, struct exec, unsafe);

        if (x->unsafe_since_ms + SPILL_MS > now) { /* ordered by time */
            timer_set(all->timers, &all->spill, x->unsafe_since_ms + SPILL_MS, spill_due);
            return;
        }
        (void)!exec_spill(x);
    }
}

/* In memory only: init has the other copy, for a moment. */
static void wait_for_spill(struct exec *x)
{
    struct execs *all = x->set->all;

    if (!list_is_empty(&x->unsafe))
        return;
    x->unsafe_since_ms = clock_mono_ms();
    list_push(&all->unsafe, &x->unsafe);
    if (!timer_is_set(&all->spill))
        timer_set(all->timers, &all->spill, x->unsafe_since_ms + SPILL_MS, spill_due);
}

/* Output that stays in memory, and ends in the row, needs no disk space. */
static int append(struct exec *x, enum log_stream s, struct str bytes, struct log_cut *ret,
                  struct err *e)
{
    size_t in_mem = buf_len(&x->log.mem) + bytes.n + LOG_HEAD;
    bool to_file = x->log.in_file || in_mem > LOG_SMALL;
    int64_t moment = execs_moment(x->set->all);

    *ret = exec_log_cut(&x->log, s, moment, bytes);
    if (to_file && space_ask(x->set->all->space, bytes.n, e) < 0)
        return -1;
    if (exec_log_append(&x->log, s, &moment, bytes, e) < 0)
        return -1;
    execs_moment_was(x->set->all, moment);
    return 0;
}

static void on_output(struct guest_exec *ch, enum guest_stream gs, uint64_t offset,
                      struct str bytes)
{
    struct exec *x = guest_exec_arg(ch);
    enum log_stream s = gs == GUEST_OUT ? LOG_OUT : LOG_ERR;
    int64_t at = (int64_t)offset, end = x->log.end[s];
    struct log_cut added = {0};
    struct err e = {0};

    if (!exec_is_live(x))
        return;
    if (offset > OFFSET_MAX) {
        exec_lose(x, "its init reports more output than is possible");
        return;
    }
    if (at < end) /* a repetition */
        bytes = str_skip(bytes, size_min((size_t)(end - at), bytes.n));
    else if (at > end)
        exec_log_skip(&x->log, s, at);
    if (bytes.n > 0 && append(x, s, bytes, &added, &e) < 0) {
        log_failed(x, &e);
        return;
    }
    x->no_room = false;
    if (!x->log.in_file) {
        wait_for_spill(x);
    } else {
        list_unlink(&x->unsafe);
        x->set->has_logs = true;
        output_share_count(x);
    }
    (void)exec_ref(x); /* a reader may end anything */
    if (bytes.n > 0)
        readers_offer(x, &added);
    if (x->log.in_file && exec_is_live(x) && !is_full(x))
        ack_all(x);
    journals_wake(x->set);
    exec_unref(x);
}

void exec_log_read_on(struct exec *x)
{
    if (!(x->flags & EXEC_BLOCKS) || !x->log.in_file)
        return;
    exec_log_retain(&x->log);
    output_share_count(x);
    if (exec_is_live(x) && !is_full(x))
        ack_all(x);
}

void exec_let_go(struct exec *x)
{
    x->log.hold = false;
    exec_log_read_on(x);
    x->flags &= ~(uint32_t)EXEC_BLOCKS;
}

/* --- stdin --- */

static void push_stdin(struct exec *x)
{
    uint64_t acked;
    size_t skip, taken;
    struct str rest;

    if (!x->ch || !x->in_known || !exec_is_live(x)) /* acks may come after the end */
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
        return bytes.n; /* the command has closed it: drop the input, as with a closed pipe */
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

void exec_started_if_all(struct exec *x)
{
    if (x->started && x->row == ROW_SAVED && x->sm.state == EXEC_RUNNING)
        exec_tell_started(x, &(struct err){0});
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
        x->in_at = r->in_at; /* after a restart: init knows it */
    x->in_known = true;
    end = x->in_at + buf_len(&x->in);
    x->in_sent = r->in_at < x->in_at ? x->in_at : r->in_at > end ? end : r->in_at;
    x->in_eof_sent = false;
    if (x->kills > 0)
        guest_exec_signal(ch, SIGKILL, GUEST_SCOPE_ALL);
    else
        exec_arm(x);
    push_stdin(x);
    exec_started_if_all(x);
}

/* The statuses of a shell (POSIX, exit status for commands): 127 and 126 for the program itself;
 * 125, as env(1) and others use it, if something else was wrong. */
static int status_of_failure(enum err_code code)
{
    return code == ERR_NOT_FOUND ? 127 : code == ERR_FORBIDDEN ? 126 : 125;
}

struct ending { /* the end as reported by init */
    struct exec *x;
    int code, signal;
};

static void end_as_told(const struct ending *end)
{
    struct exec *x = end->x;

    x->exit_code = end->code;
    x->signal = end->signal;
    if (x->started_ms == 0)
        x->started_ms = clock_wall_ms();
    exec_end(x, EXEC_EXITED);
}

/* Where init cannot see it (no memory controller for its groups), the runtime reports it: a kill
 * that nobody here requested, after an OOM kill since its start. */
static bool was_oom(const struct ending *end)
{
    const struct exec *x = end->x;

    return end->code == 128 + SIGKILL && x->kills == 0 &&
           sandbox_oom_ms(x->sandbox) >= x->created_us / 1000;
}

static void ooms_told(void *arg, const struct err *e)
{
    AUTO(mem_free) struct ending *end = arg;
    struct exec *x = end->x;

    (void)e; /* then there is no better information */
    if (exec_is_live(x) && !execs_are_closed(x->set->all)) {
        x->flags |= was_oom(end) ? EXEC_OOM : 0;
        end_as_told(end);
    }
    exec_unref(x);
}

/* The runtime's report of an OOM kill takes another way than init's, and may arrive later: waits
 * for it.  init keeps the end until we have stored it: after a crash it is reported again. */
static bool oom_may_come(const struct ending *end)
{
    struct ending *later;

    if (end->code != 128 + SIGKILL || end->x->kills > 0)
        return false;
    later = xmemdup(end, sizeof *end);
    (void)exec_ref(end->x);
    if (sandbox_ooms(end->x->sandbox, ooms_told, later))
        return true;
    exec_unref(end->x);
    mem_free(later);
    return false;
}

static void on_exited(struct guest_exec *ch, const struct guest_exec_exit *how)
{
    struct exec *x = guest_exec_arg(ch);
    struct ending end = {x, how->code, 0};

    if (!exec_is_live(x))
        return;
    x->user_us = (int64_t)how->user_us;
    x->system_us = (int64_t)how->system_us;
    x->max_rss_kib = (int64_t)how->max_rss_kib;
    x->duration_ms = (int64_t)(how->wall_us / 1000);
    if (how->how == GUEST_FAILED) {
        text_set(&x->failure, str_of(how->err.msg));
        x->exit_code = status_of_failure(how->err.code);
        exec_end(x, EXEC_FAILED);
        return;
    }
    if (how->how == GUEST_SIGNALLED)
        end = (struct ending){x, 128 + how->code, how->code};
    else
        x->flags &= ~(uint32_t)EXEC_TIMED_OUT; /* it ended by itself before the kill */
    x->flags |= how->oom || was_oom(&end) ? EXEC_OOM : 0;
    if (!(x->flags & EXEC_OOM) && oom_may_come(&end))
        timer_stop(&x->deadline);
    else
        end_as_told(&end);
}

/* Only this channel was closed, since the connection still exists. */
static void gone_check(struct timer *t)
{
    struct exec *x = CONTAINER_OF(t, struct exec, check);

    if (!exec_is_live(x) || x->ch || !sandbox_link(x->sandbox))
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
        timer_set(x->set->all->timers, &x->check, TIMER_SOON, gone_check);
}

static const struct guest_exec_ops channel_ops = {on_running, on_output, on_stdin_room, on_exited,
                                                  on_gone};

bool exec_waits_for_row(const struct exec *x)
{
    return x->row == ROW_FIRST;
}

void exec_send_start(struct exec *x)
{
    struct err e = {0};

    if (guest_exec_start(sandbox_link(x->sandbox), x->start, &channel_ops, x, &x->ch, &e) < 0)
        exec_fail(x, &e);
}

static void attach(struct exec *x)
{
    const struct guest_exec_attach a = {.id = str_of(x->id),
                                        .out_from = (uint64_t)x->log.end[LOG_OUT],
                                        .err_from = (uint64_t)x->log.end[LOG_ERR]};
    struct err e = {0};

    if (guest_exec_attach(sandbox_link(x->sandbox), &a, &channel_ops, x, &x->ch, &e) < 0) {
        log_warn("attaching to a command failed; it is retried", LOG_C("exec", x->id), LOG_E(&e));
        timer_set(x->set->all->timers, &x->check, clock_mono_ms() + AGAIN_MS, exec_attach_again);
        return;
    }
    if (x->kills > 0) /* there may have been no channel to send the kill */
        guest_exec_signal(x->ch, SIGKILL, GUEST_SCOPE_ALL);
}

void exec_attach_again(struct timer *t)
{
    struct exec *x = CONTAINER_OF(t, struct exec, check);

    if (exec_is_live(x) && !x->ch && sandbox_link(x->sandbox))
        attach(x);
}

/* Of a row whose command init does not know: whether that init was never asked to start it. Another
 * one may have been, and the command may have run there: it must not run again under its key. */
static bool never_ran(const struct exec *x)
{
    const uint8_t *epoch = sandbox_epoch(x->sandbox);
    uint8_t of_row[16];

    return x->pid == 0 && x->log.size == 0 && epoch &&
           dec_hex(str_of(x->epoch), of_row, sizeof of_row) == 0 &&
           memcmp(epoch, of_row, sizeof of_row) == 0;
}

void exec_link(struct exec *x, const struct guest_exec_row *row)
{
    if (x->ch)
        return;
    timer_stop(&x->check);
    if (x->start) {
        if (!exec_waits_for_row(x))
            exec_send_start(x); /* init knows it already if the first one arrived */
    } else if (row) {
        attach(x);
    } else if (never_ran(x)) {
        exec_unmake(x); /* holtd died before init was told about it: no client got a reply */
    } else {
        exec_lose(x, "its init does not know the command: the sandbox has another init");
    }
}
