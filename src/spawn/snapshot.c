/* snapshot: makes layers of writable layers, by children. */
#include "spawn/snapshot.h"

#include "base/fd.h"
#include "base/launch.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/point.h"
#include "spawn/copy.h"
#include "spawn/digest.h"
#include "spawn/disk.h"
#include "spawn/own_rights.h"
#include "spawn/server.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define FREEZE_TRIES 20000 /* of 100 µs */
#define RELEASE_TRIES 20   /* of 1 ms */
#define FROZEN "frozen"    /* in sb/ID: the freeze is ours */

struct job {
    struct list node;
    struct watch told;
    pid_t pid;
    struct sandbox *s; /* NULL: none is needed, or it is gone */
    uint32_t tag;      /* 0: nobody waits */
    enum spawn_snapshot_mode mode;
    char layer[SPAWN_ID_MAX + 1];
    bool froze;
    int64_t since_us;
    uint64_t frozen_us;
    int from, to, dir; /* the source; layers/LAYER; sb/ID of an image */
    uint64_t bytes_max;
};

/* What the child says: first that the source is no longer needed, then the result. */
struct note {
    int result;
    bool last;
    uint64_t entries, bytes;
    char digest[2 * HASH_SIZE + 1];
};

static struct list jobs = {&jobs, &jobs};

static int64_t now_us(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

/* ---- the freeze ---- */

static int freeze(struct job *j)
{
    AUTO(fd_close) int mark = -1;
    struct sandbox *s = j->s;

    if (s->state != SPAWN_RUNNING || cgroup_is_frozen(s))
        return 0; /* it stands still, or a person has paused it */
    if (!cgroup_can_freeze(s))
        return -ENOSYS;
    mark = openat(s->dir, FROZEN, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (mark < 0)
        return -errno;
    j->since_us = now_us();
    j->froze = true;
    return cgroup_freeze(s, true);
}

static void thaw(struct job *j)
{
    if (!j->froze)
        return;
    j->froze = false;
    if (!j->s)
        return;
    (void)cgroup_freeze(j->s, false);
    j->frozen_us = (uint64_t)(now_us() - j->since_us);
    (void)unlinkat(j->s->dir, FROZEN, 0);
}

void snapshot_recover(struct sandbox *s)
{
    if (s->dir < 0 || unlinkat(s->dir, FROZEN, 0) < 0)
        return;
    (void)cgroup_freeze(s, false);
    log_info("ended the freeze of a snapshot that was not finished", LOG_C("sandbox", s->id));
}

/* ---- the end ---- */

static const char *reason(int r)
{
    switch (r) {
    case -ELOOP:
        return "its directories nest deeper than 1000";
    case -EDQUOT:
        return "it is larger than the free space";
    case -EOPNOTSUPP:
        return "its files are in memory, or its own directories have limits of their own";
    case -ENOSYS:
        return "this host cannot freeze its commands";
    default:
        return NULL;
    }
}

static void refuse(uint32_t tag, const char *what, int r)
{
    const char *why = reason(r);
    struct err e;

    if (tag == 0)
        return;
    if (why)
        (void)err_set(&e,
                      r == -EDQUOT  ? ERR_FULL
                      : r == -ELOOP ? ERR_TOO_LARGE
                                    : ERR_UNSUPPORTED,
                      0, "copy the files of '%s': %s", what, why);
    else
        (void)err_set(&e, err_code_from_errno(-r), -r, "copy the files of '%s'", what);
    if (r == -ENOSYS)
        (void)err_hint(&e, "stop it first");
    server_done(tag, &e);
}

static void finish(struct job *j, const struct note *n)
{
    struct spawn_msg m = {.type = SPAWN_SNAPSHOTTED, .tag = j->tag};

    thaw(j);
    if (n->result < 0) {
        refuse(j->tag, j->s ? j->s->id : j->layer, n->result);
    } else if (j->tag != 0) {
        m.u.snapshotted =
            (struct spawn_snapshotted){n->entries, n->bytes, j->frozen_us, str_of(n->digest)};
        server_send(&m, -1);
    }
    list_unlink(&j->node);
    mem_free(j);
}

/* An image is released with the child, or a moment later: a start must not find it busy. */
static void wait_released(const struct sandbox *s)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    AUTO(fd_close) int dir = -1;

    if (s)
        dir = openat(host.boxes, s->id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    for (int i = 0; i < RELEASE_TRIES && dir >= 0 && disk_is_busy(dir) > 0; i++)
        (void)nanosleep(&pause, NULL);
}

static void on_note(struct watch *w, uint32_t events)
{
    struct job *j = CONTAINER_OF(w, struct job, told);
    struct note n = {.result = -EIO, .last = true}; /* it died without a word */
    int status;

    (void)events;
    if (read(w->fd, &n, sizeof n) != sizeof n)
        n = (struct note){.result = -EIO, .last = true};
    if (!n.last) {
        thaw(j);
        point_reached("snapshot copied");
        return;
    }
    loop_remove(w);
    (void)waitpid(j->pid, &status, 0);
    if (j->mode == SPAWN_SNAPSHOT_MOVE)
        wait_released(j->s);
    finish(j, &n);
}

void snapshot_forget(struct sandbox *s)
{
    LIST_EACH (&jobs, node) {
        struct job *j = LIST_ENTRY(node, struct job, node);

        if (j->s != s)
            continue;
        j->s = NULL;
        (void)kill(j->pid, SIGKILL);
    }
}

void snapshot_forget_tags(void)
{
    LIST_EACH (&jobs, node)
        LIST_ENTRY(node, struct job, node)->tag = 0;
}

/* ---- the child ---- */

static void tell(int out, const struct note *n)
{
    (void)!write(out, n, sizeof *n);
}

static int wait_frozen(const struct job *j)
{
    const struct timespec pause = {.tv_nsec = 100000};

    for (int i = 0; j->froze && !cgroup_is_frozen(j->s); i++) {
        if (i == FREEZE_TRIES)
            return -EBUSY;
        (void)nanosleep(&pause, NULL);
    }
    return 0;
}

/* Hard links are found by names in a directory of the copy itself, which goes with it whatever
 * happens; nothing in the sandbox could know its name. */
static void links_name(const struct job *j, char to[SPAWN_ID_MAX + 16])
{
    (void)snprintf(to, SPAWN_ID_MAX + 16, ".holt-links-%s", j->layer);
}

static int copy_into(const struct job *j, int upper, struct note *n)
{
    AUTO(fd_close) int fs = -1;
    AUTO(fd_close) int links = -1;
    struct copy c = {.bytes_max = j->bytes_max};
    char name[SPAWN_ID_MAX + 16];
    int r = tree_remove(j->to, "fs", NULL);

    links_name(j, name);
    if (r < 0)
        return r;
    if (mkdirat(j->to, "fs", 0755) < 0)
        return -errno;
    fs = openat(j->to, "fs", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fs < 0 || mkdirat(fs, name, 0700) < 0)
        return -errno;
    c.links = links = openat(fs, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (links < 0)
        return -errno;
    r = copy_tree(&c, upper, fs);
    n->entries = c.entries;
    n->bytes = c.bytes;
    return r;
}

/* The times of the top were changed by its last entry. */
static int settle_copy(const struct job *j, int upper)
{
    AUTO(fd_close) int fs = openat(j->to, "fs", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    char name[SPAWN_ID_MAX + 16];
    struct stat st;
    int r;

    links_name(j, name);
    r = fs < 0 ? -errno : tree_remove(fs, name, NULL);
    if (r == 0 && (fstat(upper, &st) < 0 ||
                   futimens(fs, (const struct timespec[]){st.st_atim, st.st_mtim}) < 0))
        r = -errno;
    return r;
}

static int hash_layer(const struct job *j, struct note *n)
{
    struct digest d = {.root = idmap_stored()};
    AUTO(fd_close) int fs = openat(j->to, "fs", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    int r = fs < 0 ? -errno : digest_tree(&d, fs, n->digest);

    n->entries = d.entries;
    n->bytes = d.bytes;
    return r;
}

static int child_copy(const struct job *j, int out)
{
    struct note n = {.last = false};
    int r = wait_frozen(j);

    own_rights_of_copier(j->from, j->to, false);
    if (r == 0)
        r = copy_into(j, j->from, &n);
    tell(out, &n);
    if (r == 0)
        r = settle_copy(j, j->from);
    if (r == 0)
        r = hash_layer(j, &n);
    if (r < 0)
        (void)!tree_remove(j->to, "fs", NULL);
    n.result = r;
    n.last = true;
    tell(out, &n);
    return r;
}

/* What says that the copy is whole and on disk: then only the removal is to be repeated.  Of other
 * copies the source stays, and holtd syncs them. */
static int mark_whole(const struct job *j)
{
    AUTO(fd_close) int fd = openat(j->to, "meta", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

    return fd < 0 || syncfs(j->to) < 0 ? -errno : 0;
}

static int move_from_image(const struct job *j, struct note *n)
{
    AUTO(fd_close) int upper = -1;
    int r = 0;

    if (faccessat(j->to, "meta", F_OK, AT_SYMLINK_NOFOLLOW) < 0) {
        upper = openat(j->from, "upper", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        r = upper < 0 ? -errno : copy_into(j, upper, n);
        if (r == 0)
            r = settle_copy(j, upper);
        if (r == 0)
            r = mark_whole(j);
    }
    if (r == 0)
        r = tree_remove(j->from, "upper", NULL);
    if (r == 0)
        r = tree_remove(j->from, "work", NULL);
    return r;
}

static int child_move(const struct job *j, int out)
{
    struct note n = {.last = true};

    own_rights_of_copier(j->from, j->to, true);
    n.result = move_from_image(j, &n);
    tell(out, &n);
    return n.result;
}

static int child_hash(const struct job *j, int out)
{
    struct note n = {.last = true};

    own_rights_of_walker(j->to);
    n.result = hash_layer(j, &n);
    tell(out, &n);
    return n.result;
}

static int start(struct job *j)
{
    pid_t parent = getpid();
    int p[2];

    if (pipe2(p, O_CLOEXEC) < 0)
        return -errno;
    j->pid = fork();
    if (j->pid == 0) {
        launch_tie(parent);
        _exit((j->mode == SPAWN_SNAPSHOT_COPY   ? child_copy(j, p[1])
               : j->mode == SPAWN_SNAPSHOT_MOVE ? child_move(j, p[1])
                                                : child_hash(j, p[1])) < 0);
    }
    fd_close(p[1]);
    if (j->pid < 0) {
        fd_close(p[0]);
        return -EAGAIN;
    }
    list_push(&jobs, &j->node);
    loop_add(&j->told, p[0], on_note);
    loop_want(&j->told, EPOLLIN);
    return 0;
}

/* ---- requests ---- */

static int open_layer(const char *id)
{
    char path[SPAWN_ID_MAX + 16];
    int fd;

    (void)snprintf(path, sizeof path, "layers/%s", id);
    fd = openat(host.state, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

/* A sandbox that never ran has no upper yet: an empty layer. */
static int make_empty(int layer)
{
    uint32_t root = idmap_stored();

    if (mkdirat(layer, "fs", 0755) < 0)
        return -errno;
    return fchownat(layer, "fs", root, root, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
}

/* 1: done; 0: it is in an image, and a child copies it. */
static int move_now(struct job *j)
{
    if (disk_is_there(j->dir))
        return 0;
    if (faccessat(j->to, "fs", F_OK, AT_SYMLINK_NOFOLLOW) == 0)
        return 1; /* by an earlier request, whose reply was lost */
    if (renameat2(j->from, "upper", j->to, "fs", RENAME_NOREPLACE) < 0)
        return errno == ENOENT && make_empty(j->to) == 0 ? 1 : -errno;
    point_reached("snapshot moved");
    return 1;
}

static int prepare(struct job *j)
{
    j->to = open_layer(j->layer);
    if (j->to < 0 || j->mode == SPAWN_SNAPSHOT_HASH)
        return j->to < 0 ? j->to : 0;
    j->dir = openat(host.boxes, j->s->id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    j->from = j->mode == SPAWN_SNAPSHOT_COPY ? snapshot_open_upper(j->s) : snapshot_open_disk(j->s);
    if (j->from < 0 || j->dir < 0)
        return j->from < 0 ? j->from : -ENOENT;
    if (j->mode == SPAWN_SNAPSHOT_MOVE)
        return j->s->state == SPAWN_STOPPED ? move_now(j) : -EBUSY;
    return freeze(j);
}

void snapshot_begin(const struct spawn_snapshot *ask, struct sandbox *s, uint32_t tag)
{
    struct job *j = xzalloc(sizeof *j);
    int r;

    *j = (struct job){.s = s,
                      .tag = tag,
                      .mode = (enum spawn_snapshot_mode)ask->mode,
                      .told.fd = -1,
                      .from = -1,
                      .to = -1,
                      .dir = -1,
                      .bytes_max = ask->bytes_max};
    (void)snprintf(j->layer, sizeof j->layer, STR_FMT, STR_ARG(ask->layer));
    list_init(&j->node);
    r = spawn_id_is_safe(ask->layer) ? prepare(j) : -EINVAL;
    point_reached("snapshot frozen");
    if (r == 0)
        r = start(j);
    fd_close(j->from);
    fd_close(j->to);
    fd_close(j->dir);
    if (r == 0)
        return;
    finish(j, &(struct note){.result = r < 0 ? r : 0, .last = true});
}
