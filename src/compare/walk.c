/* walk: goes through what differs between two stacks, in the order of paths. */
#include "compare/compare.h"

#include "base/mem.h"

#include <fnmatch.h>

/* "*" in a pattern is any part of one name. */
bool path_fits(const char *pattern, struct str path)
{
    AUTO(mem_free) char *text = str_dup(path);
    size_t n = strlen(text);

    for (size_t end = n; end > 0; end--) {
        if (end < n && text[end] != '/')
            continue;
        text[end] = '\0';
        if (fnmatch(pattern, text, FNM_PATHNAME) == 0)
            return true;
    }
    return false;
}

/* Where a container's init is mounted (SPAWN_INIT_PATH): holt's own. */
#define INIT_PATH ".holt-init"

static bool is_skipped(const struct job *j, struct str path)
{
    if (str_eq_c(path, INIT_PATH))
        return true;
    for (size_t i = 0; i < j->skip_count; i++)
        if (path_fits(j->skip[i], path))
            return true;
    return false;
}

/* 0: no; 1: it is above one that is wanted; 2: it is wanted. */
static int is_wanted(const struct job *j, struct str path)
{
    int r = j->path_count == 0 ? 2 : 0;

    for (size_t i = 0; i < j->path_count && r < 2; i++) {
        struct str want = str_of(j->path[i]);

        if (want.n == 0 || (str_starts(path, want) && (path.n == want.n || path.p[want.n] == '/')))
            r = 2;
        else if (path.n == 0 || (str_starts(want, path) && want.p[path.n] == '/'))
            r = 1;
    }
    return r;
}

static bool is_package_dir(struct str path)
{
    return str_ends(path, STR("/site-packages")) || str_ends(path, STR("/dist-packages")) ||
           str_ends(path, STR("lib/node_modules"));
}

struct place { /* what is known of a directory that is walked */
    bool packaged;
    enum below below;
    int depth;
};

static int walk_dir(struct job *j, const struct dir *d, struct place at, struct err *e);

static int walk_below(struct job *j, const struct dir *in, const char *name,
                      const struct node n[SIDES], struct place at, struct err *e)
{
    struct dir d;
    int r = 0;

    if (at.depth >= DEPTH_MAX)
        return err_set(e, ERR_TOO_LARGE, 0, "directories are nested more than %d deep", DEPTH_MAX);
    if (dir_open(in, name, n, &d, e) < 0)
        return -1;
    if (!dir_is_shared(&d, BEFORE, AFTER)) {
        if (is_package_dir(job_path(j)) && !j->merge && !j->tar)
            r = packages_below(j, &d, e);
        at.depth++;
        if (r == 0)
            r = walk_dir(j, &d, at, e);
    }
    dir_close(&d);
    return r;
}

/* The record of a change, or in a tar the file itself. */
static int tell_change(struct job *j, const struct dir *d, const char *name,
                       const struct node n[SIDES], bool packaged, uint8_t verdict, struct err *e)
{
    bool equal;

    if (!j->tar)
        return file_change(j, name, n, packaged, verdict, e);
    if (j->whiteouts && !n[AFTER].there && d->side[AFTER].n > 0)
        return tar_whiteout(j, name, e);
    if (verdict != CHANGE_APPLY || !n[AFTER].there ||
        (n[BEFORE].there && n[BEFORE].layer == n[AFTER].layer))
        return 0;
    if (file_equal(name, &n[BEFORE], &n[AFTER], &equal, e) < 0)
        return -1;
    return equal ? 0 : tar_put(j, name, &n[AFTER], e);
}

static int walk_entry(struct job *j, const struct dir *d, const char *name, struct place at,
                      struct err *e)
{
    struct node n[SIDES];
    struct str path = job_path(j);
    uint8_t verdict = j->tar ? CHANGE_APPLY : CHANGE_NO_VERDICT;
    uintptr_t how;
    int wanted;

    for (int side = 0; side < SIDES; side++)
        if (node_find(d, side, name, &n[side], e) < 0)
            return -1;
    wanted = is_wanted(j, path);
    if ((!n[BEFORE].there && !n[AFTER].there) || wanted == 0 || is_skipped(j, path))
        return 0;
    how = (uintptr_t)map_get(&j->packaged, path);
    if (j->merge && merge_decide(j, d, name, n, at.below, &verdict, &at.below, e) < 0)
        return -1;
    if (wanted == 2 && tell_change(j, d, name, n, at.packaged || how != 0, verdict, e) < 0)
        return -1;
    if (!node_is_dir(&n[BEFORE]) && !node_is_dir(&n[AFTER]))
        return 0;
    at.packaged = at.packaged || how == PACKAGED_TREE;
    return walk_below(j, d, name, n, at, e);
}

static int walk_dir(struct job *j, const struct dir *d, struct place at, struct err *e)
{
    AUTO(names_done) struct names names = {0};
    size_t end = buf_len(&j->path_now);
    int r = 0;

    if (names_read(d, BEFORE, AFTER, &names, e) < 0)
        return -1;
    for (size_t i = 0; i < names.n && r == 0; i++) {
        if (end > 0)
            buf_add_char(&j->path_now, '/');
        buf_add_c(&j->path_now, names.v[i]);
        r = buf_len(&j->path_now) > CHANGE_PATH_MAX
                ? err_set(e, ERR_TOO_LARGE, 0, "a path is over %d bytes", CHANGE_PATH_MAX)
                : walk_entry(j, d, names.v[i], at, e);
        buf_truncate(&j->path_now, end);
    }
    return r;
}

/* The roots themselves: their modes may differ. */
static int walk_root(struct job *j, struct err *e)
{
    struct node n[SIDES];

    memset(n, 0, sizeof n);
    for (int side = 0; side < SIDES; side++) {
        if (j->root.side[side].n == 0)
            continue;
        n[side].layer = j->root.side[side].layer[0];
        n[side].at = j->root.fd[n[side].layer];
        n[side].there = true;
        if (fstat(n[side].at, &n[side].st) < 0)
            return err_set(e, ERR_INTERNAL, 0, "look at a layer");
    }
    buf_add_char(&j->path_now, '.');
    if (is_wanted(j, STR("")) == 2 && !j->merge && !j->tar &&
        file_change(j, ".", n, false, CHANGE_NO_VERDICT, e) < 0)
        return -1;
    buf_clear(&j->path_now);
    return 0;
}

int job_walk(struct job *j, struct err *e)
{
    return walk_root(j, e) < 0 ? -1 : walk_dir(j, &j->root, (struct place){0}, e);
}
