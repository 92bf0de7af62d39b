/* merge: decides what becomes of a change in a target that may have changed too. */
#include "base/mem.h"
#include "compare/compare.h"

/* The longest path of the list that is this one or above it; -1: none. */
static ptrdiff_t longest(const char *const *list, size_t n, struct str path)
{
    ptrdiff_t best = -1;

    for (size_t i = 0; i < n; i++) {
        struct str at = str_of(list[i]);

        if (at.n == 0 || (str_starts(path, at) && (path.n == at.n || path.p[at.n] == '/')))
            best = (ptrdiff_t)size_max(at.n, best < 0 ? 0 : (size_t)best);
    }
    return best;
}

static uint8_t decided(const struct job *j)
{
    ptrdiff_t ours = longest(j->ours, j->ours_count, job_path(j));
    ptrdiff_t theirs = longest(j->theirs, j->theirs_count, job_path(j));

    return ours < 0 && theirs < 0 ? CHANGE_CONFLICT : theirs > ours ? CHANGE_APPLY : CHANGE_KEPT;
}

/* Whether all below a directory is the same in the target as before. */
static int same_below(const struct dir *in, const char *name, const struct node n[SIDES], int depth,
                      bool *ret, struct err *e);

static int same_entry(const struct dir *d, const char *name, int depth, bool *ret, struct err *e)
{
    struct node n[SIDES];

    memset(n, 0, sizeof n);
    if (node_find(d, BEFORE, name, &n[BEFORE], e) < 0 ||
        node_find(d, ONTO, name, &n[ONTO], e) < 0 ||
        file_equal(name, &n[BEFORE], &n[ONTO], ret, e) < 0)
        return -1;
    return *ret && node_is_dir(&n[ONTO]) ? same_below(d, name, n, depth + 1, ret, e) : 0;
}

static int same_below(const struct dir *in, const char *name, const struct node n[SIDES], int depth,
                      bool *ret, struct err *e)
{
    AUTO(names_done) struct names names = {0};
    struct dir d;
    int r;

    if (depth >= DEPTH_MAX)
        return err_set(e, ERR_TOO_LARGE, 0, "directories are nested more than %d deep", DEPTH_MAX);
    if (dir_open(in, name, n, &d, e) < 0)
        return -1;
    r = dir_is_shared(&d, BEFORE, ONTO) ? 0 : names_read(&d, BEFORE, ONTO, &names, e);
    for (size_t i = 0; i < names.n && r == 0 && *ret; i++)
        r = same_entry(&d, names.v[i], depth, ret, e);
    dir_close(&d);
    return r;
}

static int compare_target(const struct dir *d, const char *name, const struct node n[SIDES],
                          uint8_t *ret, struct err *e)
{
    bool has, unchanged;

    if (file_equal(name, &n[ONTO], &n[AFTER], &has, e) < 0 ||
        file_equal(name, &n[ONTO], &n[BEFORE], &unchanged, e) < 0)
        return -1;
    /* A directory that becomes something else takes along all that is in it. */
    if (unchanged && !has && node_is_dir(&n[ONTO]) && n[AFTER].there && !node_is_dir(&n[AFTER]) &&
        same_below(d, name, n, 0, &unchanged, e) < 0)
        return -1;
    *ret = has ? CHANGE_ALREADY : unchanged ? CHANGE_APPLY : CHANGE_CONFLICT;
    return 0;
}

int merge_decide(struct job *j, const struct dir *d, const char *name, const struct node n[SIDES],
                 enum below in, uint8_t *ret, enum below *ret_below, struct err *e)
{
    bool turns = node_is_dir(&n[BEFORE]) && n[AFTER].there && !node_is_dir(&n[AFTER]);

    if (in == BELOW_KEPT)
        *ret = CHANGE_KEPT;
    else if (in == BELOW_BLOCKED)
        *ret = n[AFTER].there ? CHANGE_CONFLICT : CHANGE_ALREADY;
    else if (compare_target(d, name, n, ret, e) < 0)
        return -1;
    if (*ret == CHANGE_CONFLICT)
        *ret = decided(j);
    if (in == BELOW_BLOCKED && *ret == CHANGE_APPLY)
        *ret = CHANGE_CONFLICT; /* its directory is gone: that is decided first */
    *ret_below = in;
    if (in == BELOW_FREE && turns && *ret != CHANGE_APPLY)
        *ret_below = BELOW_KEPT;
    else if (in == BELOW_FREE && node_is_dir(&n[AFTER]) && !node_is_dir(&n[ONTO]) &&
             *ret != CHANGE_APPLY)
        *ret_below = *ret == CHANGE_KEPT ? BELOW_KEPT : BELOW_BLOCKED;
    return 0;
}
