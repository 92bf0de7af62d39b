#include "init/group.h"

#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define PROCS_MAX (64 * 1024)

static int work_fd = -1;
static uint32_t next = 1;
static uint32_t oldest = 1; /* groups below are gone */

static void name_of(uint32_t number, const char *file, char *to, size_t size)
{
    (void)snprintf(to, size, "ex_%u%s", number, file);
}

void group_setup(int work)
{
    struct stat st;

    if (work < 0 || fstat(work, &st) < 0 || !S_ISDIR(st.st_mode))
        return;
    (void)fcntl(work, F_SETFD, FD_CLOEXEC);
    work_fd = work;
}

int group_make(uint32_t *ret_number)
{
    char name[32];

    if (work_fd < 0)
        return -1;
    name_of(next, "", name, sizeof name);
    if (mkdirat(work_fd, name, 0755) < 0)
        return -1;
    *ret_number = next++;
    return openat(work_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static bool kill_all(uint32_t number)
{
    char name[48];
    AUTO(fd_close) int fd = -1;

    name_of(number, "/cgroup.kill", name, sizeof name);
    fd = openat(work_fd, name, O_WRONLY | O_CLOEXEC);
    return fd >= 0 && write(fd, "1", 1) == 1;
}

bool group_signal(uint32_t number, int signal)
{
    AUTO(buf_done) struct buf text = {0};
    AUTO(fd_close) int fd = -1;
    char name[48];
    struct str rest;

    if (number == 0)
        return false;
    if (signal == SIGKILL)
        return kill_all(number);
    name_of(number, "/cgroup.procs", name, sizeof name);
    fd = openat(work_fd, name, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fd_read_all(fd, PROCS_MAX, &text) < 0)
        return false;
    for (rest = buf_str(&text); rest.n > 0;) {
        uint64_t pid;

        if (str_parse_u64(str_cut(rest, '\n', &rest), &pid) == 0 && pid > 1 && pid <= INT32_MAX)
            (void)kill((pid_t)pid, signal);
    }
    return true;
}

/* A command may leave others behind: its group stays until a later removal finds it empty. */
void group_remove(uint32_t number)
{
    char name[32];

    if (number == 0)
        return;
    name_of(number, "", name, sizeof name);
    (void)unlinkat(work_fd, name, AT_REMOVEDIR);
    for (int tries = 0; oldest < next && tries < 4; tries++) {
        name_of(oldest, "", name, sizeof name);
        if (unlinkat(work_fd, name, AT_REMOVEDIR) < 0 && errno == EBUSY)
            return;
        oldest++;
    }
}
