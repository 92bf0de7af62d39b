/* stack: layers as one tree, by looking names up in each of them. */
#include "compare/stack.h"

#include "base/mem.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/xattr.h>
#include <unistd.h>

void dir_close(struct dir *d)
{
    for (int i = 0; i < STACK_LAYERS; i++) {
        fd_close(d->fd[i]);
        d->fd[i] = -1;
    }
}

static void dir_init(struct dir *d)
{
    memset(d, 0, sizeof *d);
    for (int i = 0; i < STACK_LAYERS; i++)
        d->fd[i] = -1;
}

static bool is_whiteout(const struct stat *st)
{
    return S_ISCHR(st->st_mode) && st->st_rdev == 0;
}

static int failed(const char *what, const char *name, struct err *e)
{
    if (errno == EMFILE || errno == ENFILE)
        return err_set(e, ERR_TOO_LARGE, 0, "directories are nested too deeply");
    return err_set(e, ERR_INTERNAL, errno, "%s '%.60s'", what, name);
}

/* 1: there; 0: absent; 2: hidden by a whiteout. */
static int look(int at, const char *name, struct stat *st, struct err *e)
{
    if (fstatat(at, name, st, AT_SYMLINK_NOFOLLOW) == 0)
        return is_whiteout(st) ? 2 : 1;
    return errno == ENOENT || errno == ENOTDIR ? 0 : failed("look at", name, e);
}

int node_find(const struct dir *d, int side, const char *name, struct node *ret, struct err *e)
{
    const struct shows *s = &d->side[side];

    memset(ret, 0, sizeof *ret);
    for (int i = 0; i < s->n; i++) {
        int r = look(d->fd[s->layer[i]], name, &ret->st, e);

        if (r < 0)
            return -1;
        if (r == 0)
            continue;
        ret->there = r == 1;
        ret->layer = s->layer[i];
        ret->at = d->fd[s->layer[i]];
        return 0;
    }
    return 0;
}

static int open_layer(struct dir *to, int layer, int at, const char *name, struct err *e)
{
    char mark = 0;

    if (to->fd[layer] >= 0)
        return 0;
    to->fd[layer] = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (to->fd[layer] < 0) /* a live one may have changed meanwhile */
        return errno == ENOENT || errno == ENOTDIR || errno == ELOOP ? 1 : failed("open", name, e);
    to->opaque[layer] =
        fgetxattr(to->fd[layer], "user.overlay.opaque", &mark, 1) == 1 && mark == 'y';
    return 0;
}

static int open_side(const struct dir *in, int side, const char *name, struct dir *to,
                     struct err *e)
{
    const struct shows *from = &in->side[side];
    struct shows *s = &to->side[side];
    struct stat st;

    for (int i = 0; i < from->n; i++) {
        int layer = from->layer[i], r = look(in->fd[layer], name, &st, e);

        if (r == 0)
            continue;
        if (r > 1 || (r > 0 && !S_ISDIR(st.st_mode)))
            return 0;
        r = r < 0 ? r : open_layer(to, layer, in->fd[layer], name, e);
        if (r != 0)
            return r < 0 ? -1 : 0;
        s->layer[s->n++] = (uint8_t)layer;
        if (to->opaque[layer])
            return 0;
    }
    return 0;
}

int dir_open(const struct dir *in, const char *name, const struct node n[SIDES], struct dir *ret,
             struct err *e)
{
    dir_init(ret);
    for (int side = 0; side < SIDES; side++)
        if (node_is_dir(&n[side]) && open_side(in, side, name, ret, e) < 0) {
            dir_close(ret);
            return -1;
        }
    return 0;
}

static int find_below(struct dir *in, int side, const char *path, struct node *ret, struct err *e)
{
    struct node n[SIDES];
    const char *slash;

    while ((slash = strchr(path, '/'))) {
        AUTO(mem_free) char *name = xstrndup(path, (size_t)(slash - path));
        struct dir next;

        memset(n, 0, sizeof n);
        if (node_find(in, side, name, &n[side], e) < 0)
            return -1;
        if (!node_is_dir(&n[side])) {
            memset(ret, 0, sizeof *ret);
            return 0;
        }
        if (dir_open(in, name, n, &next, e) < 0)
            return -1;
        dir_close(in);
        *in = next;
        path = slash + 1;
    }
    return node_find(in, side, path, ret, e);
}

int stack_find(const struct dir *root, int side, const char *path, struct node *ret,
               struct dir *ret_in, struct err *e)
{
    struct dir in;

    dir_init(&in);
    in.side[side] = root->side[side];
    for (int i = 0; i < root->side[side].n; i++) {
        int layer = root->side[side].layer[i];

        in.fd[layer] = fcntl(root->fd[layer], F_DUPFD_CLOEXEC, 3);
        if (in.fd[layer] < 0) {
            dir_close(&in);
            return failed("open", path, e);
        }
    }
    if (find_below(&in, side, path, ret, e) < 0) {
        dir_close(&in);
        return -1;
    }
    *ret_in = in;
    return 0;
}

/* --- what two stacks share --- */

static int shared_bottom(const struct shows *a, const struct shows *b)
{
    int n = 0;

    while (n < a->n && n < b->n && a->layer[a->n - 1 - n] == b->layer[b->n - 1 - n])
        n++;
    return n;
}

bool dir_is_shared(const struct dir *d, int a, int b)
{
    return d->side[a].n == d->side[b].n && shared_bottom(&d->side[a], &d->side[b]) == d->side[a].n;
}

/* --- names --- */

void names_done(struct names *l)
{
    for (size_t i = 0; i < l->n; i++)
        mem_free(l->v[i]);
    mem_free(l->v);
    *l = (struct names){0};
}

static int add_names(int at, struct names *to, struct err *e)
{
    int fd = openat(at, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *en;

    if (!d) {
        fd_close(fd);
        return failed("list", "a directory", e);
    }
    while ((en = readdir(d))) {
        if (strcmp(en->d_name, ".") == 0 || strcmp(en->d_name, "..") == 0)
            continue;
        if (to->n == to->size) {
            to->size = to->size ? to->size * 2 : 64;
            to->v = xrealloc(to->v, to->size * sizeof *to->v);
        }
        to->v[to->n++] = xstrdup(en->d_name);
    }
    (void)closedir(d);
    return 0;
}

static int by_bytes(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void sort_once(struct names *l)
{
    size_t n = 0;

    if (l->n > 1)
        qsort(l->v, l->n, sizeof *l->v, by_bytes);
    for (size_t i = 0; i < l->n; i++) {
        if (n > 0 && strcmp(l->v[n - 1], l->v[i]) == 0)
            mem_free(l->v[i]);
        else
            l->v[n++] = l->v[i];
    }
    l->n = n;
}

int names_read(const struct dir *d, int a, int b, struct names *ret, struct err *e)
{
    bool seen[STACK_LAYERS] = {0};
    int bottom = b < 0 ? 0 : shared_bottom(&d->side[a], &d->side[b]);
    struct names l = {0};

    for (int k = 0; k < (b < 0 ? 1 : 2); k++) {
        const struct shows *s = &d->side[k ? b : a];

        for (int i = 0; i < s->n - bottom; i++) {
            int layer = s->layer[i];

            if (seen[layer])
                continue;
            seen[layer] = true;
            if (add_names(d->fd[layer], &l, e) < 0) {
                names_done(&l);
                return -1;
            }
        }
    }
    sort_once(&l);
    *ret = l;
    return 0;
}
