/* holt-spawn: the only privileged program; makes and ends sandboxes. */

/* Usage: holt-spawn --state DIR --init PROGRAM [--user NAME] [--allow DIR | --allow-write DIR]...
 *        [--runtime NAME=PROGRAM]... [--nesting yes] [--pids N] [--syscalls narrow|either|wide]
 * [--bridge NAME,ADDRESS/BITS]
 *        [--prepare yes] [--end stop|destroy|remove] [--linger-ms N]
 * --linger-ms: exit after this long without holtd and without a live sandbox.
 * --user: the user of holtd (a name or a number), if it is not our own.
 * --prepare: make the state directory, or hand over the one of root, and exit (the unit's first
 * step: systemd would give all of it to that user, including files of sandboxes).
 * --end: see end_all.h; prints the number of running sandboxes. */
#include "base/account.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/hand_over.h"
#include "base/log.h"
#include "spawn/end_all.h"
#include "spawn/own_rights.h"
#include "spawn/sandbox.h"
#include "spawn/server.h"
#include "spawn/spare.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#define LOCK_MS 2000
#define LOCK_LOOK_MS 10

/* A killed one holds the lock until the kernel has finished with it. */
static int lock_state(struct err *e)
{
    int fd = openat(host.state, "spawn.lock", O_CREAT | O_RDWR | O_CLOEXEC, 0600);
    int64_t until = clock_mono_ms() + LOCK_MS;
    bool locked = false;

    while (fd >= 0 && !(locked = flock(fd, LOCK_EX | LOCK_NB) == 0) && clock_mono_ms() < until)
        (void)poll(NULL, 0, LOCK_LOOK_MS);
    if (!locked) {
        (void)err_set(e, ERR_CONFLICT, 0, "another holt-spawn uses '%s'", host.state_path);
        return err_hint(e, "end it and all its sandboxes: holt down --state %s", host.state_path);
    }
    return 0; /* held until we exit */
}

static struct watch signals = {.fd = -1};
static bool ending;
static int64_t linger_ms = -1; /* without holtd and sandboxes; -1: for ever */

static void on_signal(struct watch *w, uint32_t events)
{
    struct signalfd_siginfo si;

    (void)events;
    (void)!read(w->fd, &si, sizeof si);
    ending = true;
}

static void watch_signals(void)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    (void)sigprocmask(SIG_BLOCK, &set, NULL);
    loop_add(&signals, signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK), on_signal);
    loop_want(&signals, EPOLLIN);
}

struct arguments {
    const char *state, *init, *user;
    bool prepare;
    enum end_kind end;
};

static int parse_linger(const char *value, struct err *e)
{
    uint64_t v;

    if (str_parse_u64(str_of(value), &v) < 0 || v > INT32_MAX)
        return err_set(e, ERR_INVALID, 0, "'%s' is not a number of milliseconds", value);
    linger_ms = (int64_t)v;
    return 0;
}

static int parse_pids(const char *value, struct err *e)
{
    uint64_t n;

    if (str_parse_u64(str_of(value), &n) < 0 || n > 4194304)
        return err_set(e, ERR_INVALID, 0, "'--pids' must be a number of processes, not '%s'",
                       value);
    host.default_pids = (uint32_t)n;
    return 0;
}

static int parse(int argc, char **argv, struct arguments *ret, struct err *e)
{
    int r = 0;

    for (int i = 1; i + 1 < argc; i += 2) {
        const char *name = argv[i], *value = argv[i + 1];

        if (strcmp(name, "--state") == 0)
            ret->state = value;
        else if (strcmp(name, "--init") == 0)
            ret->init = value;
        else if (strcmp(name, "--user") == 0)
            ret->user = value;
        else if (strcmp(name, "--prepare") == 0)
            ret->prepare = strcmp(value, "yes") == 0;
        else if (strcmp(name, "--end") == 0)
            r = (ret->end = end_kind_of(value)) == END_NONE
                    ? err_set(e, ERR_INVALID, 0, "--end is stop, destroy or remove")
                    : 0;
        else if (strcmp(name, "--linger-ms") == 0)
            r = parse_linger(value, e);
        else if (strcmp(name, "--nesting") == 0)
            host.nesting = strcmp(value, "yes") == 0;
        else if (strcmp(name, "--pids") == 0)
            r = parse_pids(value, e);
        else if (strcmp(name, "--syscalls") == 0)
            r = host_syscalls(value, e);
        else if (strcmp(name, "--runtime") == 0)
            r = oci_add(value, e);
        else if (strcmp(name, "--bridge") == 0)
            r = host_bridge(value, e);
        else if (strcmp(name, "--allow") == 0 || strcmp(name, "--allow-write") == 0)
            r = host_allow(value, strcmp(name, "--allow-write") == 0, e);
        else
            r = err_set(e, ERR_INVALID, 0, "unknown argument '%s'", name);
        if (r < 0)
            return -1;
    }
    if (!ret->state || !ret->init || argc % 2 == 0)
        return err_set(
            e, ERR_INVALID, 0,
            "usage: holt-spawn --state DIR --init PROGRAM [--user NAME] "
            "[--allow DIR | --allow-write DIR]... [--runtime NAME=PROGRAM]... [--nesting yes] "
            "[--pids N] [--syscalls narrow|either|wide] [--bridge NAME,ADDRESS/BITS] "
            "[--prepare yes] [--linger-ms N]");
    return 0;
}

static int find_user(const char *name, struct err *e)
{
    struct account a = {geteuid(), getegid()};

    if (name && account_find(name, "", 0, &a) < 0)
        return err_set(e, ERR_INVALID, 0, "there is no user '%s'", name);
    host.served = a.uid;
    host.served_group = a.gid;
    return 0;
}

/* Refused while a holtd serves it. */
static int check_unused(const char *path, struct err *e)
{
    AUTO(fd_close) int fd = openat(host.state, "lock", O_RDWR | O_NOFOLLOW | O_CLOEXEC);

    if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) == 0)
        return 0;
    (void)err_set(e, ERR_CONFLICT, 0, "a holtd that root has started serves '%s'", path);
    return err_hint(e, "stop it (Ctrl-C, or as root: holt down), then start the service again");
}

/* What root has used alone (`make run` as root, or an earlier release) becomes that of holtd's user
 * in the installed service. */
static int take_over(const char *path, uid_t owner, struct err *e)
{
    struct hand_over h = {.from = owner, .to = {host.served, host.served_group}};
    int r;

    if ((owner != 0 && owner != ACCOUNT_HOLT) || host.served == 0)
        return 0;
    if (check_unused(path, e) < 0)
        return -1;
    r = hand_over_state(&h, host.state);
    return r < 0 ? err_set(e, err_code_from_errno(-r), -r, "hand '%s' over to user %u", path,
                           host.served)
                 : 0;
}

/* Does nothing in a state directory of its user: leaves its lock alone. */
static int prepare(const char *path, struct err *e)
{
    int r = dir_make_all(path, 0700);
    struct stat st;

    host.state_path = path;
    host.state = r < 0 ? -1 : open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (host.state < 0 || fstat(host.state, &st) < 0)
        return err_set(e, err_code_from_errno(errno), errno, "open state directory '%s'", path);
    if (st.st_uid == host.served)
        return 0;
    if (lock_state(e) < 0)
        return -1;
    if (take_over(path, st.st_uid, e) < 0 || fchmod(host.state, 0700) < 0)
        return -1;
    return 0;
}

/* Mounts nothing, so that nothing is in its way. */
static int remove_state(const char *state, struct err *e)
{
    if (geteuid() != 0 && host_become_root(e) < 0)
        return -1;
    return end_remove(state, e);
}

static int end_all(enum end_kind kind, struct err *e)
{
    unsigned n;

    if (end_sandboxes(kind, &n, e) < 0)
        return -1;
    spare_end_all();
    idmap_give_ready();
    host_close_cgroups();
    (void)printf("%u\n", n);
    return 1;
}

/* 1: done, exit. */
static int start(int argc, char **argv, struct err *e)
{
    struct arguments a = {0};

    if (parse(argc, argv, &a, e) < 0 || find_user(a.user, e) < 0)
        return -1;
    if (a.prepare)
        return prepare(a.state, e) < 0 ? -1 : 1;
    if (a.end == END_REMOVE)
        return remove_state(a.state, e) < 0 ? -1 : 1;
    host.home_net = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    loop_init();
    watch_signals();
    if (host_init(a.state, a.init, e) < 0 || lock_state(e) < 0)
        return err_wrap(e, "start");
    if (own_rights_give_up(e) < 0 || record_adopt_all(e) < 0)
        return -1;
    if (a.end != END_NONE)
        return end_all(a.end, e);
    return server_listen(host.state, e);
}

/* One started by holtd exits when it is not needed: no holtd for a while, and no live
 * sandbox.  *wait: how long until that may be the case. */
static bool is_over(int *wait)
{
    int64_t alone = linger_ms < 0 ? -1 : server_alone_ms(), left = linger_ms - alone;

    if (alone < 0 || sandbox_any_alive())
        return false;
    if (left > 0 && (*wait < 0 || left < *wait))
        *wait = (int)left;
    return left <= 0;
}

int main(int argc, char **argv)
{
    struct err e = {0};
    int r;

    host.command_line =
        str_make(argv[0], (size_t)(argv[argc - 1] - argv[0]) + strlen(argv[argc - 1]));
    (void)signal(SIGPIPE, SIG_IGN);
    (void)fd_limit_raise();
    r = start(argc, argv, &e);
    if (r < 0) {
        log_error("holt-spawn", LOG_E(&e), LOG_C("hint", e.hint));
        return 1;
    }
    if (r > 0)
        return 0;
    while (!ending) {
        int undo = sandbox_retry();
        bool busy = undo >= 0 && undo <= SPARE_QUIET_MS, lacks = parked_lacks();
        bool more = host.netns_n < host.netns_want;
        int spares = spare_wait_ms();
        bool late;

        int wait = more ? 0 : spares >= 0 ? spares : lacks ? PARKED_QUIET_MS : -1;

        if (is_over(&wait))
            break;
        if (sandbox_cold_waits())
            wait = 0;
        loop_turn(undo >= 0 && (wait < 0 || undo < wait) ? undo : wait);
        late = spare_is_late();
        if (sandbox_cold_waits()) {
            sandbox_cold_next();
            if (!late)
                continue;
        }
        if (!loop_was_idle() && !late)
            continue;
        if (more && !late)
            (void)netns_fill_one();
        else if (spares >= 0)
            spare_fill();
        else if (lacks && !busy)
            parked_fill();
    }
    spare_end_all();
    idmap_give_ready();
    host_close_cgroups();
    return 0;
}
