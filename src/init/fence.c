/* fence: makes Landlock rulesets from path rules. */
#include "init/fence.h"

#include "base/fd.h"
#include "init/landlock.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define RULES_MAX 8192 /* of one layer: a command may have filled a directory */

#define FILE_READ (LANDLOCK_EXECUTE | LANDLOCK_READ_FILE)
#define FILE_WRITE (LANDLOCK_WRITE_FILE | LANDLOCK_TRUNCATE)
#define TREE_READ (FILE_READ | LANDLOCK_READ_DIR)
#define TREE_WRITE                                                                                 \
    (FILE_WRITE | LANDLOCK_REMOVE_DIR | LANDLOCK_REMOVE_FILE | LANDLOCK_MAKE_CHAR |                \
     LANDLOCK_MAKE_DIR | LANDLOCK_MAKE_REG | LANDLOCK_MAKE_SOCK | LANDLOCK_MAKE_FIFO |             \
     LANDLOCK_MAKE_BLOCK | LANDLOCK_MAKE_SYM | LANDLOCK_REFER)

struct builder {
    size_t layer;
    int set;
    uint64_t handled;
    size_t rules;
    char path[PATH_MAX]; /* of what is being looked at; the root is "" */
    size_t path_n;
    struct err *e;
};

int fence_version(void)
{
#ifdef HOLT_TEST_GUARDS /* a build for the tests that show what it is good for */
    return 0;
#else
    int version = landlock_version();

    return version >= LANDLOCK_HAS_REFER ? version : 0;
#endif
}

static int fence_failed(const struct builder *b, int sys)
{
    return err_set(b->e, ERR_UNAVAILABLE, sys, "hold the command to policy '%.63s' at '%.120s'",
                   rules_name(b->layer), b->path_n > 0 ? b->path : "/");
}

static struct str path_now(const struct builder *b)
{
    return b->path_n > 0 ? str_make(b->path, b->path_n) : STR("/");
}

static int allow_here(struct builder *b, int at, unsigned rights, bool dir)
{
    uint64_t what = (rights & RULES_READ ? (dir ? TREE_READ : FILE_READ) : 0) |
                    (rights & RULES_WRITE ? (dir ? TREE_WRITE : FILE_WRITE) : 0);
    int r;

    if ((what & b->handled) == 0)
        return 0;
    if (b->rules++ >= RULES_MAX) {
        (void)err_set(b->e, ERR_LIMIT, 0,
                      "more than %d files lie beside the paths of policy '%.63s'", RULES_MAX,
                      rules_name(b->layer));
        return err_limit_fixed(b->e, RULES_MAX, "remove some of them");
    }
    r = landlock_allow(b->set, at, what & b->handled);
    return r < 0 ? fence_failed(b, -r) : 0;
}

static int look_at_children(struct builder *b, int at);

/* Takes nothing; at: the object whose path b has. */
static int look_at(struct builder *b, int at, bool dir)
{
    struct str path = path_now(b);
    bool split = dir && rules_differ_below(b->layer, path);

    if (allow_here(b, at, split ? rules_throughout(b->layer, path) : rules_at(b->layer, path),
                   dir) < 0)
        return -1;
    return split ? look_at_children(b, at) : 0;
}

/* Links are not followed: where they lead, the path's own rules hold. */
static int look_at_child(struct builder *b, int dir, const char *name)
{
    AUTO(fd_close) int at = openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    size_t before = b->path_n, n = strlen(name);
    struct stat st;
    int r;

    if (at < 0 || fstat(at, &st) < 0 || S_ISLNK(st.st_mode) || before + n + 2 > sizeof b->path)
        return 0; /* it was removed, or nothing can name it */
    b->path[b->path_n++] = '/';
    memcpy(b->path + b->path_n, name, n + 1);
    b->path_n += n;
    r = look_at(b, at, S_ISDIR(st.st_mode));
    b->path_n = before;
    b->path[before] = '\0';
    return r;
}

static int look_at_children(struct builder *b, int at)
{
    int fd = openat(at, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *entry;
    int r = 0;

    if (!d) {
        fd_close(fd);
        return errno == ENOENT ? 0 : fence_failed(b, errno);
    }
    while (r == 0 && (entry = readdir(d)))
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            r = look_at_child(b, dirfd(d), entry->d_name);
    (void)closedir(d);
    return r;
}

static int make_layer(size_t layer, int version, int *ret, struct err *e)
{
    AUTO(fd_close) int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC), set = -1;
    struct builder b = {.layer = layer, .e = e};

    b.handled = TREE_READ | TREE_WRITE;
    if (version < LANDLOCK_HAS_TRUNCATE)
        b.handled &= ~(uint64_t)LANDLOCK_TRUNCATE;
    b.set = set = landlock_set(b.handled, 0);
    if (root < 0 || set < 0)
        return fence_failed(&b, root < 0 ? errno : -set);
    if (look_at(&b, root, true) < 0)
        return -1;
    *ret = TAKE_FD(set);
    return 0;
}

int fence_make(struct fence *f, struct err *e)
{
    int version = rules_any() ? fence_version() : 0;

    *f = (struct fence){.n = 0};
    for (; version > 0 && f->n < rules_layers(); f->n++)
        if (make_layer(f->n, version, &f->set[f->n], e) < 0)
            return -1;
    return 0;
}

void fence_done(struct fence *f)
{
    while (f->n > 0)
        fd_close(f->set[--f->n]);
}

int fence_enter(const struct fence *f)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < f->n; i++)
        r = landlock_enforce(f->set[i]);
    return r;
}
