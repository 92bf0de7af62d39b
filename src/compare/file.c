/* file: what differs about one file: attributes, content, target. */
#include "base/mem.h"
#include "base/sha256.h"
#include "compare/compare.h"
#include "compare/text.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#define BLOCK 65536
#define TEXT_FILE_MAX (4U << 20) /* a longer one has no unified diff */
#define XATTRS_MAX 64
#define LINKS_MAX 262144

struct str job_path(const struct job *j)
{
    return buf_str(&j->path_now);
}

/* --- content --- */

int file_open(const struct node *n, const char *name)
{
    struct stat st;
    int fd = openat(n->at, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

    if (fd >= 0 && (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))) {
        fd_close(fd);
        return -1;
    }
    return fd;
}

int file_content(const struct node *n, const char *name, size_t max, struct buf *to, struct err *e)
{
    AUTO(fd_close) int fd = -1;
    int r;

    if (!n->there || !S_ISREG(n->st.st_mode) || (uint64_t)n->st.st_size > max)
        return 1;
    fd = file_open(n, name);
    if (fd < 0)
        return 1; /* a live one: it went meanwhile */
    r = fd_read_all(fd, max, to);
    if (r == -EFBIG)
        return 1;
    return r < 0 ? err_set(e, ERR_INTERNAL, -r, "read '%.60s'", name) : 0;
}

ssize_t file_read_block(int fd, char *to, size_t size)
{
    size_t n = 0;

    while (n < size) {
        ssize_t got = read(fd, to + n, size - n);

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -1;
        if (got == 0)
            break;
        n += (size_t)got;
    }
    return (ssize_t)n;
}

int file_same(const struct node *a, const struct node *b, const char *name, bool *ret,
              struct err *e)
{
    static char one[BLOCK], two[BLOCK];
    AUTO(fd_close) int fa = -1;
    AUTO(fd_close) int fb = -1;

    *ret = false;
    if (a->st.st_size != b->st.st_size)
        return 0;
    *ret = a->layer == b->layer || a->st.st_size == 0;
    if (*ret)
        return 0;
    fa = file_open(a, name);
    fb = file_open(b, name);
    if (fa < 0 || fb < 0)
        return 0;
    for (;;) {
        ssize_t na = file_read_block(fa, one, BLOCK), nb = file_read_block(fb, two, BLOCK);

        if (na < 0 || nb < 0)
            return err_set(e, ERR_INTERNAL, errno, "read '%.60s'", name);
        if (na != nb || memcmp(one, two, (size_t)na) != 0)
            return 0;
        if (na < BLOCK)
            break;
    }
    *ret = true;
    return 0;
}

static int hash_file(const struct node *n, const char *name, unsigned char to[HASH_SIZE],
                     struct str *ret, struct err *e)
{
    static char block[BLOCK];
    AUTO(fd_close) int fd = file_open(n, name);
    struct hash h;
    ssize_t got;

    if (fd < 0)
        return 0;
    hash_init(&h);
    while ((got = file_read_block(fd, block, BLOCK)) > 0)
        hash_add(&h, block, (size_t)got);
    if (got < 0)
        return err_set(e, ERR_INTERNAL, errno, "read '%.60s'", name);
    hash_end(&h, to);
    *ret = str_make(to, HASH_SIZE);
    return 0;
}

/* --- one side --- */

struct side { /* the memory of a struct change_side */
    struct change_xattr xattrs[XATTRS_MAX];
    size_t xattr_count;
    struct buf values; /* names and values of xattrs, the target, the link */
    char target[PATH_MAX];
    unsigned char hash[HASH_SIZE];
};

static uint8_t type_of(mode_t mode)
{
    switch (mode & S_IFMT) {
    case S_IFREG:
        return CHANGE_REGULAR;
    case S_IFDIR:
        return CHANGE_DIR;
    case S_IFLNK:
        return CHANGE_SYMLINK;
    case S_IFIFO:
        return CHANGE_FIFO;
    case S_IFSOCK:
        return CHANGE_SOCKET;
    case S_IFCHR:
        return CHANGE_CHAR;
    default:
        return CHANGE_BLOCK;
    }
}

bool file_keeps_xattr(struct str name)
{
    return (str_starts(name, STR("user.")) && !str_starts(name, STR("user.overlay."))) ||
           str_eq_c(name, "security.capability") || str_starts(name, STR("system.posix_acl_"));
}

static int by_name(const void *a, const void *b)
{
    return str_cmp(((const struct change_xattr *)a)->name, ((const struct change_xattr *)b)->name);
}

/* The memory of `values` does not move: it is reserved before. */
static void read_xattrs(int fd, struct side *s)
{
    static char names[65536], value[65536];
    ssize_t n = flistxattr(fd, names, sizeof names);
    size_t ends[XATTRS_MAX][2];

    for (const char *name = names; n > 0 && name < names + n && s->xattr_count < XATTRS_MAX;
         name += strlen(name) + 1) {
        ssize_t size =
            file_keeps_xattr(str_of(name)) ? fgetxattr(fd, name, value, sizeof value) : -1;

        if (size < 0)
            continue;
        buf_add_c(&s->values, name);
        ends[s->xattr_count][0] = buf_len(&s->values);
        buf_add(&s->values, value, (size_t)size);
        ends[s->xattr_count++][1] = buf_len(&s->values);
    }
    for (size_t i = 0, at = 0; i < s->xattr_count; at = ends[i++][1]) {
        const char *p = buf_data(&s->values);

        s->xattrs[i].name = str_make(p + at, ends[i][0] - at);
        s->xattrs[i].value = str_make(p + ends[i][0], ends[i][1] - ends[i][0]);
    }
    if (s->xattr_count > 1)
        qsort(s->xattrs, s->xattr_count, sizeof s->xattrs[0], by_name);
}

static void describe(const struct node *n, const char *name, struct side *s,
                     struct change_side *ret)
{
    const struct stat *st = &n->st;
    AUTO(fd_close) int fd = -1;
    ssize_t size;

    if (!n->there)
        return;
    *ret = (struct change_side){
        .type = type_of(st->st_mode),
        .mode = st->st_mode & 07777,
        .uid = st->st_uid,
        .gid = st->st_gid,
        .size = S_ISREG(st->st_mode) ? (uint64_t)st->st_size : 0,
        .mtime_ns = st->st_mtim.tv_sec < 0
                        ? 0
                        : (uint64_t)st->st_mtim.tv_sec % 9000000000ULL * 1000000000 +
                              (uint64_t)st->st_mtim.tv_nsec,
    };
    if (ret->type == CHANGE_CHAR || ret->type == CHANGE_BLOCK) {
        ret->major = major(st->st_rdev);
        ret->minor = minor(st->st_rdev);
    }
    if (ret->type == CHANGE_SYMLINK) {
        ret->mode = 0777;
        size = readlinkat(n->at, name, s->target, sizeof s->target);
        ret->target = str_make(s->target, size < 0 ? 0 : (size_t)size);
    }
    if (ret->type == CHANGE_REGULAR || ret->type == CHANGE_DIR)
        fd = openat(n->at, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd >= 0)
        read_xattrs(fd, s);
    ret->xattrs = (struct wire_rows){.count = (uint32_t)s->xattr_count, .items = s->xattrs};
}

static bool same_xattrs(const struct side *a, const struct side *b)
{
    if (a->xattr_count != b->xattr_count)
        return false;
    for (size_t i = 0; i < a->xattr_count; i++)
        if (!str_eq(a->xattrs[i].name, b->xattrs[i].name) ||
            !str_eq(a->xattrs[i].value, b->xattrs[i].value))
            return false;
    return true;
}

/* The first name of an inode among the changed files; empty: it is that itself. */
static struct str first_name(struct job *j, const struct node *n, const struct change *c)
{
    char text[64];
    struct str key;
    const char *first;

    if (c->after.type != CHANGE_REGULAR || n->st.st_nlink < 2)
        return (struct str){0};
    (void)snprintf(text, sizeof text, "%llx:%llx", (unsigned long long)n->st.st_dev,
                   (unsigned long long)n->st.st_ino);
    key = str_of(text);
    first = map_get(&j->links, key);
    if (!first && j->links.count < LINKS_MAX)
        (void)map_set(&j->links, key, str_dup(c->path));
    return str_of(first);
}

/* --- the same in two stacks --- */

static int what_differs(const char *name, const struct node n[SIDES], const struct side s[2],
                        struct change *c, struct err *e);

static void side_init(struct side *s)
{
    s->xattr_count = 0;
    s->values = (struct buf){0};
}

int file_equal(const char *name, const struct node *a, const struct node *b, bool *ret,
               struct err *e)
{
    const struct node n[SIDES] = {[BEFORE] = *a, [AFTER] = *b};
    struct change c = {0};
    struct side s[2];
    int r;

    *ret = a->there == b->there;
    if (!a->there || !b->there || a->layer == b->layer)
        return 0;
    side_init(&s[0]);
    side_init(&s[1]);
    describe(a, name, &s[0], &c.before);
    describe(b, name, &s[1], &c.after);
    r = what_differs(name, n, s, &c, e);
    *ret = c.by == 0;
    buf_done(&s[0].values);
    buf_done(&s[1].values);
    return r;
}

void file_describe(const char *name, const struct node *n, struct change_side *ret)
{
    static struct side s;

    side_init(&s);
    describe(n, name, &s, ret);
    ret->xattrs = (struct wire_rows){0};
    buf_done(&s.values);
}

/* --- the record --- */

static int put_texts(struct job *j, const char *name, const struct node n[SIDES], struct change *c,
                     struct buf *text, struct err *e)
{
    AUTO(buf_done) struct buf a = {0}, b = {0};
    int ra = n[BEFORE].there && c->before.type == CHANGE_REGULAR
                 ? file_content(&n[BEFORE], name, TEXT_FILE_MAX, &a, e)
                 : 0;
    int rb = ra >= 0 && n[AFTER].there && c->after.type == CHANGE_REGULAR
                 ? file_content(&n[AFTER], name, TEXT_FILE_MAX, &b, e)
                 : 0;

    if (ra < 0 || rb < 0)
        return -1;
    if (text_is_binary(buf_str(&a)) || text_is_binary(buf_str(&b)))
        c->flags |= CHANGE_BINARY;
    else if (ra > 0 || rb > 0 || text_diff(buf_str(&a), buf_str(&b), j->text_max, text) > 0)
        c->flags |= CHANGE_TEXT_LEFT;
    c->text = buf_str(text);
    return 0;
}

static int put_content(struct job *j, const char *name, const struct node *n, struct change *c,
                       struct buf *content, struct err *e)
{
    int r;

    if (j->content_max == 0 || c->after.type != CHANGE_REGULAR)
        return 0;
    r = file_content(n, name, j->content_max, content, e);
    if (r < 0)
        return -1;
    c->flags |= r > 0 ? CHANGE_CONTENT_LEFT : CHANGE_CONTENT;
    c->content = buf_str(content);
    return 0;
}

static int what_differs(const char *name, const struct node n[SIDES], const struct side s[2],
                        struct change *c, struct err *e)
{
    const struct change_side *a = &c->before, *b = &c->after;
    bool same = true, mode = a->mode != b->mode && a->type != CHANGE_SYMLINK;

    if (a->type != b->type) {
        c->by = CHANGE_BY_TYPE;
        return 0;
    }
    if (a->type == CHANGE_REGULAR && file_same(&n[BEFORE], &n[AFTER], name, &same, e) < 0)
        return -1;
    c->by = (uint16_t)((same ? 0 : CHANGE_BY_CONTENT) | (mode ? CHANGE_BY_MODE : 0) |
                       (a->uid != b->uid || a->gid != b->gid ? CHANGE_BY_OWNER : 0) |
                       (str_eq(a->target, b->target) ? 0 : CHANGE_BY_TARGET) |
                       (same_xattrs(&s[0], &s[1]) ? 0 : CHANGE_BY_XATTRS) |
                       (a->major != b->major || a->minor != b->minor ? CHANGE_BY_DEVICE : 0));
    return 0;
}

static int add_content(struct job *j, const char *name, const struct node n[SIDES],
                       struct side s[2], struct change *c, struct buf *text, struct buf *content,
                       struct err *e)
{
    bool regular = c->before.type == CHANGE_REGULAR || c->after.type == CHANGE_REGULAR;
    bool differs = c->what != CHANGE_CHANGED || c->by & (CHANGE_BY_CONTENT | CHANGE_BY_TYPE);

    if (!regular || !differs)
        return 0;
    if (!j->no_text && ((c->before.type == CHANGE_REGULAR &&
                         hash_file(&n[BEFORE], name, s[0].hash, &c->before.hash, e) < 0) ||
                        (c->after.type == CHANGE_REGULAR &&
                         hash_file(&n[AFTER], name, s[1].hash, &c->after.hash, e) < 0) ||
                        put_texts(j, name, n, c, text, e) < 0))
        return -1;
    return put_content(j, name, &n[AFTER], c, content, e);
}

static int put_change(struct job *j, const char *name, const struct node n[SIDES], struct side s[2],
                      bool packaged, uint8_t verdict, struct err *e)
{
    AUTO(buf_done) struct buf text = {0}, content = {0};
    struct change c = {.kind = CHANGE_FILE, .path = job_path(j)};

    describe(&n[BEFORE], name, &s[0], &c.before);
    describe(&n[AFTER], name, &s[1], &c.after);
    c.what = !n[BEFORE].there ? CHANGE_ADDED : !n[AFTER].there ? CHANGE_REMOVED : CHANGE_CHANGED;
    if (c.what == CHANGE_CHANGED && what_differs(name, n, s, &c, e) < 0)
        return -1;
    if (c.what == CHANGE_CHANGED && c.by == 0)
        return 0;
    c.after.link = first_name(j, &n[AFTER], &c);
    c.flags |= packaged ? CHANGE_PACKAGED : 0;
    c.verdict = verdict;
    if (verdict != CHANGE_NO_VERDICT)
        file_describe(name, &n[ONTO], &c.onto);
    if (add_content(j, name, n, s, &c, &text, &content, e) < 0 || units_see(j, &c, e) < 0)
        return -1;
    return job_put(j, &c, e);
}

int file_change(struct job *j, const char *name, const struct node n[SIDES], bool packaged,
                uint8_t verdict, struct err *e)
{
    struct side s[2];
    int r;

    /* One layer shows the same file in both. */
    if (n[BEFORE].there && n[AFTER].there && n[BEFORE].layer == n[AFTER].layer)
        return 0;
    side_init(&s[0]);
    side_init(&s[1]);
    r = put_change(j, name, n, s, packaged, verdict, e);
    buf_done(&s[0].values);
    buf_done(&s[1].values);
    return r;
}
