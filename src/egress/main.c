/* holt-egress: the proxy through which sandboxes reach what their policies allow. */

/* See docs/egress.md.  Started by holtd, which it outlives; ended by SIGTERM. */
#include "base/account.h"
#include "base/confine.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/rnd.h"
#include "egress/egress.h"
#include "egress/pollset.h"
#include "net/dial.h"
#include "net/plain_loop.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

static const char usage[] =
    "usage: holt-egress --state DIR [--dns ADDRESS[:PORT],…] [--cacert FILE] [--user NAME] "
    "[--for NAME]\n"
    "  --user: whom to become when started as root; --for: the user of holtd, whom it serves\n";

/* One instance per state directory; the lock is held until the end. */
static int take_lock(const char *state, struct err *e)
{
    AUTO(mem_free) char *path = xasprintf("%s/egress.lock", state);
    AUTO(fd_close) int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

    if (fd < 0)
        return err_set(e, err_code_from_errno(errno), errno, "open '%s'", path);
    if (flock(fd, LOCK_EX | LOCK_NB) < 0)
        return err_set(e, ERR_CONFLICT, 0, "another holt-egress uses '%s'", state);
    return TAKE_FD(fd);
}

/* Two descriptors per connection; some are for listeners. */
static size_t most_connections(void)
{
    return size_max(64, (size_t)fd_limit_raise() / 3);
}

static void on_signal(uv_signal_t *s, int number)
{
    (void)number;
    uv_stop(s->loop);
}

struct options {
    const char *state, *servers;
    const char *cacert; /* authorities to trust besides the system's */
    const char *user, *served;
};

/* From here on it needs names and sockets (revocation of certificates is not checked).  The
 * listener and the lock are open, the trusted certificates are read; the authority's key and
 * secrets come over the socket.  So it needs nothing of the state directory. */
static const struct confine_path readable[] = {
    {"/etc", CONFINE_READ},
    {"/run/systemd/resolve", CONFINE_READ},
    {"/run/resolvconf", CONFINE_READ},
    {"/run/NetworkManager", CONFINE_READ},
    {"/usr/lib", CONFINE_READ},
    {"/usr/lib64", CONFINE_READ},
    {"/lib", CONFINE_READ},
    {"/lib64", CONFINE_READ},
    {"/usr/share", CONFINE_READ},
    {"/proc/self", CONFINE_READ},
    {"/proc/sys/net", CONFINE_READ},
    {"/dev/urandom", CONFINE_READ},
    {"/dev/null", CONFINE_WRITE},
};

static int rights_give_up(const char *user, struct err *e)
{
    struct account to = {geteuid(), getegid()};
    int r = 0, files;

    if (geteuid() == 0 && account_find(user, "holt-egress", ACCOUNT_EGRESS, &to) < 0)
        return err_set(e, ERR_INVALID, 0, "there is no user '%s'", user);
    if (to.uid != geteuid())
        r = confine_user(to.uid, to.gid, 0);
    if (r == 0)
        r = confine_caps(0);
    if (r == 0)
        r = confine_self();
    if (r < 0)
        return err_set(e, ERR_INTERNAL, -r, "give up rights");
    files = confine_paths(readable, ARRAY_LEN(readable));
    if (files < 0)
        log_warn("holt-egress can read more files than it needs: this kernel has no Landlock");
#ifdef HOLT_SANITIZED
    log_warn("built with sanitizers, which need more system calls: they are not filtered");
#else
    r = confine_calls(&confine_loop, 1);
    if (r < 0)
        log_warn("holt-egress's system calls are not filtered: this kernel has no seccomp");
#endif
    return 0;
}

static int serve(const struct options *o, struct err *e)
{
    static struct egress all;
    uv_signal_t term, interrupt;
    AUTO(fd_close) int lock = take_lock(o->state, e);
    struct account served = {geteuid(), getegid()};

    if (lock < 0)
        return -1;
    if (o->served && account_find(o->served, "", 0, &served) < 0)
        return err_set(e, ERR_INVALID, 0, "there is no user '%s'", o->served);
    if (plain_loop_init(&all.loop) < 0)
        return err_set(e, ERR_INTERNAL, 0, "start the event loop");
    all.scratch = xmalloc(EGRESS_SCRATCH);
    all.connections_max = most_connections();
    /* answers to an earlier holt-egress must not match our questions */
    all.last_question = rnd_u64() / 2;
    if (dial_tls_new(o->cacert, &all.trusted, e) < 0 || pollset_open(&all.loop, e) < 0 ||
        resolver_new(&all.loop, o->servers, &all.resolver, e) < 0 ||
        link_open(&all, o->state, served.uid, e) < 0 || rights_give_up(o->user, e) < 0)
        return -1;
    (void)uv_signal_init(&all.loop, &term);
    (void)uv_signal_start(&term, on_signal, SIGTERM);
    (void)uv_signal_init(&all.loop, &interrupt);
    (void)uv_signal_start(&interrupt, on_signal, SIGINT);
    log_info("ready", LOG_C("state", o->state), LOG_N("pid", getpid()));
    (void)uv_run(&all.loop, UV_RUN_DEFAULT);
    log_info("stopped");
    return 0;
}

static bool parse(int argc, char **argv, struct options *ret)
{
    for (int i = 1; i < argc; i += 2) {
        if (i + 1 < argc && strcmp(argv[i], "--state") == 0)
            ret->state = argv[i + 1];
        else if (i + 1 < argc && strcmp(argv[i], "--dns") == 0)
            ret->servers = argv[i + 1];
        else if (i + 1 < argc && strcmp(argv[i], "--cacert") == 0)
            ret->cacert = argv[i + 1];
        else if (i + 1 < argc && strcmp(argv[i], "--user") == 0)
            ret->user = argv[i + 1];
        else if (i + 1 < argc && strcmp(argv[i], "--for") == 0)
            ret->served = argv[i + 1];
        else
            return false;
    }
    return ret->state != NULL;
}

int main(int argc, char **argv)
{
    struct options o = {0};
    struct err e = {0};

    if (!parse(argc, argv, &o)) {
        (void)fputs(usage, stderr);
        return 64;
    }
    (void)umask(077);
    (void)signal(SIGPIPE, SIG_IGN);
    (void)prctl(PR_SET_DUMPABLE, 0); /* no other process may read its memory */
    if (serve(&o, &e) < 0) {
        (void)fprintf(stderr, "holt-egress: %s\n", e.msg);
        return 1;
    }
    return 0;
}
