/* users: without root, a user namespace of our own in which we are root. */

/* With newuidmap(1) and a range in /etc/subuid it has as many users as the range, else one. */
#include "spawn/host.h"

#include "base/fd.h"
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

static int write_text(const char *path, const char *text)
{
    AUTO(fd_close) int fd = open(path, O_WRONLY | O_CLOEXEC);

    return fd < 0 ? -errno : fd_write_all(fd, text, strlen(text));
}

/* The first range of at least HOST_IDS - 1 ids that the file assigns to this user (subuid(5)), or
 * 0. */
static uint32_t find_range(const char *file, const char *name, uid_t uid)
{
    AUTO(buf_done) struct buf text = {0};
    struct str rest;
    char number[16];

    (void)snprintf(number, sizeof number, "%u", uid);
    if (file_read(file, 1 << 20, &text) < 0)
        return 0;
    rest = buf_str(&text);
    while (rest.n > 0) {
        struct str line = str_cut(rest, '\n', &rest), fields;
        struct str who = str_cut(line, ':', &fields);
        uint64_t first, count;

        if (!str_eq_c(who, number) && !(name && str_eq_c(who, name)))
            continue;
        if (str_parse_u64(str_cut(fields, ':', &fields), &first) == 0 &&
            str_parse_u64(str_trim(fields), &count) == 0 && count >= HOST_IDS - 1 && first > 0 &&
            first < UINT32_MAX - HOST_IDS)
            return (uint32_t)first;
    }
    return 0;
}

static int run(const char *program, pid_t of, uint32_t own, uint32_t first)
{
    char pid[16], us[16], from[16], count[16];
    int status = -1;
    pid_t child;

    (void)snprintf(pid, sizeof pid, "%d", of);
    (void)snprintf(us, sizeof us, "%u", own);
    (void)snprintf(from, sizeof from, "%u", first);
    (void)snprintf(count, sizeof count, "%d", HOST_IDS - 1);
    child = fork();
    if (child == 0) {
        (void)execlp(program, program, pid, "0", us, "1", "1", from, count, (char *)NULL);
        _exit(127);
    }
    return child < 0 || waitpid(child, &status, 0) != child || status != 0 ? -1 : 0;
}

/* The programs are setuid and act on us from outside: a child that stays outside runs them.  0:
 * done; 1: no ranges, or no namespace was made; -1: in the namespace, and not mapped. */
static int map_ranges(uid_t uid, gid_t gid)
{
    struct passwd *pw = getpwuid(uid);
    uint32_t uids = find_range("/etc/subuid", pw ? pw->pw_name : NULL, uid);
    uint32_t gids = find_range("/etc/subgid", pw ? pw->pw_name : NULL, uid);
    pid_t us = getpid(), child;
    int go[2], status = -1;
    bool in = false;
    char byte;

    if (!uids || !gids || pipe2(go, O_CLOEXEC) < 0)
        return 1;
    child = fork();
    if (child == 0) {
        fd_close(go[1]);
        if (read(go[0], &byte, 1) != 1)
            _exit(1);
        _exit(run("newuidmap", us, uid, uids) < 0 || run("newgidmap", us, gid, gids) < 0);
    }
    fd_close(go[0]);
    if (child > 0)
        in = unshare(CLONE_NEWUSER) == 0;
    if (in)
        (void)!write(go[1], "g", 1);
    fd_close(go[1]);
    if (child > 0)
        (void)waitpid(child, &status, 0);
    return !in ? 1 : status != 0 ? -1 : 0;
}

static int map_one(uid_t uid, gid_t gid, struct err *e)
{
    char uid_map[48], gid_map[48];
    int r;

    (void)snprintf(uid_map, sizeof uid_map, "0 %u 1\n", uid);
    (void)snprintf(gid_map, sizeof gid_map, "0 %u 1\n", gid);
    r = write_text("/proc/self/setgroups", "deny");
    if (r == 0)
        r = write_text("/proc/self/uid_map", uid_map);
    if (r == 0)
        r = write_text("/proc/self/gid_map", gid_map);
    return r < 0 ? err_set(e, ERR_UNSUPPORTED, -r, "map our user") : 0;
}

int host_become_root(struct err *e)
{
    uid_t uid = geteuid();
    gid_t gid = getegid();
    int r = map_ranges(uid, gid);

    host.many_ids = r == 0;
    if (r == 0)
        return 0;
    if (r < 0)
        log_warn("newuidmap or newgidmap failed: sandboxes have one user", LOG_N("uid", uid));
    if (r > 0 && unshare(CLONE_NEWUSER) < 0) {
        (void)err_set(e, ERR_UNSUPPORTED, errno, "make a user namespace");
        return err_hint(e, "run as root, or allow unprivileged user namespaces (Ubuntu: load the "
                           "AppArmor profile in packaging/apparmor)");
    }
    return map_one(uid, gid, e);
}
