/* egress_learned: the lasting answers in memory. */
#include "core/ask/egress_learned.h"

#include "base/mem.h"
#include "base/sorted.h"
#include "wire/egress.h"

#include <stdio.h>

struct learned_rule {
    char id[ID_SIZE];
    struct egress_rule r;
    struct arena texts;
};

static void rule_free(struct learned_rule *n)
{
    arena_done(&n->texts);
    mem_free(n);
}

void learned_done(struct learned *l)
{
    for (size_t i = 0; i < l->count; i++)
        rule_free(l->sorted[i]);
    mem_free(l->sorted);
    *l = (struct learned){0};
}

void learned_put(struct learned *l, const struct egress_rule *r)
{
    struct learned_rule *n;

    if (r->id.n >= ID_SIZE || sorted_find(SORTED(l, id), r->id))
        return;
    n = xzalloc(sizeof *n);
    (void)snprintf(n->id, sizeof n->id, STR_FMT, STR_ARG(r->id));
    n->r = (struct egress_rule){.id = str_of(n->id),
                                .sandbox = arena_str(&n->texts, r->sandbox),
                                .tenant = arena_str(&n->texts, r->tenant),
                                .host = arena_str(&n->texts, r->host),
                                .port = r->port,
                                .allow = r->allow,
                                .created_by = arena_str(&n->texts, r->created_by),
                                .created_ms = r->created_ms};
    sorted_add(SORTED(l, id), n);
}

void learned_drop(struct learned *l, struct str id)
{
    struct learned_rule *n = sorted_find(SORTED(l, id), id);

    if (!n)
        return;
    sorted_remove(SORTED(l, id), n);
    rule_free(n);
}

static bool is_about(const struct egress_rule *r, const struct sandbox_info *s)
{
    return r->sandbox.n > 0 ? str_eq_c(r->sandbox, s->id) : str_eq(r->tenant, s->tenant);
}

/* There are no two with the same scope and destination. */
const struct egress_rule *learned_for(const struct learned *l, const struct sandbox_info *s,
                                      struct str host, int64_t port)
{
    const struct egress_rule *found = NULL;

    for (size_t i = 0; i < l->count; i++) {
        const struct egress_rule *r = &l->sorted[i]->r;

        if (is_about(r, s) && r->port == port && str_eq(r->host, host) &&
            (!found || r->sandbox.n > 0))
            found = r;
    }
    return found;
}

bool learned_names(const struct learned *l, struct str sandbox)
{
    for (size_t i = 0; i < l->count; i++)
        if (str_eq(l->sorted[i]->r.sandbox, sandbox))
            return true;
    return false;
}

const struct egress_rule *learned_next(const struct learned *l, struct str after)
{
    size_t at = sorted_after(SORTED(l, id), after);

    return at < l->count ? &l->sorted[at]->r : NULL;
}

/* The newest first: what does not fit is asked again, and answered here. */
void learned_write(const struct learned *l, const struct sandbox_info *s, struct buf *to)
{
    for (size_t i = l->count; i > 0; i--) {
        const struct egress_rule *r = &l->sorted[i - 1]->r;

        if (buf_len(to) + r->host.n + 16 <= EGRESS_LEARNED_MAX &&
            learned_for(l, s, r->host, r->port) == r)
            buf_printf(to, "%c" STR_FMT ":%d\n", r->allow ? '+' : '-', STR_ARG(r->host),
                       (int)r->port);
    }
}
