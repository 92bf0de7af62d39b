/* account: users and groups by /etc/passwd, /etc/group and /etc/shadow.  Hashes are never shown. */
#include "base/mem.h"
#include "compare/compare.h"

#include <stdio.h>
#include <stdlib.h>

#define FIELDS 7
#define ROWS_MAX 100000

struct row {
    struct str v[FIELDS]; /* v[0]: the name */
};
struct table { /* sorted by name */
    struct row *v;
    size_t n, size;
    struct buf text;
    int layer; /* -1: there is none */
};

static void table_done_p(struct table *t)
{
    mem_free(t->v);
    buf_done(&t->text);
}

static int by_name(const void *a, const void *b)
{
    return str_cmp(((const struct row *)a)->v[0], ((const struct row *)b)->v[0]);
}

static void parse(struct table *t)
{
    struct str text = buf_str(&t->text);

    while (text.n > 0 && t->n < ROWS_MAX) {
        struct str line = str_cut(text, '\n', &text);
        struct row r = {0};

        for (size_t i = 0; i < FIELDS && line.n > 0; i++)
            r.v[i] = str_cut(line, ':', &line);
        if (r.v[0].n == 0 || r.v[0].p[0] == '#')
            continue;
        if (t->n == t->size) {
            t->size = t->size ? t->size * 2 : 64;
            t->v = xrealloc(t->v, t->size * sizeof *t->v);
        }
        t->v[t->n++] = r;
    }
    if (t->n > 1)
        qsort(t->v, t->n, sizeof *t->v, by_name);
}

static int read_table(struct job *j, int side, const char *path, struct table *to, struct err *e)
{
    struct node n;
    struct dir in;
    int r;

    if (stack_find(&j->root, side, path, &n, &in, e) < 0)
        return -1;
    to->layer = n.there ? n.layer : -1;
    r = file_content(&n, strrchr(path, '/') + 1, FILE_MAX, &to->text, e);
    dir_close(&in);
    parse(to);
    return r < 0 ? -1 : 0;
}

static const struct row *find(const struct table *t, struct str name)
{
    struct row key = {{name}};

    return t->n > 0 ? bsearch(&key, t->v, t->n, sizeof *t->v, by_name) : NULL;
}

/* "locked", "none" or "set", by shadow(5). */
static struct str password_state(const struct row *r)
{
    struct str p = r ? r->v[1] : (struct str){0};

    if (!r)
        return (struct str){0};
    if (p.n == 0)
        return STR("none");
    return p.p[0] == '!' || p.p[0] == '*' ? STR("locked") : STR("set");
}

struct attrs {
    struct change_attr v[FIELDS + 1];
    uint32_t n;
};

static void attr(struct attrs *to, const char *name, struct str before, struct str after)
{
    if (!str_eq(before, after))
        to->v[to->n++] = (struct change_attr){str_of(name), before, after};
}

static struct str field(const struct row *r, size_t i)
{
    return r ? r->v[i] : (struct str){0};
}

static int put(struct job *j, enum change_kind kind, const struct row *a, const struct row *b,
               const struct attrs *at, struct err *e)
{
    if (a && b && at->n == 0)
        return 0;
    return job_later(j,
                     &(struct change){.kind = kind,
                                      .what = !a   ? CHANGE_ADDED
                                              : !b ? CHANGE_REMOVED
                                                   : CHANGE_CHANGED,
                                      .name = (b ? b : a)->v[0],
                                      .attrs = {.count = at->n, .items = at->v}},
                     e);
}

struct tables {
    struct table a, b, shadow_a, shadow_b;
};

static int put_user(struct job *j, const struct tables *t, const struct row *a, const struct row *b,
                    struct err *e)
{
    static const struct {
        const char *name;
        size_t at;
    } fields[] = {{"uid", 2}, {"gid", 3}, {"comment", 4}, {"home", 5}, {"shell", 6}};
    struct str name = (b ? b : a)->v[0], was, is;
    const struct row *sa = a ? find(&t->shadow_a, name) : NULL;
    const struct row *sb = b ? find(&t->shadow_b, name) : NULL;
    struct attrs at = {0};

    for (size_t i = 0; i < ARRAY_LEN(fields); i++)
        attr(&at, fields[i].name, field(a, fields[i].at), field(b, fields[i].at));
    was = password_state(sa);
    is = password_state(sb);
    if (sa && sb && str_eq(was, is) && !str_eq(sa->v[1], sb->v[1]))
        is = STR("changed");
    attr(&at, "password", was, is);
    return put(j, CHANGE_USER, a, b, &at, e);
}

static int put_group(struct job *j, const struct tables *t, const struct row *a,
                     const struct row *b, struct err *e)
{
    struct attrs at = {0};

    (void)t;
    attr(&at, "gid", field(a, 2), field(b, 2));
    attr(&at, "members", field(a, 3), field(b, 3));
    return put(j, CHANGE_GROUP, a, b, &at, e);
}

typedef int (*put_row)(struct job *j, const struct tables *t, const struct row *a,
                       const struct row *b, struct err *e);

static int each(struct job *j, const struct tables *t, put_row put_one, struct err *e)
{
    size_t x = 0, y = 0;

    while (x < t->a.n || y < t->b.n) {
        int r = x == t->a.n ? 1 : y == t->b.n ? -1 : str_cmp(t->a.v[x].v[0], t->b.v[y].v[0]);
        const struct row *a = r <= 0 ? &t->a.v[x] : NULL, *b = r >= 0 ? &t->b.v[y] : NULL;

        x += r <= 0;
        y += r >= 0;
        if (put_one(j, t, a, b, e) < 0)
            return -1;
    }
    return 0;
}

static void tables_done_p(struct tables *t)
{
    table_done_p(&t->a);
    table_done_p(&t->b);
    table_done_p(&t->shadow_a);
    table_done_p(&t->shadow_b);
}

static int users(struct job *j, struct err *e)
{
    AUTO(tables_done) struct tables t = {0};

    if (read_table(j, BEFORE, "etc/passwd", &t.a, e) < 0 ||
        read_table(j, AFTER, "etc/passwd", &t.b, e) < 0 ||
        read_table(j, BEFORE, "etc/shadow", &t.shadow_a, e) < 0 ||
        read_table(j, AFTER, "etc/shadow", &t.shadow_b, e) < 0)
        return -1;
    if (t.a.layer == t.b.layer && t.shadow_a.layer == t.shadow_b.layer)
        return 0;
    return each(j, &t, put_user, e);
}

static int groups(struct job *j, struct err *e)
{
    AUTO(tables_done) struct tables t = {0};

    if (read_table(j, BEFORE, "etc/group", &t.a, e) < 0 ||
        read_table(j, AFTER, "etc/group", &t.b, e) < 0)
        return -1;
    return t.a.layer == t.b.layer ? 0 : each(j, &t, put_group, e);
}

int accounts_find(struct job *j, struct err *e)
{
    return users(j, e) < 0 ? -1 : groups(j, e);
}
