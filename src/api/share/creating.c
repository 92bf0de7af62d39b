#include "api/share/creating.h"

#include "base/mem.h"

struct creating {
    struct list link; /* in api.creating */
    struct list askers;
    char *owner, *dialect, *alias;
};

struct asker {
    struct list link;
    struct waiter waiter;
    creating_tell tell;
};

static void add_asker(struct creating *c, struct request *r, creating_tell tell)
{
    struct asker *k = xzalloc(sizeof *k);

    k->tell = tell;
    list_push(&c->askers, &k->link);
    request_wait(r, &k->waiter);
}

bool creating_join(struct request *r, struct alias_name n, creating_tell tell)
{
    LIST_EACH (&r->api->creating, node) {
        struct creating *c = LIST_ENTRY(node, struct creating, link);

        if (!str_eq_c(n.alias, c->alias) || !str_eq_c(n.dialect, c->dialect) ||
            strcmp(principal_owner(&r->who), c->owner) != 0)
            continue;
        add_asker(c, r, tell);
        return true;
    }
    return false;
}

void creating_end(void *arg, struct sandbox *s, const struct err *e)
{
    struct creating *c = arg;
    struct list *node;

    list_unlink(&c->link);
    while ((node = list_pop(&c->askers))) {
        struct asker *k = LIST_ENTRY(node, struct asker, link);
        struct request *r = waiter_end(&k->waiter);
        creating_tell tell = k->tell;

        mem_free(k);
        if (r)
            tell(r, s, e);
    }
    mem_free(c->owner);
    mem_free(c->dialect);
    mem_free(c->alias);
    mem_free(c);
}

struct creating *creating_begin(struct request *r, struct alias_name n, creating_tell tell)
{
    struct creating *c = xzalloc(sizeof *c);

    c->owner = xstrdup(principal_owner(&r->who));
    c->dialect = str_dup(n.dialect);
    c->alias = str_dup(n.alias);
    list_init(&c->askers);
    list_push(&r->api->creating, &c->link);
    add_asker(c, r, tell);
    return c;
}
