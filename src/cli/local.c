/* local: starts a holtd for one command, and ends it. */
#include "cli/local.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "cli/context.h"
#include "cli/installation.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define START_MS 30000
#define END_MS 20000
#define LOOK_MS 50
#define SAID_MAX 65536

static bool named_elsewhere(const struct cli *c)
{
    return c->server || c->context || getenv("HOLT_SERVER") || getenv("HOLT_CONTEXT");
}

static bool is_listening(const char *path)
{
    AUTO(fd_close) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_un at = {.sun_family = AF_UNIX};

    (void)snprintf(at.sun_path, sizeof at.sun_path, "%s", path);
    return fd >= 0 && connect(fd, (struct sockaddr *)&at, sizeof at) == 0;
}

/* Its own words are kept for the case that it does not start. */
static pid_t start_holtd(const char *program, const char *state, const char *config,
                         const char *listen, int said)
{
    const char *argv[] = {program, "--state",
                          state,   "--listen",
                          listen,  "--preview-listen",
                          "",      "--pool-size",
                          "0",     config ? "--config" : NULL,
                          config,  NULL};
    pid_t pid = fork();

    if (pid != 0)
        return pid;
    (void)prctl(PR_SET_PDEATHSIG, SIGTERM); /* a killed command leaves no daemon */
    (void)setpgid(0, 0);                    /* Ctrl-C is for the command, which then ends it */
    (void)dup2(said, STDOUT_FILENO);
    (void)dup2(said, STDERR_FILENO);
    (void)unsetenv("HOLT_TOKEN");
    (void)execv(program, (char *const *)(uintptr_t)argv);
    _exit(127);
}

static int not_started(int said, struct err *e)
{
    char text[SAID_MAX + 1];
    ssize_t n = pread(said, text, SAID_MAX, 0);
    struct str rest = str_make(text, n > 0 ? (size_t)n : 0), last = STR("");

    while (rest.n > 0) {
        struct str line = str_cut(rest, '\n', &rest);

        if (line.n > 0)
            last = line;
    }
    (void)err_set(e, ERR_UNAVAILABLE, 0, "holtd did not start: " STR_FMT,
                  (int)size_min(last.n, 200), last.p);
    return err_hint(e, "start it yourself with holtd to see more");
}

static int wait_for(struct local *l, const char *path, int said, struct err *e)
{
    int64_t until = clock_mono_ms() + START_MS;

    while (clock_mono_ms() < until) {
        if (is_listening(path))
            return 0;
        if (waitpid(l->pid, NULL, WNOHANG) == l->pid) {
            l->pid = 0;
            return not_started(said, e);
        }
        (void)poll(NULL, 0, LOOK_MS);
    }
    return not_started(said, e);
}

static char *holtd_path(void)
{
    char exe[4096] = "";
    ssize_t n = readlink("/proc/self/exe", exe, sizeof exe - 1);
    char *slash = n > 0 ? strrchr(exe, '/') : NULL;

    if (slash)
        *slash = '\0';
    return xasprintf("%s/holtd", slash ? exe : ".");
}

int local_open(struct cli *c, const json_t *args, struct local *ret, struct err *e)
{
    AUTO(mem_free)
    char *state = args_str(args, "state") ? xstrdup(args_str(args, "state")) : state_dir();
    AUTO(mem_free) char *path = xasprintf("%s/holt-vm.sock", state);
    AUTO(mem_free) char *listen = xasprintf("unix:%s", path);
    AUTO(mem_free) char *program = holtd_path();
    AUTO(fd_close) int said = memfd_create("holtd", MFD_CLOEXEC);
    struct installation i;
    int r;

    *ret = (struct local){0};
    if (named_elsewhere(c))
        return 0;
    r = installation_open(state, &i, e);
    if (r < 0)
        return -1;
    (void)setenv("HOLT_STATE", state, 1); /* its token is there */
    if (r > 0 && installation_find(&i, PART_HOLTD) > 0)
        return 0;
    ret->pid = start_holtd(program, state, args_str(args, "config"), listen, said);
    if (ret->pid < 0) {
        ret->pid = 0;
        return err_set(e, ERR_INTERNAL, errno, "start '%s'", program);
    }
    if (wait_for(ret, path, said, e) < 0) {
        local_close(ret);
        return -1;
    }
    c->server = ret->server = TAKE(listen);
    return 0;
}

void local_close(struct local *l)
{
    int64_t until = clock_mono_ms() + END_MS;

    if (l->pid > 0) {
        (void)kill(l->pid, SIGTERM);
        while (waitpid(l->pid, NULL, WNOHANG) == 0 && clock_mono_ms() < until)
            (void)poll(NULL, 0, LOOK_MS);
        if (clock_mono_ms() >= until) {
            (void)kill(l->pid, SIGKILL);
            (void)waitpid(l->pid, NULL, 0);
        }
    }
    mem_free(l->server);
    *l = (struct local){0};
}
