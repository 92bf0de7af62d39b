/* dialect: calls all rows of the table of dialects. */
#include "api/dialects/dialect.h"

#include "base/mem.h"

struct dialect_slot {
    void *state;
    struct route inside, instead;
};

static size_t dialect_count(void)
{
    size_t n = 0;

    while (dialect_table[n])
        n++;
    return n;
}

static bool has_root(const struct dialect *d, struct str first)
{
    for (size_t i = 0; d->roots && d->roots[i]; i++)
        if (str_eq_c(first, d->roots[i]))
            return true;
    return false;
}

const struct dialect *dialect_of_path(struct str path)
{
    struct str first = {0};

    if (path.n > 0)
        first = str_cut(str_cut(str_skip(path, 1), '/', &(struct str){0}), '?', &(struct str){0});
    for (size_t i = 0; dialect_table[i]; i++)
        if (has_root(dialect_table[i], first))
            return dialect_table[i];
    return NULL;
}

const struct dialect *dialect_of_role(enum listener_role role)
{
    for (size_t i = 0; dialect_table[i]; i++)
        if (dialect_table[i]->inside.handler && dialect_table[i]->inside_role == role)
            return dialect_table[i];
    return NULL;
}

const struct dialect *dialect_that_takes(const struct xchg *x)
{
    for (size_t i = 0; dialect_table[i]; i++)
        if (dialect_table[i]->takes && dialect_table[i]->takes(x))
            return dialect_table[i];
    return NULL;
}

bool dialects_want_address(const char *address)
{
    for (size_t i = 0; dialect_table[i]; i++)
        for (const char *const *a = dialect_table[i]->listen; a && *a; a++)
            if (strcmp(*a, address) == 0)
                return true;
    return false;
}

const char *dialects_session_name(void)
{
    for (size_t i = 0; dialect_table[i]; i++)
        if (dialect_table[i]->names_sessions)
            return dialect_table[i]->name;
    return NULL;
}

/* --- routes --- */

static int add_routes_of(struct api *a, const struct dialect *d, struct err *e)
{
    for (size_t i = 0; i < d->route_count; i++)
        if (router_add(a->router, &d->routes[i], e) < 0)
            return -1;
    if (d->add_routes && d->add_routes(a->router, e) < 0)
        return -1;
    return rpc_add_routes(a, d->rpcs, d->rpc_count, e);
}

int dialects_add_routes(struct api *a, struct err *e)
{
    for (size_t i = 0; dialect_table[i]; i++)
        if (add_routes_of(a, dialect_table[i], e) < 0)
            return err_wrap(e, "dialect '%s'", dialect_table[i]->name);
    return 0;
}

/* --- life --- */

int dialects_probe(const struct config *c, struct err *e)
{
    for (size_t i = 0; dialect_table[i]; i++)
        if (dialect_table[i]->probe && dialect_table[i]->probe(c, e) < 0)
            return -1;
    return 0;
}

void dialects_start(struct api *a)
{
    a->dialects = xzalloc((dialect_count() + 1) * sizeof *a->dialects);
    for (size_t i = 0; dialect_table[i]; i++) {
        struct dialect_slot *slot = &a->dialects[i];

        slot->inside = dialect_table[i]->inside;
        if (slot->inside.handler)
            slot->inside.index = router_reserve(a->router);
        slot->instead = dialect_table[i]->instead;
        if (slot->instead.handler)
            slot->instead.index = router_reserve(a->router);
        if (dialect_table[i]->start)
            slot->state = dialect_table[i]->start(a);
    }
}

void dialects_tick(struct api *a)
{
    for (size_t i = 0; dialect_table[i]; i++)
        if (dialect_table[i]->tick)
            dialect_table[i]->tick(a, a->dialects[i].state);
}

void dialects_end_streams(struct api *a)
{
    for (size_t i = 0; dialect_table[i]; i++)
        if (dialect_table[i]->end_streams)
            dialect_table[i]->end_streams(a, a->dialects[i].state);
}

void dialects_free(struct api *a)
{
    for (size_t i = 0; a->dialects && dialect_table[i]; i++)
        if (dialect_table[i]->free)
            dialect_table[i]->free(a->dialects[i].state);
    mem_free(a->dialects);
}

void dialects_print_metrics(const struct api *a, struct buf *to)
{
    for (size_t i = 0; dialect_table[i]; i++)
        if (dialect_table[i]->print_metrics)
            dialect_table[i]->print_metrics(a, to);
}

void dialects_write_metrics(const struct api *a, struct jw *w)
{
    for (size_t i = 0; dialect_table[i]; i++)
        if (dialect_table[i]->write_metrics)
            dialect_table[i]->write_metrics(a, a->dialects[i].state, w);
}

static struct dialect_slot *slot_of(const struct api *a, const struct dialect *d)
{
    size_t i = 0;

    while (dialect_table[i] != d)
        i++;
    return &a->dialects[i];
}

void *dialect_state(const struct api *a, const struct dialect *d)
{
    return slot_of(a, d)->state;
}

const struct route *dialect_inside(const struct api *a, const struct dialect *d)
{
    return &slot_of(a, d)->inside;
}

const struct route *dialect_instead(const struct api *a, const struct dialect *d)
{
    return &slot_of(a, d)->instead;
}
