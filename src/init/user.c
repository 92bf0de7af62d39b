/* user: reads /etc/passwd and /etc/group of the sandbox. */
#include "init/user.h"

#include "base/fd.h"
#include "init/path.h"

#include <fcntl.h>

#define PASSWD_MAX (256 * 1024)

static int parse_id(struct str s, uint32_t *ret)
{
    uint64_t v;

    if (str_parse_u64(s, &v) < 0 || v >= UINT32_MAX)
        return -1;
    *ret = (uint32_t)v;
    return 0;
}

/* name:password:uid:gid:gecos:home:shell (passwd(5)) */
static bool parse_line(struct str line, struct str *name, struct user *u)
{
    struct str field[6];

    for (size_t i = 0; i < ARRAY_LEN(field); i++)
        field[i] = str_cut(line, ':', &line);
    *name = field[0];
    if (field[0].n == 0 || parse_id(field[2], &u->uid) < 0 || parse_id(field[3], &u->gid) < 0)
        return false;
    (void)snprintf(u->home, sizeof u->home, STR_FMT, (int)size_min(field[5].n, 255), field[5].p);
    return true;
}

/* Empty if it is not a regular file (it may be a FIFO) or is too large. */
static struct str read_file(struct str path, struct buf *to)
{
    AUTO(fd_close) int fd = -1;
    struct err e;

    fd = path_open_regular(path, O_RDONLY, 0, false, &e);
    if (fd < 0 || fd_read_all(fd, PASSWD_MAX, to) < 0)
        return STR("");
    return buf_str(to);
}

static bool look_up(struct str wanted, bool by_uid, uint32_t uid, struct user *ret)
{
    AUTO(buf_done) struct buf content = {.limit = PASSWD_MAX + 4096};
    struct str rest = read_file(STR("/etc/passwd"), &content), name;

    while (rest.n > 0) {
        struct str line = str_cut(rest, '\n', &rest);
        struct user u = {0};

        if (parse_line(line, &name, &u) && (by_uid ? u.uid == uid : str_eq(name, wanted))) {
            *ret = u;
            return true;
        }
    }
    return false;
}

/* A gid, or a name in name:password:gid:members (group(5)). */
static int find_group(struct str wanted, gid_t *ret, struct err *e)
{
    AUTO(buf_done) struct buf content = {.limit = PASSWD_MAX + 4096};
    struct str rest;

    if (parse_id(wanted, ret) == 0)
        return 0;
    rest = read_file(STR("/etc/group"), &content);
    while (rest.n > 0) {
        struct str line = str_cut(rest, '\n', &rest), name = str_cut(line, ':', &line);

        (void)str_cut(line, ':', &line);
        if (str_eq(name, wanted) && parse_id(str_cut(line, ':', &line), ret) == 0)
            return 0;
    }
    return err_set(e, ERR_INVALID, 0, "no group '" STR_FMT "' in the sandbox", STR_ARG(wanted));
}

int user_find(struct str text, struct user *ret, struct err *e)
{
    struct str group, name = str_cut(text, ':', &group);
    struct user u = {.home = "/"};
    uint32_t uid = 0;
    bool by_uid = parse_id(name, &uid) == 0;

    if (text.n == 0) {
        *ret = (struct user){.home = "/root"};
        return 0;
    }
    if (!look_up(name, by_uid, uid, &u)) {
        if (!by_uid)
            return err_set(e, ERR_INVALID, 0, "no user '" STR_FMT "' in the sandbox",
                           STR_ARG(name));
        u = (struct user){.uid = uid, .gid = uid, .home = "/"};
    }
    if (group.n > 0 && find_group(group, &u.gid, e) < 0)
        return -1;
    if (u.home[0] != '/')
        (void)snprintf(u.home, sizeof u.home, "/");
    *ret = u;
    return 0;
}
