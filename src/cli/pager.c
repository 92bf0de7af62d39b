/* pager: starts the pager with a pipe as its input. */
#include "cli/pager.h"

#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static const char *pager_command(void)
{
    const char *own = getenv("HOLT_PAGER"), *usual = getenv("PAGER");

    return own ? own : usual ? usual : "less";
}

void pager_start(struct pager *p)
{
    const char *command = pager_command();
    char *argv[] = {(char *)(uintptr_t)"sh", (char *)(uintptr_t)"-c", (char *)(uintptr_t)command,
                    NULL};
    posix_spawn_file_actions_t files;
    int fds[2];

    if (!*command || strcmp(command, "cat") == 0 || pipe2(fds, O_CLOEXEC) < 0)
        return;
    /* As git: quit when it fits on the screen, keep colours, leave the screen as it is. */
    (void)setenv("LESS", "FRX", 0);
    (void)posix_spawn_file_actions_init(&files);
    (void)posix_spawn_file_actions_adddup2(&files, fds[0], STDIN_FILENO);
    if (posix_spawn(&p->pid, "/bin/sh", &files, NULL, argv, environ) == 0 &&
        dup2(fds[1], STDOUT_FILENO) >= 0)
        (void)signal(SIGINT, SIG_IGN); /* it is the pager's: it ends first */
    else
        p->pid = 0;
    (void)posix_spawn_file_actions_destroy(&files);
    fd_close(fds[0]);
    fd_close(fds[1]);
}

void pager_end(struct pager *p)
{
    int status;

    if (p->pid <= 0)
        return;
    (void)close(STDOUT_FILENO);
    while (waitpid(p->pid, &status, 0) < 0 && errno == EINTR) {
    }
    (void)open("/dev/null", O_WRONLY);
}
