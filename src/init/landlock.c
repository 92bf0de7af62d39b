/* landlock: rulesets, rules and their enforcement. */
#include "init/landlock.h"

#include <errno.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { CREATE = 444, ADD_RULE = 445, RESTRICT_SELF = 446, ASK_VERSION = 1, PATH_BENEATH = 1 };

struct ruleset {
    uint64_t fs, net, scoped;
};
struct beneath {
    uint64_t allowed;
    int32_t parent;
} __attribute__((packed));

int landlock_version(void)
{
    long v = syscall(CREATE, NULL, 0, ASK_VERSION);

    return v < 0 ? 0 : (int)v;
}

/* Older kernels refuse a longer structure only if what they do not know is not zero. */
int landlock_set(uint64_t fs, uint64_t scopes)
{
    const struct ruleset r = {.fs = fs, .scoped = scopes};
    long fd = syscall(CREATE, &r, sizeof r, 0);

    return fd < 0 ? -errno : (int)fd;
}

int landlock_allow(int set, int at, uint64_t what)
{
    const struct beneath b = {.allowed = what, .parent = at};

    return what != 0 && syscall(ADD_RULE, set, PATH_BENEATH, &b, 0) < 0 ? -errno : 0;
}

int landlock_enforce(int set)
{
    return syscall(RESTRICT_SELF, set, 0) < 0 ? -errno : 0;
}
