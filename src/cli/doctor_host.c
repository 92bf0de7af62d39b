/* doctor_host: probes of ids, devices, limits, disk, daemon and store. */
#include "cli/doctor.h"

#include "base/fd.h"
#include "base/launch.h"
#include "base/mem.h"
#include "cli/request.h"
#include "proto/json.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <pwd.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define GIB (1024LL * 1024 * 1024)
#define RESTART                                                                                    \
    ", then: holt down, and start holtd again" /* holt-spawn looks only once, at its start */

bool read_line(const char *path, char *to, size_t size)
{
    AUTO(buf_done) struct buf text = {0};
    struct str rest, line;

    if (file_read(path, 65536, &text) < 0)
        return false;
    line = str_cut(buf_str(&text), '\n', &rest);
    (void)snprintf(to, size, STR_FMT, STR_ARG(line));
    return true;
}

int64_t read_number(const char *path)
{
    char line[32];
    int64_t n;

    return read_line(path, line, sizeof line) && str_parse_i64(str_of(line), &n) == 0 ? n : -1;
}

/* The number of ids that /etc/subuid or /etc/subgid assigns to this user: lines
 * "name:first:count". */
static int64_t sub_ids(const char *path)
{
    AUTO(buf_done) struct buf text = {0};
    const struct passwd *pw = getpwuid(getuid());
    char number[16];
    struct str rest;
    int64_t total = 0;

    (void)snprintf(number, sizeof number, "%u", getuid());
    if (file_read(path, 1024 * 1024, &text) < 0)
        return 0;
    rest = buf_str(&text);
    while (rest.n > 0) {
        struct str line = str_cut(rest, '\n', &rest), name, first;
        int64_t count;

        name = str_cut(line, ':', &line);
        first = str_cut(line, ':', &line);
        if (first.n == 0 || str_parse_i64(str_trim(line), &count) < 0)
            continue;
        if (str_eq_c(name, number) || (pw && str_eq_c(name, pw->pw_name)))
            total += count;
    }
    return total;
}

enum check_state probe_subids(struct finding *f)
{
    const struct passwd *pw = getpwuid(getuid());
    const char *user = pw ? pw->pw_name : "$USER";
    char path[256];
    int64_t uids, gids;

    if (getuid() == 0) {
        finding_detail(f, "not needed by root");
        return CHECK_OK;
    }
    if (!find_program("newuidmap", path, sizeof path) ||
        !find_program("newgidmap", path, sizeof path)) {
        finding_detail(f, "newuidmap or newgidmap is not installed");
        finding_remedy(f, "sudo apt install uidmap" RESTART);
        return CHECK_MISSING;
    }
    uids = sub_ids("/etc/subuid");
    gids = sub_ids("/etc/subgid");
    finding_detail(f, "%lld user ids and %lld group ids for %s", (long long)uids, (long long)gids,
                   user);
    if (uids >= 65536 && gids >= 65536)
        return CHECK_OK;
    finding_remedy(
        f, "sudo usermod --add-subuids 100000-165535 --add-subgids 100000-165535 %s" RESTART, user);
    return uids > 0 && gids > 0 ? CHECK_LIMITED : CHECK_MISSING;
}

enum check_state probe_tun(struct finding *f)
{
    AUTO(fd_close) int fd = open("/dev/net/tun", O_RDWR | O_CLOEXEC);

    if (fd < 0 && errno == EACCES)
        finding_remedy(f, "sudo chmod 0666 /dev/net/tun (as Debian and Ubuntu have it)");
    finding_detail(f, "/dev/net/tun: %s", fd < 0 ? strerror(errno) : "opens");
    return fd < 0 ? CHECK_MISSING : CHECK_OK;
}

enum check_state probe_fds(struct finding *f)
{
    struct rlimit l = {0};

    (void)getrlimit(RLIMIT_NOFILE, &l);
    if (l.rlim_max == RLIM_INFINITY)
        l.rlim_max = INT64_MAX;
    finding_detail(f, "%llu, at most %llu", (unsigned long long)l.rlim_cur,
                   (unsigned long long)l.rlim_max);
    return l.rlim_max >= 65536 ? CHECK_OK : CHECK_LIMITED;
}

char *state_place(void)
{
    AUTO(mem_free) char *path = state_dir();
    char *at = path;
    struct stat s;

    while (stat(at, &s) < 0 && strcmp(at, "/") != 0 && strcmp(at, ".") != 0)
        at = dirname(at);
    return xstrdup(at);
}

enum check_state probe_disk(struct finding *f)
{
    AUTO(mem_free) char *at = state_place();
    struct statvfs s;
    long long free_bytes;

    if (statvfs(at, &s) < 0) {
        finding_detail(f, "%s: %s", at, strerror(errno));
        return CHECK_LIMITED;
    }
    free_bytes = (long long)s.f_bavail * (long long)s.f_frsize;
    finding_detail(f, "%.1f GiB free at %s", (double)free_bytes / (double)GIB, at);
    return free_bytes >= 5 * GIB ? CHECK_OK : CHECK_LIMITED;
}

/* Like holt-spawn: an ext4 image on a loop device. */
enum check_state probe_disk_limits(struct finding *f)
{
    const char *lacks = geteuid() != 0                                 ? "needs root"
                        : access("/dev/loop-control", R_OK | W_OK) < 0 ? "there are no loop devices"
                        : access("/usr/sbin/mke2fs", X_OK) < 0 && access("/sbin/mke2fs", X_OK) < 0
                            ? "mke2fs is not installed"
                            : NULL;

    finding_detail(f, "%s", lacks ? lacks : "by an ext4 image on a loop device");
    return lacks ? CHECK_LIMITED : CHECK_OK;
}

enum check_state probe_daemon(struct finding *f)
{
    AUTO(target_done) struct target t = {0};
    AUTO(reply_done) struct reply reply = {0};
    struct err e = {0};
    struct request ask = {.method = "GET", .target = "/healthz", .timeout_ms = 5000};

    if (target_choose(f->cli, &t, &e) < 0 || request_run(&t, &ask, &reply, &e) < 0) {
        finding_detail(f, "%s", e.msg);
        return CHECK_MISSING;
    }
    finding_detail(f, "answers at %s%s", t.server, t.token ? "" : "; there is no token for it");
    return t.token ? CHECK_OK : CHECK_LIMITED;
}

enum check_state probe_store(struct finding *f)
{
    AUTO(target_done) struct target t = {0};
    AUTO(reply_done) struct reply reply = {0};
    AUTO(json_decref) json_t *v = NULL;
    const char *kind, *why;
    struct err e = {0};
    struct request ask = {.method = "GET", .target = "/holt/v1/info", .timeout_ms = 5000};

    if (target_choose(f->cli, &t, &e) < 0 || request_run(&t, &ask, &reply, &e) < 0 ||
        reply_json(&reply, &v, &e) < 0) {
        finding_detail(f, "the daemon does not answer: %s", e.msg);
        return CHECK_LIMITED;
    }
    kind = json_string_value(json_object_get(v, "store"));
    why = json_string_value(json_object_get(v, "store_error"));
    finding_detail(f, "%s: %s", kind ? kind : "unknown", why ? why : "works");
    return why ? CHECK_MISSING : CHECK_OK;
}
