#include "init_start.h"

#include "base/fd.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

void init_start(struct init_start *i, const char *program, rlim_t files)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    struct rlimit limit = {files, files};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    (void)snprintf(i->dir, sizeof i->dir, "/tmp/holt-init-test.XXXXXX");
    CHECK(mkdtemp(i->dir) != NULL);
    (void)snprintf(i->sock, sizeof i->sock, "%s/init.sock", i->dir);
    (void)snprintf(i->relay, sizeof i->relay, "%s/holt.sock", i->dir);
    (void)snprintf(at.sun_path, sizeof at.sun_path, "%s", i->sock);
    CHECK(bind(fd, (struct sockaddr *)&at, sizeof at) == 0 && listen(fd, 8) == 0);
    i->pid = fork();
    if (i->pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0); /* a failed check leaves nothing */
        (void)dup2(fd, 9);
        if (files > 0)
            (void)setrlimit(RLIMIT_NOFILE, &limit);
        (void)execl(program, program, "--listen-fd", "9", "--relay", i->relay, (char *)NULL);
        _exit(127);
    }
    fd_close(fd);
}

void init_stop(struct init_start *i)
{
    int status;

    CHECK(waitpid(i->pid, &status, WNOHANG) == 0);
    (void)kill(i->pid, SIGKILL);
    CHECK(waitpid(i->pid, &status, 0) == i->pid);
    CHECK(scratch_remove(i->dir) == 0);
}
