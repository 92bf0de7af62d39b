/* router: a trie from method and path to a route. */
#include "api/router.h"

#include "base/buf.h"
#include "base/map.h"
#include "base/mem.h"
#include "proto/http.h"

struct node {
    struct map literals; /* decoded segment to struct node */
    struct node *param;
    struct node *rest;
    struct route **routes; /* those ending here, in the order they were added */
    size_t count;
};

struct router {
    struct node root;
    size_t count;
};

static void node_done(struct node *n)
{
    size_t at = 0;
    struct str key;
    void *child;

    while (map_next(&n->literals, &at, &key, &child)) {
        node_done(child);
        mem_free(child);
    }
    map_done(&n->literals);
    if (n->param)
        node_done(n->param);
    if (n->rest)
        node_done(n->rest);
    mem_free(n->param);
    mem_free(n->rest);
    for (size_t i = 0; i < n->count; i++)
        mem_free(n->routes[i]);
    mem_free(n->routes);
}

struct router *router_new(void)
{
    return xzalloc(sizeof(struct router));
}

struct router *router_free(struct router *r)
{
    if (r)
        node_done(&r->root);
    mem_free(r);
    return NULL;
}

size_t router_count(const struct router *r)
{
    return r->count;
}

size_t router_reserve(struct router *r)
{
    return r->count++;
}

/* --- adding --- */

static struct node *child_of(struct node *n, struct str segment)
{
    struct node **slot = NULL, *child;

    if (segment.n > 2 && segment.p[0] == '{')
        slot = str_ends(segment, STR("...}")) ? &n->rest : &n->param;
    child = slot ? *slot : map_get(&n->literals, segment);
    if (child)
        return child;
    child = xzalloc(sizeof *child);
    if (slot)
        *slot = child;
    else
        map_set(&n->literals, segment, child);
    return child;
}

static int check_segment(const struct route *route, struct str segment, bool last, struct err *e)
{
    bool opens = segment.n > 0 && segment.p[0] == '{';
    bool closes = segment.n > 0 && segment.p[segment.n - 1] == '}';

    if (segment.n == 0 || opens != closes || (opens && segment.n < 3))
        return err_set(e, ERR_INTERNAL, 0, "route '%s %s': a segment is malformed", route->method,
                       route->path);
    if (opens && !last && str_ends(segment, STR("...}")))
        return err_set(e, ERR_INTERNAL, 0, "route '%s %s': the rest must stand last", route->method,
                       route->path);
    return 0;
}

static int add_here(struct router *r, struct node *n, const struct route *route, struct err *e)
{
    for (size_t i = 0; i < n->count; i++)
        if (strcmp(n->routes[i]->method, route->method) == 0 && !n->routes[i]->guard)
            return err_set(e, ERR_INTERNAL, 0, "route '%s %s' stands behind one that takes all",
                           route->method, route->path);
    n->routes = xrealloc(n->routes, (n->count + 1) * sizeof(struct route *));
    n->routes[n->count] = xmemdup(route, sizeof *route);
    n->routes[n->count++]->index = r->count++;
    return 0;
}

int router_add(struct router *r, const struct route *route, struct err *e)
{
    struct str left = str_of(route->path);
    struct node *n = &r->root;
    size_t depth = 0, params = 0;

    if (left.n == 0 || left.p[0] != '/')
        return err_set(e, ERR_INTERNAL, 0, "route path '%s' must start with '/'", route->path);
    left = str_skip(left, 1);
    while (left.n > 0) {
        struct str segment = str_cut(left, '/', &left);

        if (check_segment(route, segment, left.n == 0, e) < 0)
            return -1;
        params += segment.p[0] == '{';
        if (++depth > ROUTER_DEPTH_MAX || params > ARRAY_LEN(((struct op_params *)0)->v))
            return err_set(e, ERR_INTERNAL, 0, "route '%s' is too long", route->path);
        n = child_of(n, segment);
    }
    return add_here(r, n, route, e);
}

static void list_node(const struct node *n, const struct route **to)
{
    size_t at = 0;
    struct str key;
    void *child;

    while (map_next(&n->literals, &at, &key, &child))
        list_node(child, to);
    if (n->param)
        list_node(n->param, to);
    if (n->rest)
        list_node(n->rest, to);
    for (size_t i = 0; i < n->count; i++)
        to[n->routes[i]->index] = n->routes[i];
}

void router_each(const struct router *r, void (*each)(void *arg, const struct route *route),
                 void *arg)
{
    AUTO(mem_free) const struct route **all = xzalloc((r->count + 1) * sizeof(*all));

    list_node(&r->root, all);
    for (size_t i = 0; i < r->count; i++)
        if (all[i]) /* not reserved */
            each(arg, all[i]);
}

/* --- finding --- */

struct walk {
    struct str method;
    const struct xchg *x;
    struct str raw[ROUTER_DEPTH_MAX];
    struct str decoded[ROUTER_DEPTH_MAX]; /* p is NULL: cannot be one name, only part of a rest */
    size_t count;
    const char *end; /* of the path */
    bool more;       /* more follows the last segment: a '/', or further segments */
    struct router_match *to;
    const struct node *matched; /* the path exists here */
};

static bool passes(const struct walk *w, const struct route *r)
{
    return !r->guard || r->guard(w->x);
}

static const struct route *pick(const struct walk *w, const struct node *n, struct str method)
{
    for (size_t i = 0; i < n->count; i++) {
        const struct route *r = n->routes[i];

        if ((str_eq_c(method, r->method) || strcmp(r->method, "*") == 0) && passes(w, r))
            return r;
    }
    return NULL;
}

/* The path ends at n: whether it exists, and with this method. */
static bool arrive(struct walk *w, const struct node *n)
{
    bool any = false;

    for (size_t i = 0; i < n->count && !any; i++)
        any = passes(w, n->routes[i]);
    if (!any)
        return false;
    w->matched = n;
    w->to->route = pick(w, n, w->method);
    if (!w->to->route && str_eq(w->method, STR("HEAD")))
        w->to->route = pick(w, n, STR("GET"));
    return true;
}

static bool descend(struct walk *w, const struct node *n, size_t at);

static bool take_param(struct walk *w, const struct node *n, size_t at)
{
    struct op_params *p = &w->to->params;

    p->v[p->n++] = w->decoded[at];
    if (descend(w, n->param, at + 1))
        return true;
    p->n--;
    return false;
}

static bool take_rest(struct walk *w, const struct node *n, size_t at)
{
    struct op_params *p = &w->to->params;
    const char *from = w->end;

    if (at < w->count)
        from = w->raw[at].p;
    else if (w->count > 0 && w->more)
        from = w->raw[at - 1].p + w->raw[at - 1].n + 1;
    /* Encoded: only the user of it knows what '/' and '%2F' mean. */
    p->v[p->n++] = str_make(from, (size_t)(w->end - from));
    if (arrive(w, n->rest))
        return true;
    p->n--;
    return false;
}

static bool descend(struct walk *w, const struct node *n, size_t at)
{
    if (at == w->count) {
        if (!w->more && arrive(w, n))
            return true;
    } else {
        const struct node *literal = map_get(&n->literals, w->decoded[at]);

        if (literal && descend(w, literal, at + 1))
            return true;
        if (n->param && w->decoded[at].p && take_param(w, n, at))
            return true;
    }
    return n->rest && take_rest(w, n, at);
}

static void add_method(struct buf *b, const char *method)
{
    buf_add_c(b, buf_len(b) > 0 ? ", " : "");
    buf_add_c(b, method);
}

static struct str allowed_methods(const struct walk *w, struct arena *a)
{
    AUTO(buf_done) struct buf b = {0};
    const struct node *n = w->matched;

    for (size_t i = 0; i < n->count; i++) {
        const struct route *r = n->routes[i];

        /* Of routes that differ only by their guard, one names the method. */
        if (strcmp(r->method, "*") == 0 || pick(w, n, str_of(r->method)) != r)
            continue;
        add_method(&b, r->method);
        if (strcmp(r->method, "GET") == 0 && !pick(w, n, STR("HEAD")))
            add_method(&b, "HEAD");
    }
    if (!pick(w, n, STR("OPTIONS")))
        add_method(&b, "OPTIONS");
    return arena_str(a, buf_str(&b));
}

/* Cuts the path into decoded segments, as many as a route can have. */
static void split(struct walk *w, struct str path, struct arena *a)
{
    struct str left = str_skip(path, 1);

    w->end = path.p + path.n;
    while (left.n > 0 && w->count < ROUTER_DEPTH_MAX) {
        struct str *raw = &w->raw[w->count], *decoded = &w->decoded[w->count];

        *raw = str_cut(left, '/', &left);
        *decoded = *raw;
        if (str_index(*raw, '%') >= 0 && http_path_segment(*raw, a, decoded) < 0)
            *decoded = (struct str){0};
        w->count++;
        w->more = raw->p + raw->n < w->end;
    }
}

/* Parameters become NUL-terminated copies, as op_decode's strings require. */
static void copy_params(struct op_params *p, struct arena *a)
{
    for (size_t i = 0; i < p->n; i++)
        p->v[i] = arena_str(a, p->v[i]);
}

enum router_result router_find(const struct router *r, struct str method, struct str path,
                               const struct xchg *x, struct arena *a, struct router_match *ret)
{
    struct walk w = {.method = method, .x = x, .to = ret};

    *ret = (struct router_match){0};
    if (!http_path_is_normal(path))
        return ROUTER_BAD_PATH;
    split(&w, path, a);
    if (!descend(&w, &r->root, 0))
        return ROUTER_NO_PATH;
    if (!ret->route) {
        ret->allow = allowed_methods(&w, a);
        return ROUTER_NO_METHOD;
    }
    copy_params(&ret->params, a);
    return ROUTER_FOUND;
}
