/* package: packages by their databases: dpkg, apk, Python, npm.  Nothing is run. */
#include "base/mem.h"
#include "compare/compare.h"

#include <stdio.h>
#include <stdlib.h>

#define PACKAGES_MAX 200000

struct package {
    char *name, *version;
};
struct packages { /* sorted by name */
    struct package *v;
    size_t n, size;
};

static void packages_done_p(struct packages *l)
{
    for (size_t i = 0; i < l->n; i++) {
        mem_free(l->v[i].name);
        mem_free(l->v[i].version);
    }
    mem_free(l->v);
}

static void add(struct packages *l, struct str name, struct str version)
{
    if (name.n == 0 || name.n > 255 || version.n > 255 || l->n == PACKAGES_MAX)
        return;
    if (l->n == l->size) {
        l->size = l->size ? l->size * 2 : 256;
        l->v = xrealloc(l->v, l->size * sizeof *l->v);
    }
    l->v[l->n++] = (struct package){str_dup(name), str_dup(version)};
}

static int by_name(const void *a, const void *b)
{
    const struct package *x = a, *y = b;
    int r = strcmp(x->name, y->name);

    return r ? r : strcmp(x->version, y->version);
}

static void sort(struct packages *l)
{
    if (l->n > 1)
        qsort(l->v, l->n, sizeof *l->v, by_name);
}

/* --- what differs --- */

struct pair_of { /* a package in the two states; NULL: not there */
    const struct package *before, *after;
};
typedef int (*package_each)(struct job *j, const struct pair_of *p, void *arg, struct err *e);

static int each_change(struct job *j, const struct packages *a, const struct packages *b,
                       package_each each, void *arg, struct err *e)
{
    size_t x = 0, y = 0;

    while (x < a->n || y < b->n) {
        int r = x == a->n ? 1 : y == b->n ? -1 : strcmp(a->v[x].name, b->v[y].name);
        struct pair_of p = {r <= 0 ? &a->v[x] : NULL, r >= 0 ? &b->v[y] : NULL};

        x += r <= 0;
        y += r >= 0;
        if (r == 0 && strcmp(p.before->version, p.after->version) == 0)
            continue;
        if (each(j, &p, arg, e) < 0)
            return -1;
    }
    return 0;
}

static int put_package(struct job *j, const struct pair_of *p, const char *manager,
                       struct str where, struct err *e)
{
    return job_later(j,
                     &(struct change){.kind = CHANGE_PACKAGE,
                                      .what = !p->before  ? CHANGE_ADDED
                                              : !p->after ? CHANGE_REMOVED
                                                          : CHANGE_CHANGED,
                                      .manager = str_of(manager),
                                      .path = where,
                                      .name = str_of(p->after ? p->after->name : p->before->name),
                                      .old_value = str_of(p->before ? p->before->version : NULL),
                                      .new_value = str_of(p->after ? p->after->version : NULL)},
                     e);
}

/* --- databases that are one file --- */

/* The file in one state; 1: it is not there.  *ret_layer: where it lies. */
static int read_database(struct job *j, int side, const char *path, struct buf *to, int *ret_layer,
                         struct err *e)
{
    const char *name = strrchr(path, '/') + 1;
    struct node n;
    struct dir in;
    int r;

    if (stack_find(&j->root, side, path, &n, &in, e) < 0)
        return -1;
    *ret_layer = n.there ? n.layer : -1;
    r = file_content(&n, name, FILE_MAX, to, e);
    dir_close(&in);
    return r;
}

/* "Key: value" or "K:value"; empty: another line. */
static struct str value_of(struct str line, const char *key)
{
    return str_starts(line, str_of(key)) ? str_trim(str_skip(line, strlen(key))) : (struct str){0};
}

static void read_dpkg(struct str text, struct packages *to)
{
    struct str name = {0}, version = {0};
    bool installed = false;

    while (text.n > 0 || name.n > 0) {
        struct str line = str_cut(text, '\n', &text), v;

        if (line.n == 0) {
            if (installed)
                add(to, name, version);
            name = version = (struct str){0};
            installed = false;
            continue;
        }
        if ((v = value_of(line, "Package:")).n > 0)
            name = v;
        else if ((v = value_of(line, "Version:")).n > 0)
            version = v;
        else if ((v = value_of(line, "Status:")).n > 0)
            installed = str_ends(v, STR(" installed"));
    }
    sort(to);
}

static void read_apk(struct str text, struct packages *to)
{
    struct str name = {0}, version = {0};

    while (text.n > 0 || name.n > 0) {
        struct str line = str_cut(text, '\n', &text);

        if (line.n == 0) {
            add(to, name, version);
            name = version = (struct str){0};
        } else if (str_starts(line, STR("P:"))) {
            name = str_skip(line, 2);
        } else if (str_starts(line, STR("V:"))) {
            version = str_skip(line, 2);
        }
    }
    sort(to);
}

/* With merged directories dpkg's "/bin/x" lies in /usr/bin. */
static void add_owned(struct job *j, struct str path)
{
    static const struct str merged[] = {{"bin/", 4}, {"sbin/", 5}, {"lib/", 4}, {"lib64/", 6}};
    AUTO(buf_done) struct buf text = {0};

    path = str_skip(path, path.n > 0 && path.p[0] == '/');
    if (path.n == 0 || path.p[0] == '.')
        return;
    job_packaged(j, path, PACKAGED_FILE);
    for (size_t i = 0; i < ARRAY_LEN(merged); i++) {
        if (!str_starts(path, merged[i]))
            continue;
        buf_add_c(&text, "usr/");
        buf_add_str(&text, path);
        job_packaged(j, buf_str(&text), PACKAGED_FILE);
    }
}

/* A file in /etc may have been changed by hand: it is never only its package's. */
static void read_owned(struct job *j, struct str text)
{
    while (text.n > 0) {
        struct str line = str_cut(text, '\n', &text);

        if (!str_starts(line, STR("/etc/")))
            add_owned(j, line);
    }
}

static int own_dpkg(struct job *j, int side, const char *name, struct err *e)
{
    static const char *const archs[] = {"amd64",   "arm64",   "i386", "armhf",
                                        "riscv64", "ppc64el", "s390x"};
    int layer, r = 1;

    for (size_t i = 0; i <= ARRAY_LEN(archs) && r > 0; i++) {
        AUTO(mem_free)
        char *path = xasprintf("var/lib/dpkg/info/%s%s%s.list", name, i > 0 ? ":" : "",
                               i > 0 ? archs[i - 1] : "");
        AUTO(buf_done) struct buf text = {0};

        r = read_database(j, side, path, &text, &layer, e);
        if (r == 0)
            read_owned(j, buf_str(&text));
    }
    return r < 0 ? -1 : 0;
}

static int on_dpkg(struct job *j, const struct pair_of *p, void *arg, struct err *e)
{
    (void)arg;
    if ((p->before && own_dpkg(j, BEFORE, p->before->name, e) < 0) ||
        (p->after && own_dpkg(j, AFTER, p->after->name, e) < 0))
        return -1;
    return put_package(j, p, "dpkg", STR("var/lib/dpkg/status"), e);
}

static int on_apk(struct job *j, const struct pair_of *p, void *arg, struct err *e)
{
    (void)arg;
    return put_package(j, p, "apk", STR("lib/apk/db/installed"), e);
}

/* apk's database names the files: "F:" a directory, "R:" a file in it. */
static void own_apk(struct job *j, struct str text)
{
    struct str dir = {0};

    while (text.n > 0) {
        struct str line = str_cut(text, '\n', &text);
        AUTO(buf_done) struct buf path = {0};

        if (str_starts(line, STR("F:")))
            dir = str_skip(line, 2);
        if (!str_starts(line, STR("R:")) || str_starts(dir, STR("etc")))
            continue;
        buf_printf(&path, STR_FMT "/" STR_FMT, STR_ARG(dir), STR_ARG(str_skip(line, 2)));
        job_packaged(j, buf_str(&path), PACKAGED_FILE);
    }
}

static const struct database {
    const char *path;
    void (*read)(struct str text, struct packages *to);
    package_each each;
    void (*own)(struct job *j, struct str text);
} databases[] = {{"var/lib/dpkg/status", read_dpkg, on_dpkg, NULL},
                 {"lib/apk/db/installed", read_apk, on_apk, own_apk}};

static int compare_database(struct job *j, const struct database *d, struct err *e)
{
    AUTO(packages_done) struct packages a = {0}, b = {0};
    AUTO(buf_done) struct buf before = {0}, after = {0};
    int layers[2];

    if (read_database(j, BEFORE, d->path, &before, &layers[0], e) < 0 ||
        read_database(j, AFTER, d->path, &after, &layers[1], e) < 0)
        return -1;
    if (layers[0] == layers[1])
        return 0;
    d->read(buf_str(&before), &a);
    d->read(buf_str(&after), &b);
    if (d->own)
        d->own(j, buf_str(&after));
    return each_change(j, &a, &b, d->each, NULL, e);
}

/* --- directories of packages: Python's --- */

/* "Name-1.2.dist-info" */
static void read_info_name(struct str name, struct packages *to)
{
    static const struct str ends[] = {{".dist-info", 10}, {".egg-info", 9}};
    ptrdiff_t at;

    for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
        if (!str_ends(name, ends[i]))
            continue;
        name.n -= ends[i].n;
        at = str_index(name, '-');
        if (at <= 0)
            return;
        add(to, str_make(name.p, (size_t)at), str_skip(name, (size_t)at + 1));
        return;
    }
}

/* Whether the name is there in this state: a layer above may hide it. */
static int is_there(const struct dir *d, int side, const char *name, bool *ret, struct err *e)
{
    struct node n;

    if (node_find(d, side, name, &n, e) < 0)
        return -1;
    *ret = n.there;
    return 0;
}

static int read_python(const struct dir *d, int side, struct packages *to, struct err *e)
{
    AUTO(names_done) struct names names = {0};
    bool there;

    if (names_read(d, side, -1, &names, e) < 0)
        return -1;
    for (size_t i = 0; i < names.n; i++) {
        if (is_there(d, side, names.v[i], &there, e) < 0)
            return -1;
        if (there)
            read_info_name(str_of(names.v[i]), to);
    }
    sort(to);
    return 0;
}

/* "../../../bin/tool" from a directory of packages: "usr/local/bin/tool". */
static void own_record(struct job *j, struct str where, struct str file)
{
    AUTO(buf_done) struct buf path = {0};
    struct str rest;
    bool above = str_starts(file, STR("../"));

    while (str_starts(file, STR("../"))) {
        file = str_skip(file, 3);
        while (where.n > 0 && where.p[where.n - 1] != '/')
            where.n--;
        where.n -= where.n > 0;
    }
    buf_add_str(&path, where);
    buf_add_char(&path, '/');
    if (above)
        buf_add_str(&path, file);
    else
        buf_add_str(&path, str_cut(file, '/', &rest));
    job_packaged(j, buf_str(&path), above ? PACKAGED_FILE : PACKAGED_TREE);
}

struct python {
    const struct dir *d;
    struct str where;
};

static int own_python(struct job *j, const struct python *p, int side, const struct package *of,
                      struct err *e)
{
    AUTO(mem_free) char *info = xasprintf("%s-%s.dist-info", of->name, of->version);
    AUTO(buf_done) struct buf text = {0};
    struct node n[SIDES], record;
    struct str rest;
    struct dir d;
    int r;

    memset(n, 0, sizeof n);
    if (node_find(p->d, side, info, &n[side], e) < 0)
        return -1;
    if (!node_is_dir(&n[side]))
        return 0;
    if (dir_open(p->d, info, n, &d, e) < 0)
        return -1;
    r = node_find(&d, side, "RECORD", &record, e);
    if (r == 0)
        r = file_content(&record, "RECORD", FILE_MAX, &text, e);
    dir_close(&d);
    rest = buf_str(&text);
    while (r == 0 && rest.n > 0) {
        struct str line = str_cut(rest, '\n', &rest), more;
        struct str file = str_cut(line, ',', &more);

        if (file.n > 0 && file.p[0] != '/' && file.p[0] != '"')
            own_record(j, p->where, file);
    }
    return r < 0 ? -1 : 0;
}

static int on_python(struct job *j, const struct pair_of *p, void *arg, struct err *e)
{
    const struct python *of = arg;

    if ((p->before && own_python(j, of, BEFORE, p->before, e) < 0) ||
        (p->after && own_python(j, of, AFTER, p->after, e) < 0))
        return -1;
    return put_package(j, p, "pip", of->where, e);
}

/* --- npm's, installed for all: lib/node_modules --- */

/* The first "version": "…" of a package.json, which npm writes near its top. */
static struct str json_version(struct str text)
{
    const char *at = str_find(text, STR("\"version\""));
    struct str rest = {0}, v;

    if (at)
        rest = str_skip(text, (size_t)(at - text.p) + 9);
    (void)str_cut(rest, '"', &rest);
    v = str_cut(rest, '"', &rest);
    return v.n < 64 ? v : (struct str){0};
}

static int read_npm_one(struct job *j, const struct dir *in, int side, const char *name,
                        const char *shown, struct packages *to, struct err *e)
{
    AUTO(buf_done) struct buf text = {0};
    struct node n[SIDES], file;
    struct dir d;
    int r;

    (void)j;
    memset(n, 0, sizeof n);
    if (node_find(in, side, name, &n[side], e) < 0)
        return -1;
    if (!node_is_dir(&n[side]))
        return 0;
    if (dir_open(in, name, n, &d, e) < 0)
        return -1;
    r = node_find(&d, side, "package.json", &file, e);
    if (r == 0)
        r = file_content(&file, "package.json", 1U << 20, &text, e);
    dir_close(&d);
    if (r == 0)
        add(to, str_of(shown), json_version(buf_str(&text)));
    return r < 0 ? -1 : 0;
}

static int read_npm_scope(struct job *j, const struct dir *in, int side, const char *scope,
                          struct packages *to, struct err *e)
{
    AUTO(names_done) struct names names = {0};
    struct node n[SIDES];
    struct dir d;
    int r = 0;

    memset(n, 0, sizeof n);
    if (node_find(in, side, scope, &n[side], e) < 0)
        return -1;
    if (!node_is_dir(&n[side]))
        return 0;
    if (dir_open(in, scope, n, &d, e) < 0)
        return -1;
    if (names_read(&d, side, -1, &names, e) < 0)
        r = -1;
    for (size_t i = 0; i < names.n && r == 0; i++) {
        AUTO(mem_free) char *shown = xasprintf("%s/%s", scope, names.v[i]);

        r = read_npm_one(j, &d, side, names.v[i], shown, to, e);
    }
    dir_close(&d);
    return r;
}

static int read_npm(struct job *j, const struct dir *d, int side, struct packages *to,
                    struct err *e)
{
    AUTO(names_done) struct names names = {0};

    if (names_read(d, side, -1, &names, e) < 0)
        return -1;
    for (size_t i = 0; i < names.n; i++) {
        const char *name = names.v[i];
        int r = name[0] == '@'   ? read_npm_scope(j, d, side, name, to, e)
                : name[0] == '.' ? 0
                                 : read_npm_one(j, d, side, name, name, to, e);

        if (r < 0)
            return -1;
    }
    sort(to);
    return 0;
}

static int on_npm(struct job *j, const struct pair_of *p, void *arg, struct err *e)
{
    const struct python *of = arg;
    AUTO(buf_done) struct buf path = {0};

    buf_printf(&path, STR_FMT "/%s", STR_ARG(of->where),
               p->after ? p->after->name : p->before->name);
    job_packaged(j, buf_str(&path), PACKAGED_TREE);
    return put_package(j, p, "npm", of->where, e);
}

int packages_below(struct job *j, const struct dir *d, struct err *e)
{
    AUTO(packages_done) struct packages a = {0}, b = {0};
    struct python of = {d, job_path(j)};

    if (map_set(&j->package_dirs, of.where, j))
        return 0;
    if (str_ends(of.where, STR("/node_modules")))
        return read_npm(j, d, BEFORE, &a, e) < 0 || read_npm(j, d, AFTER, &b, e) < 0
                   ? -1
                   : each_change(j, &a, &b, on_npm, &of, e);
    if (read_python(d, BEFORE, &a, e) < 0 || read_python(d, AFTER, &b, e) < 0)
        return -1;
    return each_change(j, &a, &b, on_python, &of, e);
}

/* --- before the walk: programs of Python's packages come before their directories --- */

/* Calls itself for each further name; at the end, the packages. */
static int find_python(struct job *j, const struct dir *in, const char *const *names,
                       struct err *e);

static int find_below(struct job *j, const struct dir *in, const char *name,
                      const char *const *names, struct err *e)
{
    size_t at = buf_len(&j->path_now);
    struct node n[SIDES];
    struct dir d;
    int r;

    memset(n, 0, sizeof n);
    for (int side = BEFORE; side <= AFTER; side++)
        if (node_find(in, side, name, &n[side], e) < 0)
            return -1;
    if (!node_is_dir(&n[BEFORE]) && !node_is_dir(&n[AFTER]))
        return 0;
    if (dir_open(in, name, n, &d, e) < 0)
        return -1;
    buf_printf(&j->path_now, "%s%s", at > 0 ? "/" : "", name);
    r = dir_is_shared(&d, BEFORE, AFTER) ? 0
        : names[0]                       ? find_python(j, &d, names, e)
                                         : packages_below(j, &d, e);
    buf_truncate(&j->path_now, at);
    dir_close(&d);
    return r;
}

static int find_python(struct job *j, const struct dir *in, const char *const *names, struct err *e)
{
    AUTO(names_done) struct names all = {0};
    struct str want = str_of(names[0]);

    if (want.p[want.n - 1] != '*')
        return find_below(j, in, names[0], names + 1, e);
    want.n--;
    if (names_read(in, BEFORE, AFTER, &all, e) < 0)
        return -1;
    for (size_t i = 0; i < all.n; i++)
        if (str_starts(str_of(all.v[i]), want) && find_below(j, in, all.v[i], names + 1, e) < 0)
            return -1;
    return 0;
}

int packages_find(struct job *j, struct err *e)
{
    static const char *const pythons[][6] = {
        {"usr", "lib", "python3*", "dist-packages", NULL},
        {"usr", "lib", "python3*", "site-packages", NULL},
        {"usr", "local", "lib", "python3*", "dist-packages", NULL},
        {"usr", "local", "lib", "python3*", "site-packages", NULL},
        {"opt", "*", "lib", "python3*", "site-packages", NULL},
    };

    for (size_t i = 0; i < ARRAY_LEN(databases); i++)
        if (compare_database(j, &databases[i], e) < 0)
            return -1;
    for (size_t i = 0; i < ARRAY_LEN(pythons); i++)
        if (find_python(j, &j->root, pythons[i], e) < 0)
            return -1;
    return 0;
}
