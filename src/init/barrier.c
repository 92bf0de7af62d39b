/* barrier: restricts init with Landlock as far as the kernel's version allows. */
#include "init/barrier.h"

#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* linux/landlock.h of Debian 12 lacks these. */
enum {
    CREATE = 444,
    ADD_RULE = 445,
    RESTRICT_SELF = 446,
    ASK_VERSION = 1,
    PATH_BENEATH = 1,
    ABI_REFER = 2, /* needed: before it, renames between directories cannot be allowed */
    ABI_IOCTL_DEV = 5,
    ABI_SCOPES = 6,
};
#define MAKE_BLOCK (1ULL << 11)
#define REFER (1ULL << 13)
#define IOCTL_DEV (1ULL << 15)
#define SCOPE_ALL 3ULL /* abstract Unix sockets, signals */

struct ruleset {
    uint64_t fs, net, scoped;
};
struct beneath {
    uint64_t allowed;
    int32_t parent;
} __attribute__((packed));

static int allow(int set, const char *path, uint64_t what)
{
    struct beneath b = {.allowed = what, .parent = open(path, O_PATH | O_CLOEXEC)};
    AUTO(fd_close) int dir = b.parent;

    if (what == 0)
        return 0;
    return dir < 0 || syscall(ADD_RULE, set, PATH_BENEATH, &b, 0) < 0 ? -errno : 0;
}

void barrier_raise(bool nests)
{
    long abi = syscall(CREATE, NULL, 0, ASK_VERSION);
    struct ruleset r = {.scoped = abi >= ABI_SCOPES ? SCOPE_ALL : 0};
    AUTO(fd_close) int set = -1;
    int bad;

    if (abi >= ABI_REFER && !nests)
        r.fs = REFER | MAKE_BLOCK | (abi >= ABI_IOCTL_DEV ? IOCTL_DEV : 0);
    if (r.fs == 0 && r.scoped == 0)
        return;
    set = (int)syscall(CREATE, &r, sizeof r, 0);
    bad = set < 0 ? -errno : allow(set, "/", r.fs & REFER);
    if (bad == 0)
        bad = allow(set, "/dev", r.fs & IOCTL_DEV);
    if (bad == 0 && syscall(RESTRICT_SELF, set, 0) < 0)
        bad = -errno;
    if (bad < 0) /* the other protections remain */
        (void)fprintf(stderr, "holt-init: raise Landlock: %s\n", strerror(-bad));
}
