/* launch: finds programs, starts ones that outlive this process, ties children to it. */
#include "base/launch.h"

#include "base/mem.h"
#include "base/str.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

int launch_detached(const char *program, char *const *argv, const char *log, pid_t *ret)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t how;
    sigset_t none, child;
    struct stat st;
    int r, begin = stat(log, &st) == 0 && st.st_size > LAUNCH_LOG_MAX ? O_TRUNC : 0;

    sigemptyset(&none);
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    (void)posix_spawn_file_actions_init(&files);
    (void)posix_spawnattr_init(&how);
    (void)posix_spawnattr_setflags(&how, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK |
                                             POSIX_SPAWN_SETSIGDEF);
    (void)posix_spawnattr_setsigmask(&how, &none);
    (void)posix_spawnattr_setsigdefault(&how, &child);
    r = posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
    if (r == 0)
        r = posix_spawn_file_actions_addopen(&files, 1, "/dev/null", O_WRONLY, 0);
    if (r == 0)
        r = posix_spawn_file_actions_addopen(&files, 2, log, O_WRONLY | O_CREAT | O_APPEND | begin,
                                             0600);
    /* the program outlives us: a reader of one of our pipes must not wait for its end */
    if (r == 0)
        r = posix_spawn_file_actions_addclosefrom_np(&files, 3);
    if (r == 0)
        r = posix_spawn(ret, program, &files, &how, argv, environ);
    (void)posix_spawn_file_actions_destroy(&files);
    (void)posix_spawnattr_destroy(&how);
    return -r;
}

void launch_tie(pid_t parent)
{
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    if (getppid() != parent)
        _exit(1);
}

bool find_program(const char *name, char *ret_path, size_t size)
{
    const char *path = getenv("PATH");
    AUTO(mem_free) char *all = xasprintf("%s:/usr/local/sbin:/usr/sbin:/sbin", path ? path : "");
    struct str rest = str_of(all);

    while (rest.n > 0) {
        struct str dir = str_cut(rest, ':', &rest);

        if (dir.n == 0)
            continue;
        (void)snprintf(ret_path, size, STR_FMT "/%s", STR_ARG(dir), name);
        if (access(ret_path, X_OK) == 0)
            return true;
    }
    return false;
}
