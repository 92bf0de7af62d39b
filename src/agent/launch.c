/* launch: fork, and what comes before execve. */
#include "agent/launch.h"

#include "base/arena.h"
#include "base/fd.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

extern char **environ;

struct plan { /* all that the child needs: it may not allocate */
    char **argv, **env;
    const char *cwd;
    int in, out, err, failure;
    bool pty, user;
    uid_t uid;
    gid_t gid;
    const char *name;
};

/* --- what to run --- */

static bool is_given(const struct agentic_command_request *q, struct str name)
{
    for (size_t i = 0; i < q->env_count; i++)
        if (str_eq(q->env[i].key, name))
            return true;
    return false;
}

static char **plan_env(struct arena *a, const struct agentic_command_request *q)
{
    size_t own = 0, n = 0;
    char **env;

    while (environ[own])
        own++;
    env = arena_zalloc(a, (own + q->env_count + 2) * sizeof *env);
    for (size_t i = 0; i < q->env_count; i++)
        env[n++] =
            arena_printf(a, STR_FMT "=" STR_FMT, STR_ARG(q->env[i].key), STR_ARG(q->env[i].value));
    if (q->allocate_pty && !is_given(q, STR("TERM")))
        env[n++] = arena_printf(a, "TERM=%s",
                                q->pty_term.n > 0 ? arena_cstr(a, q->pty_term) : "xterm-256color");
    for (size_t i = 0; i < own; i++) {
        struct str name = str_cut(str_of(environ[i]), '=', &(struct str){0});

        if (!is_given(q, name) && !(q->allocate_pty && str_eq_c(name, "TERM")))
            env[n++] = environ[i];
    }
    return env;
}

static int plan_user(struct arena *a, struct str name, struct plan *p, struct err *e)
{
    const struct passwd *w;

    if (name.n == 0)
        return 0;
    w = getpwnam(arena_cstr(a, name));
    if (!w)
        return err_set(e, ERR_NOT_FOUND, 0, "there is no user '%s'", arena_cstr(a, name));
    if (w->pw_uid == geteuid())
        return 0;
    if (geteuid() != 0)
        return err_set(e, ERR_FORBIDDEN, 0, "this agent may not become user '%s'", w->pw_name);
    p->user = true;
    p->uid = w->pw_uid;
    p->gid = w->pw_gid;
    p->name = arena_cstr(a, str_of(w->pw_name));
    return 0;
}

static int plan_make(struct arena *a, const struct agentic_command_request *q, struct plan *p,
                     struct err *e)
{
    const char *home = getenv("HOME");

    p->argv = arena_zalloc(a, (q->args_count + 2) * sizeof *p->argv);
    p->argv[0] = arena_cstr(a, q->command);
    for (size_t i = 0; i < q->args_count; i++)
        p->argv[i + 1] = arena_cstr(a, q->args[i]);
    p->env = plan_env(a, q);
    p->cwd = q->working_dir.n > 0 ? arena_cstr(a, q->working_dir) : home ? home : "/";
    p->pty = q->allocate_pty;
    return plan_user(a, q->run_as, p, e);
}

/* --- descriptors --- */

struct ends {
    int pair[2];
};
#define NO_ENDS ((struct ends){{-1, -1}})

static void ends_close_p(struct ends *x)
{
    fd_close(x->pair[0]);
    fd_close(x->pair[1]);
}

static int make_pipe(struct ends *x, struct err *e)
{
    if (pipe2(x->pair, O_CLOEXEC) < 0)
        return err_set(e, ERR_INTERNAL, errno, "make a pipe");
    return 0;
}

static int never_block(int fd)
{
    return fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

static int open_terminal(const struct agentic_command_request *q, struct ends *x, struct err *e)
{
    const struct winsize size = {.ws_row = (unsigned short)(q->pty_rows ? q->pty_rows : 24),
                                 .ws_col = (unsigned short)(q->pty_cols ? q->pty_cols : 80)};
    char path[64];

    x->pair[0] = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (x->pair[0] < 0 || grantpt(x->pair[0]) < 0 || unlockpt(x->pair[0]) < 0 ||
        ptsname_r(x->pair[0], path, sizeof path) != 0)
        return err_set(e, ERR_INTERNAL, errno, "open a terminal");
    x->pair[1] = open(path, O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (x->pair[1] < 0)
        return err_set(e, ERR_INTERNAL, errno, "open a terminal");
    (void)ioctl(x->pair[0], TIOCSWINSZ, &size);
    return 0;
}

/* --- the child --- */

static void child_fail(const struct plan *p)
{
    int sys = errno;

    (void)!write(p->failure, &sys, sizeof sys);
    _exit(127);
}

static void child_user(const struct plan *p)
{
    if (p->user && (initgroups(p->name, p->gid) < 0 || setgid(p->gid) < 0 || setuid(p->uid) < 0))
        child_fail(p);
}

static void child_run(const struct plan *p)
{
    sigset_t none;

    (void)setsid();
    if (p->pty && ioctl(p->in, TIOCSCTTY, 0) < 0)
        child_fail(p);
    if (dup2(p->in, 0) < 0 || dup2(p->out, 1) < 0 || dup2(p->err, 2) < 0)
        child_fail(p);
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    (void)signal(SIGPIPE, SIG_DFL);
    child_user(p);
    if (chdir(p->cwd) < 0)
        child_fail(p);
    environ = p->env;
    (void)execvp(p->argv[0], p->argv);
    child_fail(p);
}

int launch(const struct agentic_command_request *q, struct launched *ret, struct err *e)
{
    AUTO(arena_done) struct arena a = {0};
    AUTO(ends_close) struct ends in = NO_ENDS;
    AUTO(ends_close) struct ends out = NO_ENDS;
    AUTO(ends_close) struct ends err = NO_ENDS;
    AUTO(ends_close) struct ends failure = NO_ENDS;
    struct plan p = {0};
    pid_t pid;

    if (plan_make(&a, q, &p, e) < 0 || make_pipe(&failure, e) < 0)
        return -1;
    if (p.pty ? open_terminal(q, &out, e) < 0
              : make_pipe(&in, e) < 0 || make_pipe(&out, e) < 0 || make_pipe(&err, e) < 0)
        return -1;
    p.in = p.pty ? out.pair[1] : in.pair[0];
    p.out = out.pair[1];
    p.err = p.pty ? out.pair[1] : err.pair[1];
    p.failure = failure.pair[1];
    if (never_block(failure.pair[0]) < 0 || never_block(out.pair[0]) < 0 ||
        (!p.pty && (never_block(in.pair[1]) < 0 || never_block(err.pair[0]) < 0)))
        return err_set(e, ERR_INTERNAL, errno, "make a pipe");
    pid = fork();
    if (pid < 0)
        return err_set(e, ERR_INTERNAL, errno, "make a process");
    if (pid == 0)
        child_run(&p);
    *ret = (struct launched){.pid = pid,
                             .in = p.pty ? -1 : TAKE_FD(in.pair[1]),
                             .out = TAKE_FD(out.pair[0]),
                             .err = p.pty ? -1 : TAKE_FD(err.pair[0]),
                             .failure = TAKE_FD(failure.pair[0])};
    return 0;
}

/* --- a session --- */

/* proc(5): in /proc/PID/stat the session is the fourth field behind the name, which ends with the
 * last ')'. */
static pid_t session_of(const char *pid)
{
    AUTO(buf_done) struct buf text = {0};
    char path[64];
    const char *p;
    int ppid, group, session;
    char state;

    (void)snprintf(path, sizeof path, "/proc/%.20s/stat", pid);
    if (file_read(path, 4096, &text) < 0)
        return -1;
    p = strrchr(buf_cstr(&text), ')');
    if (!p || sscanf(p + 1, " %c %d %d %d", &state, &ppid, &group, &session) != 4)
        return -1;
    return session;
}

void launch_signal_session(pid_t session, int signal)
{
    DIR *dir = opendir("/proc");
    struct dirent *at;

    while (dir && (at = readdir(dir)))
        if (at->d_name[0] >= '1' && at->d_name[0] <= '9' && session_of(at->d_name) == session)
            (void)kill((pid_t)strtol(at->d_name, NULL, 10), signal);
    if (dir)
        (void)closedir(dir);
    (void)kill(-session, signal); /* before its setsid: nothing */
    (void)kill(session, signal);
}
