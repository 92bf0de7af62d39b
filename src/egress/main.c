/* holt-egress: the proxy through which sandboxes reach what their policies allow (docs/egress.md).
 * Started by holtd, which it outlives; ended by SIGTERM. */
#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/rnd.h"
#include "egress/egress.h"
#include "egress/pollset.h"
#include "net/dial.h"

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
    "usage: holt-egress --state DIR [--dns ADDRESS[:PORT],…] [--cacert FILE]\n";

/* One for each state directory; the lock is held until the end. */
static int take_lock(const char *state, struct err *e)
{
    AUTO(mem_free) char *path = xasprintf("%s/egress.lock", state);
    AUTO(fd_close) int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

    if (fd < 0)
        return err_set(e, err_code_from_errno(errno), errno, "open '%s'", path);
    if (flock(fd, LOCK_EX | LOCK_NB) < 0)
        return err_set(e, ERR_CONFLICT, 0, "another holt-egress serves '%s'", state);
    return TAKE_FD(fd);
}

/* Two descriptors a connection; some are the listeners'. */
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
    const char *cacert; /* of authorities to trust besides the system's */
};

static int serve(const struct options *o, struct err *e)
{
    static struct egress all;
    uv_signal_t term, interrupt;
    AUTO(fd_close) int lock = take_lock(o->state, e);

    if (lock < 0)
        return -1;
    if (uv_loop_init(&all.loop) < 0)
        return err_set(e, ERR_INTERNAL, 0, "start the event loop");
    all.scratch = xmalloc(EGRESS_SCRATCH);
    all.connections_max = most_connections();
    all.last_question = rnd_u64() / 2; /* an answer to who was here before us is to none of ours */
    if (dial_tls_new(o->cacert, &all.trusted, e) < 0 || pollset_open(&all.loop, e) < 0 ||
        resolver_new(&all.loop, o->servers, &all.resolver, e) < 0 ||
        link_open(&all, o->state, e) < 0)
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
    (void)prctl(PR_SET_DUMPABLE, 0); /* its memory is nobody's */
    if (serve(&o, &e) < 0) {
        (void)fprintf(stderr, "holt-egress: %s\n", e.msg);
        return 1;
    }
    return 0;
}
