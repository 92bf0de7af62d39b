/* holt-init: PID 1 of every sandbox. */

/* Usage: holt-init --wait PORT
 *        holt-init --listen-fd N | --port PATH [--filter-fd N] [--work-fd N] [--files N]
 *        [--guard-fd N] [--hand 0] [--barrier files|scopes] [--relay PATH] [--hub ADDRESS:PORT]
 * [--process-port N]
 *        [--more-fd N] [--power-fd N] [--out 1]
 * With --wait it is a machine's first program and gets its options by orders (init/machine.h);
 * power is the open port of those.  out: connections out of the machine are led to holtd.
 * The filter is for commands, on top of init's own; work is the cgroup they live in; files is how
 * many a command may have open.  Commands reach holtd's API at the relay's path and the hub's
 * address, and process_api on process-port.  more is a pipe with further arguments, each
 * with its NUL, written once the sandbox is claimed.  guard is a filter for init itself; hand:
 * connections come over standard input. */
#include "base/fd.h"
#include "base/loop.h"
#include "init/builder.h"
#include "init/conn.h"
#include "init/dial.h"
#include "init/exec.h"
#include "init/group.h"
#include "init/job.h"
#include "init/kin.h"
#include "init/launch.h"
#include "init/machine.h"
#include "init/out.h"
#include "wire/init_order.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <linux/sched/types.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define SIGNALS_AT_ONCE 4
#define REAPED_AT_ONCE 256
#define TURN_NS 100000
#define MORE_MAX 10 /* arguments from the pipe */

static struct watch signals = {.fd = -1};
static bool more_ended;

/* Any process can send the signal: obey only the order that holt-spawn has stored. */
static void look_at_order(void)
{
    static struct init_order done;
    struct rlimit own;
    struct init_order order;

    if (getrlimit(RLIMIT_LOCKS, &own) < 0)
        return;
    order = init_order_from(own.rlim_cur);
    if (order.kills != done.kills)
        kin_kill_all();
    kin_pause(order.paused);
    done = order;
}

/* Bounded: commands may end without pause.  Stop only after a turn found no ended child: one signal
 * stands for all children that ended before it was read. */
static void reap(void)
{
    struct rusage ru;
    int status, i = 0;
    pid_t pid = 0;

    builder_await(); /* it is the first of our children */
    while (i++ < REAPED_AT_ONCE && (pid = wait4(-1, &status, WNOHANG, &ru)) > 0) {
        exec_reaped(pid, status, &ru);
        job_reaped(pid, status);
    }
    more_ended = pid > 0;
}

static void on_signal(struct watch *w, uint32_t events)
{
    struct signalfd_siginfo si;

    (void)events;
    /* Bounded: commands may send signals without pause.  The rest follows in the next turn. */
    for (int i = 0; i < SIGNALS_AT_ONCE && read(w->fd, &si, sizeof si) == (ssize_t)sizeof si; i++)
        if (si.ssi_signo == INIT_LOOK)
            look_at_order();
    reap();
}

/* With a short time slice (Linux 6.12), busy commands delay init only briefly; our children have
 * the usual one. */
static void take_short_turns(void)
{
    struct sched_attr a = {.size = sizeof a,
                           .sched_policy = SCHED_NORMAL,
                           .sched_flags = SCHED_FLAG_RESET_ON_FORK,
                           .sched_nice = getpriority(PRIO_PROCESS, 0),
                           .sched_runtime = TURN_NS};

    (void)syscall(SYS_sched_setattr, 0, &a, 0);
}

static void watch_signals(void)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    if (getpid() == 1)
        sigaddset(&set, INIT_LOOK);
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

struct options {
    int listen, filter, work, more; /* inherited descriptors, or -1 */
    int guard;                      /* a filter for init and all that it starts, or -1 */
    int power;                      /* a machine's power port, or -1 */
    bool out;                       /* lead connections out */
    bool hand;                      /* connections come over standard input */
    const char *port, *relay, *hub, *barrier;
    uint64_t files;   /* 0: init's own limit */
    uint64_t process; /* its port, or 0 */
};

static int parse_fd(const char *text)
{
    uint64_t n;

    return str_parse_u64(str_of(text), &n) == 0 && n > 2 && n < 1024 &&
                   fcntl((int)n, F_SETFD, FD_CLOEXEC) == 0
               ? (int)n
               : -1;
}

static void parse(struct options *o, int argc, char **argv)
{
    for (int i = 0; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--listen-fd") == 0)
            o->listen = parse_fd(argv[i + 1]);
        else if (strcmp(argv[i], "--filter-fd") == 0)
            o->filter = parse_fd(argv[i + 1]);
        else if (strcmp(argv[i], "--work-fd") == 0)
            o->work = parse_fd(argv[i + 1]);
        else if (strcmp(argv[i], "--more-fd") == 0)
            o->more = parse_fd(argv[i + 1]);
        else if (strcmp(argv[i], "--guard-fd") == 0)
            o->guard = parse_fd(argv[i + 1]);
        else if (strcmp(argv[i], "--power-fd") == 0)
            o->power = parse_fd(argv[i + 1]);
        else if (strcmp(argv[i], "--out") == 0)
            o->out = true;
        else if (strcmp(argv[i], "--hand") == 0)
            o->hand = true;
        else if (strcmp(argv[i], "--files") == 0 &&
                 str_parse_u64(str_of(argv[i + 1]), &o->files) < 0)
            o->files = 0;
        else if (strcmp(argv[i], "--process-port") == 0 &&
                 str_parse_u64(str_of(argv[i + 1]), &o->process) < 0)
            o->process = 0;
        else if (strcmp(argv[i], "--port") == 0)
            o->port = argv[i + 1];
        else if (strcmp(argv[i], "--relay") == 0)
            o->relay = argv[i + 1];
        else if (strcmp(argv[i], "--barrier") == 0)
            o->barrier = argv[i + 1];
        else if (strcmp(argv[i], "--hub") == 0)
            o->hub = argv[i + 1];
    }
}

/* If init was loaded ahead of the request, it also makes the first command's group in advance. */
static void wait_for_more(struct options *o)
{
    static char text[256];
    struct pollfd p = {.fd = o->more, .events = POLLIN};
    char *argv[MORE_MAX];
    int argc = 0;
    ssize_t n, at = 0;

    if (poll(&p, 1, 0) == 0)
        group_idle();
    do
        n = read(o->more, text, sizeof text);
    while (n < 0 && errno == EINTR);
    if (n <= 0 || text[n - 1] != '\0')
        _exit(1); /* holt-spawn has ended, or discards this sandbox */
    (void)close(o->more);
    for (; at < n && argc < MORE_MAX; at += (ssize_t)strlen(text + at) + 1)
        argv[argc++] = text + at;
    parse(o, argc, argv);
    builder_expect(o->barrier);
}

/* Standard input is the keeper's end until it is moved out of the commands' way. */
static int take_hand(void)
{
    int fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);

    (void)close(STDIN_FILENO);
    return fd;
}

static void on_order(char what)
{
    if (what == INIT_HAND_KILL)
        kin_kill_all();
    else if (what == INIT_HAND_PAUSE || what == INIT_HAND_RESUME)
        kin_pause(what == INIT_HAND_PAUSE);
}

static int open_service(const struct options *o)
{
    int fd;

    if (o->hand) {
        conn_receive(o->listen, on_order);
        return 0;
    }

    if (o->listen >= 0) {
        if (fcntl(o->listen, F_SETFL, O_NONBLOCK) < 0)
            return -1;
        conn_listen(o->listen);
        return 0;
    }
    fd = o->port ? open(o->port, O_RDWR | O_NONBLOCK | O_NOCTTY | O_CLOEXEC) : -1;
    if (fd < 0)
        return -1;
    conn_serve(fd, true);
    return 0;
}

/* Everything that is opened by a path of the sandbox, or that commands would conflict with. */
static void open_inside(const struct options *o)
{
    int r;

    struct err e;

    if (o->out && out_open(&e) < 0)
        (void)fprintf(stderr, "holt-init: make the network: %s\n", e.msg);
    if (!o->relay && !o->process && !o->hub)
        return;
    builder_await();
    if (o->relay && (r = relay_listen(o->relay)) < 0)
        (void)fprintf(stderr, "holt-init: listen at '%s': %s\n", o->relay, strerror(-r));
    if (o->process && (r = process_listen((uint16_t)o->process)) < 0)
        (void)fprintf(stderr, "holt-init: listen on port %u: %s\n", (unsigned)o->process,
                      strerror(-r));
    if (o->hub && (r = hub_listen(o->hub)) < 0)
        (void)fprintf(stderr, "holt-init: listen at '%s': %s\n", o->hub, strerror(-r));
}

static int sooner(int a, int b)
{
    return a < 0 ? b : b < 0 ? a : a < b ? a : b;
}

int main(int argc, char **argv)
{
    struct options o = {
        .listen = -1, .filter = -1, .work = -1, .more = -1, .guard = -1, .power = -1};

    if (argc == 3 && strcmp(argv[1], "--wait") == 0)
        machine_wait(argv[2]);
    parse(&o, argc - 1, argv + 1); /* before any descriptor is opened */
    if (o.hand)
        o.listen = take_hand();
    hold_standard_fds();
    (void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0); /* no command reads our memory through /proc */
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    take_short_turns();
    (void)umask(0); /* files get exactly the requested mode; commands get 022 */
    loop_init();
    watch_signals();
    if (o.guard >= 0 && launch_guard(o.guard) < 0) {
        (void)fprintf(stderr, "holt-init: install the filter: %s\n", strerror(errno));
        return 1;
    }
    launch_setup(o.filter);
    group_setup(o.work);
    if (o.more >= 0)
        wait_for_more(&o);
    else if (o.barrier)
        builder_expect(o.barrier);
    launch_files(o.files);
    if (open_service(&o) < 0) {
        (void)fprintf(stderr, "holt-init: open the service: %s\n", strerror(errno));
        return 1;
    }
    open_inside(&o);
    if (o.power >= 0)
        machine_power(o.power);
    for (;;) {
        conn_flush();
        loop_turn(more_ended
                      ? 0
                      : sooner(group_timeout_ms(), sooner(conn_timeout_ms(), exec_timeout_ms())));
        if (more_ended)
            reap();
        if (loop_was_idle())
            group_idle();
        if (group_is_due()) { /* it may take long: report exits first */
            reap();
            conn_flush();
        }
        group_tick();
        conn_tick();
        exec_tick();
    }
}
