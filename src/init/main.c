/* holt-init: PID 1 of every sandbox.  Usage: holt-init --listen-fd N, or holt-init --port PATH. */
#include "base/fd.h"
#include "base/loop.h"
#include "init/conn.h"
#include "init/exec.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static struct watch signals = {.fd = -1};

static void on_signal(struct watch *w, uint32_t events)
{
    struct signalfd_siginfo si;
    struct rusage ru;
    int status;
    pid_t pid;

    (void)events;
    while (read(w->fd, &si, sizeof si) == (ssize_t)sizeof si)
        ;
    while ((pid = wait4(-1, &status, WNOHANG, &ru)) > 0)
        exec_reaped(pid, status, &ru);
}

static void watch_signals(void)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    (void)sigprocmask(SIG_SETMASK, &set, NULL);
    (void)signal(SIGPIPE, SIG_IGN);
    loop_add(&signals, signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK), on_signal);
    loop_want(&signals, EPOLLIN);
}

/* 0, 1 and 2 are never a command's pipe: launch relies on it. */
static void hold_standard_fds(void)
{
    int fd;

    do
        fd = open("/dev/null", O_RDWR);
    while (fd >= 0 && fd < 2);
    if (fd > 2)
        (void)close(fd);
}

static int open_service(int argc, char **argv)
{
    uint64_t n;
    int fd;

    if (argc == 3 && strcmp(argv[1], "--listen-fd") == 0 &&
        str_parse_u64(str_of(argv[2]), &n) == 0 && n < 1024) {
        fd = (int)n;
        if (fcntl(fd, F_SETFD, FD_CLOEXEC) < 0 || fcntl(fd, F_SETFL, O_NONBLOCK) < 0)
            return -1;
        conn_listen(fd);
        return 0;
    }
    if (argc == 3 && strcmp(argv[1], "--port") == 0) {
        fd = open(argv[2], O_RDWR | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        if (fd < 0)
            return -1;
        conn_serve(fd, true);
        return 0;
    }
    errno = EINVAL;
    return -1;
}

static int sooner(int a, int b)
{
    return a < 0 ? b : b < 0 ? a : a < b ? a : b;
}

int main(int argc, char **argv)
{
    hold_standard_fds();
    (void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0); /* no command reads our memory through /proc */
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    (void)umask(0022);
    loop_init();
    watch_signals();
    if (open_service(argc, argv) < 0) {
        (void)fprintf(stderr, "holt-init: open the service: %s\n", strerror(errno));
        return 1;
    }
    for (;;) {
        loop_turn(sooner(conn_timeout_ms(), exec_timeout_ms()));
        conn_tick();
        exec_tick();
    }
}
