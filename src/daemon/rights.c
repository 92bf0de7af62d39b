/* rights: drops the rights that holtd does not need. */
#include "daemon/rights.h"

#include "base/account.h"
#include "base/confine.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/starter.h"
#include "base/str.h"
#include "daemon/handover.h"
#include "daemon/helpers.h"
#include "daemon/state.h"
#include "driver/table.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdlib.h>
#include <unistd.h>

#define PATHS_MAX 64
#define PORT_FREE 1024 /* for every user, from here on: ip(7) */

struct paths {
    struct confine_path v[PATHS_MAX];
    char *owned[PATHS_MAX];
    size_t n;
};

static void paths_done_p(struct paths *p)
{
    for (size_t i = 0; i < p->n; i++)
        mem_free(p->owned[i]);
}

/* An empty one is an unused setting. */
static void add_path(struct paths *p, const char *path, enum confine_access access)
{
    if (!path || !path[0])
        return;
    assert(p->n < PATHS_MAX);
    p->owned[p->n] = xstrdup(path);
    p->v[p->n] = (struct confine_path){p->owned[p->n], access};
    p->n++;
}

static void add_parent(struct paths *p, const char *path, enum confine_access access)
{
    AUTO(mem_free) char *above = xstrdup(path && path[0] ? path : "");
    char *last = strrchr(above, '/');

    if (last == above)
        return; /* the whole system: name a directory instead */
    if (last)
        *last = '\0';
    add_path(p, last ? above : ".", access);
}

/* Paths of settings that holtd writes to. */
static void add_settings(struct paths *p, const struct config *c)
{
    struct conf_dir dirs[CONF_DIRS_MAX];
    size_t n = conf_dirs(c, dirs, ARRAY_LEN(dirs));

    add_path(p, c->state, CONFINE_WRITE);
    for (size_t i = 0; i < n; i++)
        add_path(p, dirs[i].path, CONFINE_WRITE);
    if (c->db && str_starts(str_of(c->db), STR("sqlite:")))
        add_parent(p, c->db + strlen("sqlite:"), CONFINE_WRITE);
    for (size_t i = 0; i < c->listen.n && p->n < PATHS_MAX / 2; i++) {
        const char *at = strstr(c->listen.v[i], "unix:");

        if (at)
            add_parent(p, at + strlen("unix:"), CONFINE_WRITE);
    }
}

/* For libpq: its own files in the home directory. */
static void add_postgres(struct paths *p)
{
    static const char *const names[] = {".pgpass", ".pg_service.conf", ".postgresql"};
    const char *home = getenv("HOME");

    for (size_t i = 0; home && i < ARRAY_LEN(names); i++) {
        AUTO(mem_free) char *path = xasprintf("%s/%s", home, names[i]);

        add_path(p, path, CONFINE_READ);
    }
}

/* Files read by libraries: names, certificates, time zones, modules loaded late.  /etc as a whole,
 * because resolv.conf and others are replaced, and a rule applies to a file, not to its name. */
static void add_system(struct paths *p)
{
    static const char *const names[] = {
        "/etc",
        "/usr/lib",
        "/usr/lib64",
        "/usr/share",
        "/lib",
        "/lib64",
        "/proc/self",
        "/proc/sys/kernel",
        "/proc/stat",
        "/proc/meminfo",
        "/proc/loadavg",
        "/dev/urandom",
        "/run/systemd/resolve",
        "/run/resolvconf",
        "/run/NetworkManager",
        "/proc/sys/net/core",
        "/sys/devices/system/cpu",
        "/var/lib/ca-certificates",
        "/proc/cpuinfo",
    };

    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        add_path(p, names[i], CONFINE_READ);
    add_path(p, "/dev/null", CONFINE_WRITE);
}

/* With sanitizers, their reports are written by any process. */
static void add_reports(struct paths *p)
{
#ifdef HOLT_SANITIZED
    const char *options = getenv("ASAN_OPTIONS"),
               *at = options ? strstr(options, "log_path=") : NULL;
    AUTO(mem_free) char *path = at ? xstrdup(at + strlen("log_path=")) : NULL;

    if (path) {
        path[strcspn(path, ":")] = '\0';
        add_parent(p, path, CONFINE_WRITE);
    }
#else
    (void)p;
#endif
}

/* The starter opens files that are root's, or that are read again later. */
static int allow_files(const struct config *c, struct err *e)
{
    AUTO(mem_free) char *bindir = c->bindir && c->bindir[0] ? xstrdup(c->bindir) : state_bindir();
    AUTO(mem_free) char *unpack = xasprintf("%s/holt-unpack", bindir);
    AUTO(mem_free) char *compare = xasprintf("%s/holt-compare", bindir);
    const char *const files[] = {c->tls_cert, c->tls_key, unpack, compare};
    int r = 0;

    for (size_t i = 0; r == 0 && i < ARRAY_LEN(files); i++)
        if (files[i] && files[i][0])
            r = starter_allow(files[i]);
    for (size_t i = 0; r == 0 && i < c->files.n; i++)
        r = starter_allow(c->files.v[i]);
    return r < 0 ? err_set(e, ERR_INTERNAL, -r, "name the files that are read later") : 0;
}

/* ---- steps ---- */

static bool wants_low_port(const struct conf_list *list)
{
    for (size_t i = 0; i < list->n; i++) {
        const char *at = strrchr(list->v[i], ':');
        int64_t port;

        if (at && !strstr(list->v[i], "unix:") && str_parse_i64(str_of(at + 1), &port) == 0 &&
            port > 0 && port < PORT_FREE)
            return true;
    }
    return false;
}

static int change_user(const struct config *c, const struct account *to, uint64_t keep,
                       const struct paths *p, struct err *e)
{
    const char *reach[PATHS_MAX];
    size_t n = 0;
    int r;

    for (size_t i = 0; i < p->n; i++)
        if (p->v[i].access == CONFINE_WRITE)
            reach[n++] = p->v[i].path;
    r = confine_reach(reach, n, to->uid);
    if (r < 0) {
        (void)err_set(e, ERR_FORBIDDEN, -r, "give user %u access to '%s'", to->uid, c->state);
        return err_hint(e, "choose a directory that other users can enter with --state "
                           "(/var/lib/holt), or stay root with --user root");
    }
    if (r > 0)
        log_info("directories above the state directory are closed to other users: holtd can use "
                 "only its own directories");
    r = confine_user(to->uid, to->gid, keep);
    if (r < 0)
        return err_set(e, ERR_FORBIDDEN, -r, "become user %u", to->uid);
    (void)setenv("HOME", c->state, 1); /* root's home is closed now */
    return 0;
}

/* A failure here means that the kernel lacks it, or a container forbids it. */
static void lock_up(const struct paths *p, bool *ret_files, bool *ret_calls)
{
    const struct filter_table calls[] = {confine_loop, confine_files};
    int r = confine_paths(p->v, p->n);

    *ret_files = r == 0;
    if (r < 0)
        log_warn("holtd is not confined to its directories: this kernel has no Landlock",
                 LOG_C("error", strerror(-r)));
#ifdef HOLT_SANITIZED
    log_warn("built with sanitizers, which need more system calls: they are not filtered");
    (void)calls;
    *ret_calls = false;
#else
    r = confine_calls(calls, ARRAY_LEN(calls));
    *ret_calls = r == 0;
    if (r < 0)
        log_warn("holtd's system calls are not filtered: this kernel has no seccomp",
                 LOG_C("error", strerror(-r)));
#endif
}

static int choose_account(const struct config *c, struct account *ret, struct err *e)
{
    *ret = (struct account){geteuid(), getegid()};
    if (geteuid() != 0 || account_find(c->user, "holt", ACCOUNT_HOLT, ret) == 0)
        return 0;
    (void)err_set(e, ERR_INVALID, 0, "setting 'user': there is no user '%s'", c->user);
    return err_hint(e, "create the user, or leave the setting empty");
}

/* Makes the directories before the rules that name them. */
static int open_own_state(const struct config *c, struct err *e)
{
    AUTO(fd_close) int lock = state_open(c->state, e);

    if (lock < 0 || handover_make_dirs(c, e) < 0)
        return -1;
    helpers_end_old(c->state, geteuid());
    return TAKE_FD(lock);
}

/* Of those that 'auto' chooses from, each does. */
static bool runtime_isolates(const struct config *c)
{
    const struct driver_ops *d = driver_find(c->runtime);

    return !d || (d->caps & DRIVER_ISOLATES);
}

int rights_give_up(const struct config *c, int *ret_lock, struct err *e)
{
    __attribute__((cleanup(paths_done_p))) struct paths paths = {0};
    uint64_t keep = wants_low_port(&c->listen) || wants_low_port(&c->preview_listen)
                        ? 1ULL << CAP_NET_BIND_SERVICE
                        : 0;
    struct account to;
    bool files, calls;
    int r;

    if (!runtime_isolates(c)) {
        log_warn("holtd keeps all its rights: the runtime does not isolate",
                 LOG_C("runtime", c->runtime));
        return (*ret_lock = open_own_state(c, e)) < 0 ? -1 : 0;
    }
    r = starter_fork();
    if (r < 0)
        return err_set(e, ERR_INTERNAL, -r, "start the starter");
    if (allow_files(c, e) < 0 || choose_account(c, &to, e) < 0)
        return -1;
    *ret_lock = geteuid() == 0 ? handover_state(c, &to, e) : open_own_state(c, e);
    if (*ret_lock < 0)
        return -1;
    add_settings(&paths, c);
    add_postgres(&paths);
    add_reports(&paths);
    if (to.uid != geteuid() && change_user(c, &to, keep, &paths, e) < 0)
        return -1;
    if (geteuid() == 0)
        log_warn("setting 'user': holtd stays root");
    add_system(&paths);
    r = confine_caps(keep);
    if (r == 0)
        r = confine_self();
    if (r < 0)
        return err_set(e, ERR_INTERNAL, -r, "give up rights");
    (void)setenv("SQLITE_TMPDIR", c->state, 1); /* where SQLite may make temporary files */
    lock_up(&paths, &files, &calls);
    log_info("rights were given up", LOG_N("user", geteuid()),
             LOG_C("capabilities", keep ? "net_bind_service" : "none"),
             LOG_C("files", files ? "own directories" : "all"),
             LOG_C("calls", calls ? "listed" : "all"));
    return 0;
}
