/* create_join: concurrent creates of one name share a sandbox. */
#include "api/share/create_join.h"

#include "base/mem.h"

struct create_join {
    struct list link; /* in api.creating */
    struct list askers;
    char *owner, *dialect, *alias;
};

struct asker {
    struct list link;
    struct waiter waiter;
    create_join_cb tell;
};

static void add_asker(struct create_join *c, struct request *r, create_join_cb tell)
{
    struct asker *k = xzalloc(sizeof *k);

    k->tell = tell;
    list_push(&c->askers, &k->link);
    request_wait(r, &k->waiter);
}

bool create_join_try(struct request *r, struct alias_name n, create_join_cb tell)
{
    LIST_EACH (&r->api->creating, node) {
        struct create_join *c = LIST_ENTRY(node, struct create_join, link);

        if (!str_eq_c(n.alias, c->alias) || !str_eq_c(n.dialect, c->dialect) ||
            strcmp(principal_owner(&r->who), c->owner) != 0)
            continue;
        add_asker(c, r, tell);
        return true;
    }
    return false;
}

void create_join_end(void *arg, struct sandbox *s, const struct err *e)
{
    struct create_join *c = arg;
    struct list *node;

    list_unlink(&c->link);
    while ((node = list_pop(&c->askers))) {
        struct asker *k = LIST_ENTRY(node, struct asker, link);
        struct request *r = waiter_end(&k->waiter);
        create_join_cb tell = k->tell;

        mem_free(k);
        if (r)
            tell(r, s, e);
    }
    mem_free(c->owner);
    mem_free(c->dialect);
    mem_free(c->alias);
    mem_free(c);
}

struct create_join *create_join_begin(struct request *r, struct alias_name n, create_join_cb tell)
{
    struct create_join *c = xzalloc(sizeof *c);

    c->owner = xstrdup(principal_owner(&r->who));
    c->dialect = str_dup(n.dialect);
    c->alias = str_dup(n.alias);
    list_init(&c->askers);
    list_push(&r->api->creating, &c->link);
    add_asker(c, r, tell);
    return c;
}
