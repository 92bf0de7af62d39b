/* sandbox: creates, claims, ends and undoes sandboxes. */
#include "spawn/sandbox.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/point.h"
#include "spawn/claim.h"
#include "spawn/disk.h"
#include "spawn/own.h"
#include "spawn/server.h"
#include "spawn/snapshot.h"
#include "spawn/spare.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* a busy object is busy for some milliseconds; later retries are less frequent */
#define UNDO_QUICK_MS 50
#define UNDO_SLOW_MS 500
#define UNDO_LATE_MS 10000 /* then the waiting client gets an error; retries continue */

static struct list sandboxes = {&sandboxes, &sandboxes};
static struct map by_id;    /* the same */
static size_t undo_waiting; /* how many of them wait because an undo was busy */

static void on_told(struct watch *w, uint32_t events);
static void on_built(struct watch *w, uint32_t events);
static void on_ended(struct watch *w, uint32_t events);

static bool is_nobodys(const struct sandbox *s)
{
    return s->spare == SPARE_MAKING || s->spare == SPARE_READY;
}

struct sandbox *sandbox_find(struct str id)
{
    struct sandbox *s = map_get(&by_id, id);

    return s && !is_nobodys(s) ? s : NULL;
}

struct sandbox *sandbox_of_group(const char *group)
{
    LIST_EACH (&sandboxes, node) {
        struct sandbox *s = LIST_ENTRY(node, struct sandbox, node);

        if (strcmp(s->group, group) == 0)
            return s;
    }
    return NULL;
}

bool sandbox_any_spare(void)
{
    LIST_EACH (&sandboxes, node)
        if (is_nobodys(LIST_ENTRY(node, struct sandbox, node)))
            return true;
    return false;
}

bool sandbox_any_alive(void)
{
    LIST_EACH (&sandboxes, node) {
        const struct sandbox *s = LIST_ENTRY(node, struct sandbox, node);

        if (!is_nobodys(s) && (s->state != SPAWN_STOPPED || s->dying))
            return true;
    }
    return false;
}

void sandbox_rename(struct sandbox *s, struct str id)
{
    (void)map_remove(&by_id, str_of(s->id));
    (void)snprintf(s->id, sizeof s->id, STR_FMT, STR_ARG(id));
    (void)map_set(&by_id, str_of(s->id), s);
}

struct sandbox *sandbox_after(struct str id)
{
    char after[SPAWN_ID_MAX + 1];
    struct sandbox *best = NULL;

    (void)snprintf(after, sizeof after, STR_FMT, STR_ARG(id));
    LIST_EACH (&sandboxes, node) {
        struct sandbox *s = LIST_ENTRY(node, struct sandbox, node);

        if (!is_nobodys(s) && strcmp(s->id, after) > 0 && (!best || strcmp(s->id, best->id) < 0))
            best = s;
    }
    return best;
}

void sandbox_forget_tags(void)
{
    create_queue_forget();
    snapshot_forget_tags();
    LIST_EACH (&sandboxes, node) {
        struct sandbox *s = LIST_ENTRY(node, struct sandbox, node);

        s->create_tag = s->destroy_tag = s->stats_tag = 0;
    }
}

/* ---- the end ---- */

static void forget(struct sandbox *s)
{
    snapshot_forget(s);
    list_unlink(&s->node);
    (void)map_remove(&by_id, str_of(s->id));
    buf_done(&s->packet);
    mem_free(s);
}

static void begin(struct sandbox *s, const struct spawn_create *c);

/* The spare was broken, not the request: makes a new sandbox for it. */
static void create_anew(struct sandbox *s)
{
    AUTO(buf_done) struct buf packet = s->packet;
    uint32_t tag = s->create_tag;
    struct spawn_msg m;
    struct err e;

    s->packet = (struct buf){0};
    forget(s);
    if (spawn_decode(buf_str(&packet), 0, SPAWN_HOST, &m, &e) == 0)
        begin(sandbox_new(&m.u.create, tag), &m.u.create);
    else
        server_done(tag, &e);
}

static void answer_end(struct sandbox *s)
{
    point_reached("undone");
    if (s->spare == SPARE_BROKEN && s->create_tag != 0 && s->destroy_tag == 0) {
        create_anew(s);
        return;
    }
    if (s->create_tag != 0)
        server_done(s->create_tag, &s->failure);
    if (s->destroy_tag != 0)
        server_done(s->destroy_tag, NULL);
    s->create_tag = s->destroy_tag = 0;
    if (s->keep) {
        s->state = SPAWN_STOPPED;
        s->dying = false;
        s->failure = (struct err){0};
        return;
    }
    forget(s);
}

/* Destroy undoes everything, whatever was made. */
static void undo_everything(struct sandbox *s)
{
    for (size_t i = 0; i < setup_step_count; i++)
        if (setup_steps[i].phase <= SETUP_CLAIM)
            s->steps_done = i + 1;
}

/* Each pause is a tenth of the wait so far. */
static void plan_retry(struct sandbox *s, const char *step, int r)
{
    int64_t now = clock_mono_ms(), waited;
    struct err e;

    if (!s->undo_waits)
        s->undo_since_ms = now;
    waited = now - s->undo_since_ms;
    s->undo_next_ms = now + (waited < UNDO_QUICK_MS ? 1 : i64_min(waited / 10, UNDO_SLOW_MS));
    /* A child that removes files is at work, however many there are. */
    if (waited < UNDO_LATE_MS || s->job.pid != 0 || s->destroy_tag == 0)
        return;
    (void)err_set(&e, err_code_from_errno(-r), -r, "undo '%s' of sandbox '%s'", step, s->id);
    log_error("a sandbox could not be removed", LOG_C("sandbox", s->id), LOG_E(&e));
    server_done(s->destroy_tag, &e);
    s->destroy_tag = 0;
}

static void set_undo_waits(struct sandbox *s, bool waits)
{
    undo_waiting += (waits ? 1U : 0U) - (s->undo_waits ? 1U : 0U);
    s->undo_waits = waits;
}

/* False: something is still busy, and sandbox_retry continues. */
static bool undo(struct sandbox *s)
{
    while (s->steps_done > 0) {
        const struct setup_step *step = &setup_steps[s->steps_done - 1];
        int r = step->undo ? step->undo(s) : 0;

        if (r == -EBUSY || r == -ENOTEMPTY) {
            plan_retry(s, step->name, r);
            set_undo_waits(s, true);
            return false;
        }
        if (r < 0)
            log_error("undo a step", LOG_C("sandbox", s->id), LOG_C("step", step->name),
                      LOG_C("error", strerror(-r)));
        s->steps_done--;
        set_undo_waits(s, false); /* the next step has a time limit of its own */
    }
    answer_end(s);
    return true;
}

int sandbox_retry(void)
{
    int64_t now, next = INT64_MAX;

    if (undo_waiting == 0)
        return -1; /* on every turn of the loop, also with a thousand sandboxes */
    now = clock_mono_ms();
    LIST_EACH (&sandboxes, node) {
        struct sandbox *s = LIST_ENTRY(node, struct sandbox, node);

        if (s->undo_waits && (s->undo_next_ms > now || !undo(s)))
            next = i64_min(next, s->undo_next_ms);
    }
    return undo_waiting == 0 ? -1 : (int)i64_max(next - now, 1);
}

/* Kills live processes; on_ended continues. */
static void begin_end(struct sandbox *s)
{
    s->dying = true;
    if (s->pid == 0) {
        (void)undo(s);
        return;
    }
    if (cgroup_kill(s, false) == 0)
        return; /* kills frozen processes too (kernel: cgroup-v2.rst) */
    (void)cgroup_freeze(s, false);
    (void)syscall(SYS_pidfd_send_signal, s->ended.fd, SIGKILL, NULL, 0);
}

/* The record first: it tells the next holt-spawn that the files of a stopped sandbox stay. */
static int begin_keep(struct sandbox *s, struct err *e)
{
    int r;

    if (!(s->flags & SPAWN_UPPER_DISK)) {
        (void)err_set(e, ERR_UNSUPPORTED, 0, "sandbox '%s' has its files in memory", s->id);
        return err_hint(e, "destroy it, or create it with its files on disk");
    }
    s->keep = true;
    r = record_stopped(s);
    return r < 0 ? err_set(e, err_code_from_errno(-r), -r, "keep sandbox '%s'", s->id) : 0;
}

void sandbox_destroy(struct sandbox *s, uint32_t tag, bool keep)
{
    struct err e;

    if (s->destroy_tag != 0)
        server_done(s->destroy_tag, NULL); /* a repeated request: the later one waits */
    s->destroy_tag = 0;
    if (keep && s->state == SPAWN_STOPPED) {
        server_done(tag, NULL);
        return;
    }
    if (keep && !s->dying && begin_keep(s, &e) < 0) {
        s->keep = false;
        server_done(tag, &e);
        return;
    }
    s->destroy_tag = tag;
    if (!keep && s->keep) { /* it was stopped, or is about to be: now everything is removed */
        s->keep = false;
        s->dir = s->dir >= 0
                     ? s->dir
                     : openat(host.boxes, s->id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        undo_everything(s);
    }
    if (!s->dying)
        begin_end(s);
}

static void on_ended(struct watch *w, uint32_t events)
{
    struct sandbox *s = CONTAINER_OF(w, struct sandbox, ended);
    struct spawn_msg m = {.type = SPAWN_EVENT};
    bool starting = s->state == SPAWN_STARTING;

    (void)events;
    /* A reaped pidfd reports a hang-up unasked; then there is nothing to wait for, and waitpid(0)
     * would take another sandbox's end. */
    if (s->pid == 0 || (!s->adopted && waitpid(s->pid, &s->status, WNOHANG) == 0))
        return;
    s->pid = 0;
    s->state = SPAWN_DEAD;
    loop_want(w, EPOLLET); /* a dead pidfd stays readable */
    if (s->told.fd >= 0)
        on_told(&s->told, EPOLLIN); /* its last report */
    if (s->built.fd >= 0)
        on_built(&s->built, EPOLLIN);
    if (is_nobodys(s) && !s->dying) {
        spare_gone(s, true);
        return;
    }
    if (s->dying || starting) {
        s->dying = true;
        if (starting && s->failure.code == ERR_NONE && s->spare == SPARE_CLAIMED)
            s->spare = SPARE_BROKEN;
        if (s->failure.code == ERR_NONE)
            (void)err_set(&s->failure, ERR_INTERNAL, 0, "sandbox '%s' died during its creation",
                          s->id);
        (void)undo(s);
        return;
    }
    m.u.event = (struct spawn_event){str_of(s->id), SPAWN_INIT_ENDED, (uint32_t)s->status};
    server_send(&m, -1);
}

/* ---- start ---- */

static void running(struct sandbox *s)
{
    struct spawn_msg m = {.type = SPAWN_CREATED, .tag = s->create_tag};
    char path[64];

    s->state = SPAWN_RUNNING;
    buf_done(&s->packet);
    s->keep = false; /* a failing restart from here on is a normal end */
    point_reached("running");
    if (s->create_tag == 0)
        return;
    s->create_tag = 0;
    (void)snprintf(path, sizeof path, "sb/%s/init.sock", s->id);
    m.u.created = (struct spawn_created){(uint32_t)s->pid, s->enforced, str_of(path),
                                         s->spare == SPARE_CLAIMED};
    server_send(&m, s->ended.fd);
}

/* The child's report: an error, or the end of the pipe, closed by exec. */
static void on_told(struct watch *w, uint32_t events)
{
    struct sandbox *s = CONTAINER_OF(w, struct sandbox, told);
    struct err e;
    int r = claim_hear(w->fd, &e);

    (void)events;
    if (r < 0)
        return;
    loop_remove(w);
    s->report[0] = -1;
    if (r > 0 && s->failure.code == ERR_NONE) {
        s->failure = e;
        (void)err_wrap(&s->failure, "set up sandbox '%s'", s->id);
    }
    if (r > 0 || s->pid == 0 || s->dying)
        return;
    if (s->spare == SPARE_MAKING) {
        undo_everything(s); /* from now on everything: it gets a record before that step */
        spare_ready(s);
        return;
    }
    running(s);
}

/* A spare's builder: it has finished, failed, or ended. */
static void on_built(struct watch *w, uint32_t events)
{
    struct sandbox *s = CONTAINER_OF(w, struct sandbox, built);
    struct err e;
    int r = claim_hear(w->fd, &e);

    (void)events;
    if (r < 0)
        return;
    loop_remove(w);
    s->go[1] = -1;
    if (s->pid == 0 || s->dying)
        return;
    if (r > 0 && e.code == ERR_NONE && s->spare == SPARE_CLAIMED) {
        claim_more(s);
        running(s);
        return;
    }
    if (is_nobodys(s)) {
        spare_gone(s, true);
        return;
    }
    if (r > 0) {
        s->failure = e;
        (void)err_wrap(&s->failure, "set up sandbox '%s'", s->id);
    } else {
        s->spare = SPARE_BROKEN;
        (void)err_set(&s->failure, ERR_INTERNAL, 0, "sandbox '%s' died during its creation", s->id);
    }
    begin_end(s);
}

int sandbox_check_create(const struct spawn_create *c, struct err *e)
{
    const struct sandbox *s;

    if (!spawn_id_is_safe(c->id))
        return err_set(e, ERR_INVALID, 0, "'" STR_FMT "' is not a sandbox id", STR_ARG(c->id));
    s = sandbox_find(c->id);
    if (c->flags & SPAWN_RESTART) {
        if (!s || s->state != SPAWN_STOPPED || s->dying)
            return err_set(e, s ? ERR_CONFLICT : ERR_NOT_FOUND, 0,
                           "sandbox '" STR_FMT "' is not stopped", STR_ARG(c->id));
        if (!(c->flags & SPAWN_UPPER_DISK))
            return err_set(e, ERR_INVALID, 0,
                           "only a stopped sandbox with its files on disk can be started again");
    } else if (s) {
        return err_set(e, ERR_CONFLICT, 0, "sandbox '" STR_FMT "' exists", STR_ARG(c->id));
    }
    if (c->runtime.n > 0 && host_check_runtime(c->runtime, e) < 0)
        return -1;
    if ((c->flags & SPAWN_NESTING) && !host.nesting) {
        (void)err_set(e, ERR_FORBIDDEN, 0, "holt-spawn was started without '--nesting yes'");
        return err_hint(e,
                        "end holt-spawn: the next one uses the setting and adopts the sandboxes");
    }
    if ((c->flags & SPAWN_WIDE) && !host.wide_allowed) {
        (void)err_set(e, ERR_FORBIDDEN, 0, "holt-spawn was started with '--syscalls narrow'");
        return err_hint(e,
                        "end holt-spawn: the next one uses the setting and adopts the sandboxes");
    }
    return 0;
}

/* An image needs an overlay: on disk if memory cannot be its upper. */
static uint32_t flags_of(const struct spawn_create *c)
{
    return c->flags |
           (c->layers.count > 0 && !host.memory_overlay ? (uint32_t)SPAWN_UPPER_DISK : 0);
}

void sandbox_take_request(struct sandbox *s, const struct spawn_create *c)
{
    s->flags = flags_of(c);
    s->memory_bytes = c->memory_bytes;
    s->disk_bytes = c->disk_bytes;
    s->cpu_millis = c->cpu_millis;
    s->pids = c->pids;
    s->nofile = c->nofile;
    (void)snprintf(s->hostname, sizeof s->hostname, STR_FMT, STR_ARG(c->hostname));
}

static void reset(struct sandbox *s, const struct spawn_create *c, uint32_t tag)
{
    *s = (struct sandbox){.node = s->node,
                          .confirmed = s->confirmed,
                          .keep = (c->flags & SPAWN_RESTART) != 0, /* in case it fails */
                          .own = c->flags & SPAWN_RESTART ? UINT32_MAX : 0,
                          .create_tag = tag,
                          SANDBOX_NO_FDS};
    s->oci = oci_find(c->runtime);
    sandbox_take_request(s, c);
    (void)snprintf(s->id, sizeof s->id, STR_FMT, STR_ARG(c->id));
    (void)snprintf(s->group, sizeof s->group, "%s", s->id);
    (void)snprintf(s->installation, sizeof s->installation, "%s", server_installation());
}

struct sandbox *sandbox_new(const struct spawn_create *c, uint32_t tag)
{
    struct sandbox *s = xzalloc(sizeof *s);

    reset(s, c, tag);
    list_push(&sandboxes, &s->node);
    (void)map_set(&by_id, str_of(s->id), s);
    return s;
}

/* The child has copies of all these; ours would keep the layers busy. */
static void let_go(struct sandbox *s)
{
    if (s->spare == SPARE_NONE) {
        claim_more(s);
        fd_close(s->go[1]);
        s->go[1] = -1;
    }
    fd_close(s->upper);
    s->upper = -1;
    (void)undo_bundle(s);
    (void)undo_layers(s);
    sandbox_close_mounts(s);
    s->ask = NULL;
    oom_watch(s);
}

static void watch_child(struct sandbox *s)
{
    loop_add(&s->ended, s->ended.fd, on_ended);
    loop_want(&s->ended, EPOLLIN);
    loop_add(&s->told, s->report[0], on_told);
    loop_want(&s->told, EPOLLIN);
    if (s->spare == SPARE_NONE)
        return;
    loop_add(&s->built, s->go[1], on_built);
    loop_want(&s->built, EPOLLIN);
}

/* The steps that do not need the request; the child continues with its part. */
static int make_ahead(struct sandbox *s, struct err *e)
{
    int r = setup_run(s, SETUP_AHEAD, e);

    if (s->pid != 0)
        watch_child(s);
    if (r == 0)
        /* a child that has ended is noticed by its end */
        (void)!send(s->go[1], "g", 1, MSG_NOSIGNAL);
    return r;
}

struct sandbox *sandbox_make_spare(const char *name)
{
    struct spawn_create c = {.id = str_of(name),
                             .flags = host.wide_spares ? (uint32_t)SPAWN_WIDE : 0};
    struct sandbox *s = sandbox_new(&c, 0);

    s->spare = SPARE_MAKING;
    s->installation[0] = '\0';
    if (make_ahead(s, &s->failure) == 0)
        return s;
    log_warn("create a spare sandbox", LOG_E(&s->failure));
    begin_end(s);
    return NULL;
}

/* An ending process has no namespaces any more, before its pidfd reports it. */
static bool has_ended(const struct sandbox *s, const struct err *e)
{
    struct pollfd p = {.fd = s->ended.fd, .events = POLLIN};

    return s->pid == 0 || e->sys == ESRCH || poll(&p, 1, 0) > 0;
}

/* The steps that need the request; skips what a spare has already done. */
static int claim(struct sandbox *s, struct err *e)
{
    if (!s->oci || !(s->oci->bits & OCI_OWN_KERNEL))
        s->enforced |= host.features & (SPAWN_CAN_KILL_TREE | SPAWN_CAN_FREEZE);
    if (s->disk_bytes && !(s->flags & SPAWN_UPPER_DISK))
        s->enforced |= SPAWN_CAN_DISK;
    if (s->nofile)
        s->enforced |= SPAWN_CAN_NOFILE;
    if (rlimit_holds_pids(s))
        s->enforced |= SPAWN_CAN_PIDS;
    if (s->spare == SPARE_NONE && make_ahead(s, e) < 0)
        return -1;
    if (setup_run(s, SETUP_CLAIM, e) < 0) {
        if (s->spare == SPARE_CLAIMED && has_ended(s, e))
            s->spare = SPARE_BROKEN;
        return -1;
    }
    point_reached("recorded");
    if (claim_send(s, e) == 0 || s->spare == SPARE_NONE)
        return 0; /* a child that has ended has reported why */
    s->spare = SPARE_BROKEN;
    return -1;
}

int sandbox_keep_packet(struct buf *to, const struct spawn_create *c, struct err *e)
{
    struct spawn_msg m = {.type = SPAWN_CREATE, .tag = 1, .u.create = *c};
    struct wire_out o = {.size = SPAWN_PACKET_MAX};
    char *room;

    if (buf_reserve(to, o.size, &room) < 0)
        return err_set(e, ERR_INTERNAL, ENOMEM, "keep the request");
    o.p = (uint8_t *)room;
    if (spawn_encode(&m, SPAWN_HOST, &o, e) < 0)
        return -1;
    buf_added(to, o.n);
    return 0;
}

static void begin(struct sandbox *s, const struct spawn_create *c)
{
    struct err e = {0};

    s->ask = c;
    if (sandbox_keep_packet(&s->packet, c, &e) == 0 && claim(s, &e) == 0) {
        let_go(s);
        return;
    }
    (void)err_wrap(&e, "set up sandbox '" STR_FMT "'", STR_ARG(c->id));
    s->ask = NULL;
    s->failure = e;
    if (s->spare != SPARE_NONE)
        undo_everything(s);
    begin_end(s);
}

void sandbox_create_now(const struct spawn_create *c, uint32_t tag)
{
    struct sandbox *s;
    struct err e = {0};

    if (sandbox_check_create(c, &e) < 0) { /* again: it may have been overtaken while waiting */
        server_done(tag, &e);
        return;
    }
    s = sandbox_find(c->id);
    if (s) {
        reset(s, c, tag);
    } else if ((s = spare_take(c))) {
        s->create_tag = tag;
        sandbox_take_request(s, c);
        (void)snprintf(s->installation, sizeof s->installation, "%s", server_installation());
    } else {
        s = sandbox_new(c, tag);
    }
    begin(s, c);
}

void sandbox_adopted(struct sandbox *s, int pidfd)
{
    undo_everything(s);
    s->adopted = true;
    s->own = UINT32_MAX; /* whatever exists */
    s->state = s->keep ? SPAWN_STOPPED : pidfd < 0 ? SPAWN_DEAD : SPAWN_RUNNING;
    if (s->keep) { /* its stop may have been cut off: what is left goes, but for the files */
        s->dying = true;
        (void)cgroup_kill(s, false);
        (void)undo(s);
        return;
    }
    if (pidfd < 0)
        return;
    loop_add(&s->ended, pidfd, on_ended);
    loop_want(&s->ended, EPOLLIN);
    oom_watch(s);
}
