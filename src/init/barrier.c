/* barrier: restricts init with Landlock as far as the kernel's version allows. */
#include "init/barrier.h"

#include "base/fd.h"
#include "init/landlock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

static int allow_below(int set, const char *path, uint64_t what)
{
    AUTO(fd_close) int dir = open(path, O_PATH | O_CLOEXEC);

    return dir < 0 ? -errno : landlock_allow(set, dir, what);
}

static int raise_rules(uint64_t fs, uint64_t scopes)
{
    AUTO(fd_close) int set = landlock_set(fs, scopes);
    int bad = set < 0 ? set : allow_below(set, "/", fs & LANDLOCK_REFER);

    if (bad == 0 && (fs & LANDLOCK_IOCTL_DEV))
        bad = allow_below(set, "/dev", LANDLOCK_IOCTL_DEV);
    return bad < 0 ? bad : landlock_enforce(set);
}

void barrier_raise(bool nests)
{
    int version = landlock_version();
    uint64_t fs = 0, scopes = version >= LANDLOCK_HAS_SCOPES ? LANDLOCK_SCOPES : 0;
    int bad = 0;

    if (version >= LANDLOCK_HAS_REFER && !nests)
        fs = LANDLOCK_REFER | LANDLOCK_MAKE_BLOCK |
             (version >= LANDLOCK_HAS_IOCTL_DEV ? LANDLOCK_IOCTL_DEV : 0);
    if (fs != 0 || scopes != 0)
        bad = raise_rules(fs, scopes);
    if (bad < 0) /* the other protections remain */
        (void)fprintf(stderr, "holt-init: raise Landlock: %s\n", strerror(-bad));
}
