/* text: the shortest edit of lines (Myers, "An O(ND) Difference Algorithm", 1986), as hunks. */
#include "compare/text.h"

#include "base/mem.h"

#include <stdlib.h>

#define CONTEXT 3
#define EDITS_MAX 1500 /* more: what is between the equal ends is replaced as a whole */

struct line {
    struct str s; /* with its newline, if it has one */
    uint32_t hash;
};

struct lines {
    struct line *v;
    bool *gone; /* of a: removed; of b: added */
    size_t n;
};

struct edit {
    struct lines a, b;
    size_t head, a_end, b_end; /* between: what is not equal at both ends */
};

bool text_is_binary(struct str s)
{
    return s.n > 0 && memchr(s.p, '\0', s.n);
}

static uint32_t hash_of(struct str s)
{
    uint32_t h = 2166136261U; /* FNV-1a */

    for (size_t i = 0; i < s.n; i++)
        h = (h ^ (unsigned char)s.p[i]) * 16777619U;
    return h;
}

static void split(struct str s, struct lines *to)
{
    size_t count = 1;

    for (size_t i = 0; i < s.n; i++)
        count += s.p[i] == '\n';
    to->v = xmalloc(count * sizeof *to->v);
    to->gone = xzalloc(count * sizeof *to->gone);
    while (s.n > 0) {
        const char *end = memchr(s.p, '\n', s.n);
        size_t n = end ? (size_t)(end - s.p) + 1 : s.n;

        to->v[to->n].s = str_make(s.p, n);
        to->v[to->n].hash = hash_of(to->v[to->n].s);
        to->n++;
        s = str_skip(s, n);
    }
}

static void lines_done(struct lines *l)
{
    mem_free(l->v);
    mem_free(l->gone);
}

static bool same(const struct edit *t, size_t x, size_t y)
{
    const struct line *a = &t->a.v[x], *b = &t->b.v[y];

    return a->hash == b->hash && str_eq(a->s, b->s);
}

static void cut_equal_ends(struct edit *t)
{
    t->a_end = t->a.n;
    t->b_end = t->b.n;
    while (t->head < t->a_end && t->head < t->b_end && same(t, t->head, t->head))
        t->head++;
    while (t->a_end > t->head && t->b_end > t->head && same(t, t->a_end - 1, t->b_end - 1)) {
        t->a_end--;
        t->b_end--;
    }
}

static void replace_all(struct edit *t)
{
    for (size_t i = t->head; i < t->a_end; i++)
        t->a.gone[i] = true;
    for (size_t i = t->head; i < t->b_end; i++)
        t->b.gone[i] = true;
}

/* --- the greedy search: v[k] is the furthest x on diagonal k after d edits --- */

struct search {
    struct edit *t;
    int n, m;
    int *v;      /* of the current d, from -d to d, at +max */
    int **trace; /* v as it was before each d: from -d to d */
    int max;
};

/* One step of d edits; true: the end was reached. */
static bool step(struct search *s, int d)
{
    for (int k = -d; k <= d; k += 2) {
        int *v = s->v + s->max;
        int x = k == -d || (k != d && v[k - 1] < v[k + 1]) ? v[k + 1] : v[k - 1] + 1;
        int y = x - k;

        while (x < s->n && y < s->m && same(s->t, s->t->head + (size_t)x, s->t->head + (size_t)y)) {
            x++;
            y++;
        }
        v[k] = x;
        if (x >= s->n && y >= s->m)
            return true;
    }
    return false;
}

static void keep_trace(struct search *s, int d)
{
    s->trace[d] = xmalloc((size_t)(2 * d + 3) * sizeof(int));
    memcpy(s->trace[d], s->v + s->max - d - 1, (size_t)(2 * d + 3) * sizeof(int));
}

static void walk_back(struct search *s, int d)
{
    int x = s->n, y = s->m;

    for (; d > 0; d--) {
        const int *v = s->trace[d] + d + 1; /* as it was before step d */
        int k = x - y;
        bool down = k == -d || (k != d && v[k - 1] < v[k + 1]);
        int from = down ? k + 1 : k - 1;
        int px = v[from], py = px - from;

        if (down)
            s->t->b.gone[s->t->head + (size_t)py] = true;
        else
            s->t->a.gone[s->t->head + (size_t)px] = true;
        x = px;
        y = py;
    }
}

static void find_edit(struct edit *t)
{
    struct search s = {.t = t, .n = (int)(t->a_end - t->head), .m = (int)(t->b_end - t->head)};
    int d = 0;

    if (s.n == 0 || s.m == 0) {
        replace_all(t);
        return;
    }
    s.max = (int)size_min((size_t)s.n + (size_t)s.m, EDITS_MAX) + 1;
    s.v = xzalloc((size_t)(2 * s.max + 3) * sizeof(int));
    s.trace = xzalloc((size_t)(s.max + 1) * sizeof *s.trace);
    for (; d < s.max; d++) {
        keep_trace(&s, d);
        if (step(&s, d))
            break;
    }
    if (d < s.max)
        walk_back(&s, d);
    else
        replace_all(t);
    for (int i = 0; i <= s.max; i++)
        mem_free(s.trace[i]);
    mem_free(s.trace);
    mem_free(s.v);
}

/* --- hunks --- */

static void put_line(struct buf *to, char mark, struct str s)
{
    buf_add_char(to, mark);
    buf_add_str(to, s);
    if (s.n == 0 || s.p[s.n - 1] != '\n')
        buf_add_c(to, "\n\\ No newline at end of file\n");
}

static void put_range(struct buf *to, char mark, size_t at, size_t n)
{
    buf_printf(to, "%c%zu", mark, n == 0 ? at : at + 1);
    if (n != 1)
        buf_printf(to, ",%zu", n);
}

/* Lines of a from x, of b from y: one hunk, to where 2 * CONTEXT + 1 equal ones follow. */
static void put_hunk(const struct edit *t, size_t *ax, size_t *by, struct buf *to)
{
    size_t x = *ax, y = *by, equal = 0;
    size_t a0 = x - size_min(x, CONTEXT), b0 = y - size_min(y, CONTEXT);
    AUTO(buf_done) struct buf body = {0};

    for (size_t i = a0; i < x; i++)
        put_line(&body, ' ', t->a.v[i].s);
    while (x < t->a.n || y < t->b.n) {
        size_t ahead = 0;

        while (x + ahead < t->a.n && y + ahead < t->b.n && !t->a.gone[x + ahead] &&
               !t->b.gone[y + ahead] && ahead <= 2 * CONTEXT)
            ahead++;
        equal = ahead;
        if (ahead > 2 * CONTEXT || (x + ahead == t->a.n && y + ahead == t->b.n))
            break;
        for (equal = 0; ahead > 0; ahead--, y++)
            put_line(&body, ' ', t->a.v[x++].s);
        while (x < t->a.n && t->a.gone[x])
            put_line(&body, '-', t->a.v[x++].s);
        while (y < t->b.n && t->b.gone[y])
            put_line(&body, '+', t->b.v[y++].s);
    }
    equal = size_min(equal, CONTEXT);
    for (size_t i = 0; i < equal; i++)
        put_line(&body, ' ', t->a.v[x + i].s);
    buf_add_c(to, "@@ ");
    put_range(to, '-', a0, x + equal - a0);
    buf_add_char(to, ' ');
    put_range(to, '+', b0, y + equal - b0);
    buf_add_c(to, " @@\n");
    buf_add_str(to, buf_str(&body));
    *ax = x;
    *by = y;
}

static int put_hunks(const struct edit *t, size_t max, struct buf *to)
{
    size_t x = 0, y = 0, start = buf_len(to);

    while (x < t->a.n || y < t->b.n) {
        if (x < t->a.n && y < t->b.n && !t->a.gone[x] && !t->b.gone[y]) {
            x++;
            y++;
            continue;
        }
        put_hunk(t, &x, &y, to);
        if (buf_len(to) - start > max) {
            buf_truncate(to, start);
            return 1;
        }
    }
    return 0;
}

int text_diff(struct str a, struct str b, size_t max, struct buf *to)
{
    struct edit t = {0};
    int r;

    split(a, &t.a);
    split(b, &t.b);
    cut_equal_ends(&t);
    find_edit(&t);
    r = put_hunks(&t, max, to);
    lines_done(&t.a);
    lines_done(&t.b);
    return r;
}
