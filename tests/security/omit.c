/* Linked into holt-spawn-unguarded in src/spawn/apply.c's stead: leaves out the one guard that
 * HOLT_OMIT names, so that test_guards.py can show that an attempt fails without it.  A step's name
 * leaves out the step; the others are done at the system calls (ld's --wrap).  holt-spawn has none
 * of this. */
#include "base/fd.h"
#include "spawn/mnt.h"
#include "spawn/sandbox.h"

#include <linux/mount.h>
#include <linux/sched.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

int __real_mount(const char *from, const char *to, const char *type, unsigned long flags,
                 const void *data);
int __wrap_mount(const char *from, const char *to, const char *type, unsigned long flags,
                 const void *data);
int __real_setns(int fd, int kind);
int __wrap_setns(int fd, int kind);
int __real_unshare(int flags);
int __wrap_unshare(int flags);
int __real_mnt_set(const char *path, uint64_t attributes);
int __wrap_mnt_set(const char *path, uint64_t attributes);
long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);

static bool omits(const char *guard)
{
    const char *name = getenv("HOLT_OMIT");

    return name && strcmp(name, guard) == 0;
}

int setup_apply(const struct setup_step *step, struct sandbox *s, struct err *e)
{
    if (omits(step->name))
        return 0;
    if (omits("command filter") && strcmp(step->name, "descriptors") == 0)
        host.filter.command_fd = memfd_create("none", MFD_CLOEXEC); /* init reads no rule from it */
    return step->apply(s, e);
}

/* "terminals", "disk": the limit among a filesystem's options. */
int __wrap_mount(const char *from, const char *to, const char *type, unsigned long flags,
                 const void *data)
{
    const char *options = data;

    if (options && omits("terminals") && type && strcmp(type, "devpts") == 0)
        options = "newinstance,ptmxmode=0666,mode=620";
    if (options && omits("disk") && type && strcmp(type, "tmpfs") == 0 &&
        strstr(options, "nr_inodes"))
        options = "mode=755";
    return __real_mount(from, to, type, flags, options);
}

/* "network": all stay in the host's namespace. */
int __wrap_setns(int fd, int kind)
{
    return omits("network") && kind == CLONE_NEWNET ? 0 : __real_setns(fd, kind);
}

int __wrap_unshare(int flags)
{
    return __real_unshare(omits("network") ? flags & ~CLONE_NEWNET : flags);
}

/* "read-only": the host's /usr and the shared /dev. */
int __wrap_mnt_set(const char *path, uint64_t attributes)
{
    if (omits("read-only"))
        attributes &= ~(uint64_t)MOUNT_ATTR_RDONLY;
    return __real_mnt_set(path, attributes);
}

/* "queues": the ipc namespace. */
long __wrap_syscall(long number, ...)
{
    va_list ap;
    long a[6];

    va_start(ap, number);
    for (size_t i = 0; i < ARRAY_LEN(a); i++)
        a[i] = va_arg(ap, long);
    va_end(ap);
    if (number == SYS_clone3 && omits("queues"))
        ((struct clone_args *)a[0])->flags &= ~(uint64_t)CLONE_NEWIPC;
    return __real_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
