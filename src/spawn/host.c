/* host: what holt-spawn sets up once at its start. */
#include "spawn/host.h"

#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U /* Linux 6.3; older kernels make every memfd executable */
#endif

struct host host = {.state = -1,
                    .boxes = -1,
                    .spares = -1,
                    .init = -1,
                    .dev = -1,
                    .base_host = -1,
                    .base_points = -1,
                    .cg2 = -1,
                    .wide_allowed = true,
                    .command_filter = -1};

/* If holtd is another user, it must reach the sockets, and nothing else. */
mode_t host_box_mode(void)
{
    return host.served == geteuid() ? 0700 : 0711;
}

int host_hand_over(int dir, const char *name)
{
    if (host.served == geteuid())
        return 0;
    return fchownat(dir, name, host.served, (gid_t)-1, AT_SYMLINK_NOFOLLOW) < 0 ||
                   fchmodat(dir, name, 0600, 0) < 0
               ? -1
               : 0;
}

/* Records tell what to kill and which files to remove: no other user may have written them. */
static int open_own(const char *name, int *ret, struct err *e)
{
    AUTO(fd_close) int fd = -1;
    struct stat st;

    if (mkdirat(host.state, name, 0700) < 0 && errno != EEXIST)
        return err_set(e, err_code_from_errno(errno), errno, "make '%s/%s'", host.state_path, name);
    fd = openat(host.state, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0 || fstat(fd, &st) < 0)
        return err_set(e, err_code_from_errno(errno), errno, "open '%s/%s'", host.state_path, name);
    if (st.st_uid != geteuid() || (st.st_mode & 0022))
        return err_set(e, ERR_FORBIDDEN, 0, "others may write to '%s/%s'", host.state_path, name);
    *ret = TAKE_FD(fd);
    return 0;
}

static int open_state(const char *path, struct err *e)
{
    int r = dir_make_all(path, 0700);

    if (r < 0)
        return err_set(e, err_code_from_errno(-r), -r, "make state directory '%s'", path);
    host.state = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (host.state < 0)
        return err_set(e, err_code_from_errno(errno), errno, "open state directory '%s'", path);
    if (open_own("sb", &host.boxes, e) < 0 || open_own("shells", &host.spares, e) < 0)
        return -1;
    if (fchmod(host.boxes, host_box_mode()) < 0)
        return err_set(e, err_code_from_errno(errno), errno, "open '%s/sb' to holtd", path);
    return 0;
}

/* Sealed: a sandbox that opens /proc/1/exe for writing changes nothing, here or elsewhere.  Not
 * readable: the kernel then assigns init's memory to the user namespace that may read the file,
 * ours (exec's would_dump), so that root inside cannot trace init or read its /proc entries. */
static int seal_init(const char *program, struct err *e)
{
    AUTO(buf_done) struct buf content = {0};
    AUTO(fd_close) int fd = -1;
    int r = file_read(program, 16 << 20, &content);

    if (r < 0)
        return err_set(e, err_code_from_errno(-r), -r, "read '%s'", program);
    fd = memfd_create("holt-init", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_EXEC);
    if (fd < 0 && errno == EINVAL)
        fd = memfd_create("holt-init", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0)
        return err_set(e, ERR_INTERNAL, errno, "make a memory file for '%s'", program);
    r = fd_write_all(fd, buf_data(&content), buf_len(&content));
    if (r < 0 || fchmod(fd, 0111) < 0 ||
        fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) < 0)
        return err_set(e, ERR_INTERNAL, r < 0 ? -r : errno, "seal '%s'", program);
    host.init = TAKE_FD(fd);
    return 0;
}

int host_allow(const char *path, bool writable, struct err *e)
{
    if (host.allowed_n == HOST_ALLOWED_MAX)
        return err_set(e, ERR_INVALID, 0, "more than %d allowed directories", HOST_ALLOWED_MAX);
    if (path[0] != '/' || path[1] == '\0' || path[strlen(path) - 1] == '/')
        return err_set(e, ERR_INVALID, 0, "allowed directory '%s' is not a plain absolute path",
                       path);
    host.allowed[host.allowed_n++] = (struct host_allowed){path, -1, writable};
    return 0;
}

static int open_allowed(struct err *e)
{
    for (size_t i = 0; i < host.allowed_n; i++) {
        struct host_allowed *a = &host.allowed[i];

        a->fd = open(a->path, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (a->fd < 0)
            return err_set(e, err_code_from_errno(errno), errno, "open allowed directory '%s'",
                           a->path);
    }
    return 0;
}

int host_init(const char *state, const char *init_program, struct err *e)
{
    host.state_path = state;
    for (int i = 0; i < CG1_COUNT; i++)
        host.cg1[i] = -1;
    host.rootless = geteuid() != 0;
    host.many_ids = !host.rootless;
    if (host.rootless && host_become_root(e) < 0)
        return -1;
    if (host.rootless)
        host.served = 0; /* our own user, as seen in this namespace */
    /* Our own mount namespace: our mounts are invisible to others and end with us. */
    if (unshare(CLONE_NEWNS | CLONE_NEWIPC) < 0 ||
        mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        return err_set(e, ERR_UNSUPPORTED, errno, "make a mount namespace");
    /* Only now: a directory opened before belongs to the old namespace, where we cannot mount. */
    if (open_state(state, e) < 0 || seal_init(init_program, e) < 0)
        return -1;
    if (host_open_cgroups(e) < 0 || host_make_base(e) < 0 || host_make_dev(e) < 0 ||
        host_find_runtimes(e) < 0 || host_compile_filter(e) < 0 || open_allowed(e) < 0)
        return -1;
    host.features |=
        SPAWN_CAN_DISK | SPAWN_CAN_NOFILE | (host.many_ids ? (uint32_t)SPAWN_CAN_USERS : 0);
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    return 0;
}
