/* Linked into holtd and holt-spawn for the soak: the point that the file SOAK_POINTS names stops
 * the process (SIGSTOP), once it was reached as often as the file says.  The test sees that, kills
 * whom it wants, and lets go on who lives.  The file is mapped, so one that runs can be armed:
 *     int32 count (0: not armed; counted down), then the name. */
#include "base/point.h"

#include "base/fd.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define AHEAD_MS 20

struct armed {
    int32_t count;
    char name[60];
};

static struct armed *armed;

__attribute__((constructor)) static void map_points(void)
{
    const char *path = getenv("SOAK_POINTS");
    AUTO(fd_close) int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    void *p =
        fd < 0 ? MAP_FAILED : mmap(NULL, sizeof *armed, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    armed = p == MAP_FAILED ? NULL : p;
}

void point_reached(const char *name)
{
    if (armed && __atomic_load_n(&armed->count, __ATOMIC_ACQUIRE) > 0 &&
        strncmp(armed->name, name, sizeof armed->name) == 0 &&
        __atomic_sub_fetch(&armed->count, 1, __ATOMIC_ACQ_REL) == 0) {
        (void)poll(NULL, 0, AHEAD_MS); /* other threads go on: what they tell too early gets out */
        (void)tgkill(getpid(), gettid(), SIGSTOP); /* kill(2) is not holtd's: base/confine.h */
    }
}
