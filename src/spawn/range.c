/* range: claims of ranges of user ids, shared by every holt-spawn of the host. */
#include "spawn/range.h"

#include "base/fd.h"
#include "spawn/guards.h"
#include "spawn/host.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static uint64_t look(pid_t pid, char *ret_state)
{
    AUTO(buf_done) struct buf text = {0};
    char path[48];
    struct str rest;
    uint64_t v = 0;
    ptrdiff_t paren = -1;

    (void)snprintf(path, sizeof path, "/proc/%d/stat", pid);
    if (file_read(path, 4096, &text) < 0)
        return 0;
    rest = buf_str(&text);
    for (size_t i = 0; i < rest.n; i++) /* the name may hold anything: use the last ')' */
        if (rest.p[i] == ')')
            paren = (ptrdiff_t)i;
    if (paren < 0 || rest.n < (size_t)paren + 2)
        return 0;
    rest = str_skip(rest, (size_t)paren + 2);
    *ret_state = rest.n > 0 ? rest.p[0] : 'X';
    for (int field = 3; field < 22; field++)
        (void)str_cut(rest, ' ', &rest);
    return str_parse_u64(str_cut(rest, ' ', &rest), &v) == 0 ? v : 0;
}

uint64_t process_started(pid_t pid)
{
    char state;

    return look(pid, &state);
}

/* Cached: asking takes as long as the rest of a claim. */
static uint64_t own_start(void)
{
    static uint64_t started;

    if (started == 0)
        started = process_started(getpid());
    return started;
}

/* A zombie has no memory, no files and no children: the range is free. */
static bool lives(pid_t pid, uint64_t started)
{
    char state = 'X';

    return started != 0 && look(pid, &state) == started && state != 'Z' && state != 'X';
}

/* -1: none, and no claims are made. */
static int claims_dir(void)
{
    static int dir = -2;
    struct stat st;

    if (dir != -2)
        return dir;
    dir = -1;
    if (host.rootless || !host.idmapped || guard_left_out("ranges") ||
        (mkdir(RANGE_DIR, 0700) < 0 && errno != EEXIST))
        return dir;
    dir = open(RANGE_DIR, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir >= 0 && (fstat(dir, &st) < 0 || st.st_uid != 0 || (st.st_mode & 0022))) {
        fd_close(dir);
        dir = -1;
    }
    return dir;
}

/* The file, locked while it is read: -EAGAIN: another process has it, -ENOENT: it was just
 * removed. */
static int open_claim(uint32_t slot, bool create)
{
    char name[16];
    AUTO(fd_close) int fd = -1;
    struct stat st;

    (void)snprintf(name, sizeof name, "%u", slot);
    fd = openat(claims_dir(), name, O_RDWR | O_NOFOLLOW | O_CLOEXEC | (create ? O_CREAT : 0), 0600);
    if (fd < 0)
        return -errno;
    if (flock(fd, LOCK_EX | LOCK_NB) < 0)
        return -EAGAIN;
    return fstat(fd, &st) < 0 || st.st_nlink == 0 ? -ENOENT : TAKE_FD(fd);
}

/* The holders of a range: the holt-spawn that took it, and its sandbox's init. */
struct claim {
    pid_t pid, init; /* 0: none */
    uint64_t started, init_started;
};

static bool read_claim(int fd, struct claim *ret)
{
    char text[96] = "";

    *ret = (struct claim){0};
    return pread(fd, text, sizeof text - 1, 0) > 0 &&
           sscanf(text, "%d %" SCNu64 " %d %" SCNu64, &ret->pid, &ret->started, &ret->init,
                  &ret->init_started) >= 2;
}

static int write_claim(int fd, pid_t init, uint64_t started)
{
    char text[96];
    int n = snprintf(text, sizeof text, "%-10d %-20" PRIu64 " %-10d %-20" PRIu64 "\n", getpid(),
                     own_start(), init, started);

    return pwrite(fd, text, (size_t)n, 0) == n ? 0 : -EIO;
}

static bool is_ours(const struct claim *c)
{
    return c->pid == getpid() && c->started == own_start();
}

static bool is_held(const struct claim *c)
{
    return lives(c->pid, c->started) || lives(c->init, c->init_started);
}

bool range_claim(uint32_t slot)
{
    AUTO(fd_close) int fd = claims_dir() < 0 ? -EOPNOTSUPP : open_claim(slot, true);
    struct claim c;

    if (fd < 0)
        return fd != -EAGAIN && fd != -ENOENT;
    if (read_claim(fd, &c) && is_held(&c))
        return false;
    return write_claim(fd, 0, 0) == 0;
}

void range_add_init(uint32_t slot, pid_t init, uint64_t started)
{
    AUTO(fd_close) int fd = slot == 0 || claims_dir() < 0 ? -1 : open_claim(slot, false);

    if (fd >= 0)
        (void)!write_claim(fd, init, started);
}

/* A claim that passed to another meanwhile, because its processes had ended, is left alone. */
void range_give(uint32_t slot)
{
    AUTO(fd_close) int fd = slot == 0 || claims_dir() < 0 ? -1 : open_claim(slot, false);
    struct claim c;
    char name[16];

    if (fd < 0 || !read_claim(fd, &c) || (!is_ours(&c) && is_held(&c)))
        return;
    (void)snprintf(name, sizeof name, "%u", slot);
    (void)unlinkat(claims_dir(), name, 0);
}
