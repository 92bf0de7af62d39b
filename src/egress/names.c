/* names: made-up addresses for the names a sandbox looks up. */
#include "egress/names.h"

#include "base/list.h"
#include "base/map.h"
#include "base/mem.h"

#define FIRST 0xc6120001u /* 198.18.0.1 */
#define COUNT 0x1fffeu    /* to 198.19.255.254 */

struct name {
    struct list link; /* longest unused first */
    uint32_t address;
    char text[];
};

struct names {
    struct map by_name, by_address;
    struct list used;
    uint32_t next; /* the next index, of COUNT */
};

static struct str address_key(const uint32_t *a)
{
    return str_make(a, sizeof *a);
}

struct names *names_new(void)
{
    struct names *n = xzalloc(sizeof *n);

    list_init(&n->used);
    return n;
}

struct names *names_free(struct names *n)
{
    struct list *link;

    if (!n)
        return NULL;
    while ((link = list_pop(&n->used)))
        mem_free(LIST_ENTRY(link, struct name, link));
    map_done(&n->by_name);
    map_done(&n->by_address);
    mem_free(n);
    return NULL;
}

static void touch(struct names *n, struct name *x)
{
    list_unlink(&x->link);
    list_push(&n->used, &x->link);
}

static void forget_oldest(struct names *n)
{
    struct name *x = LIST_ENTRY(list_pop(&n->used), struct name, link);

    (void)map_remove(&n->by_name, str_of(x->text));
    (void)map_remove(&n->by_address, address_key(&x->address));
    mem_free(x);
}

uint32_t names_address(struct names *n, const char *name)
{
    struct name *x = map_get(&n->by_name, str_of(name));
    size_t size = strlen(name) + 1;

    if (x) {
        touch(n, x);
        return x->address;
    }
    if (n->by_name.count >= NAMES_MAX)
        forget_oldest(n);
    x = xzalloc(sizeof *x + size);
    memcpy(x->text, name, size);
    list_init(&x->link);
    do {
        x->address = FIRST + n->next;
        n->next = (n->next + 1) % COUNT;
    } while (map_get(&n->by_address, address_key(&x->address)));
    (void)map_set(&n->by_name, str_of(name), x);
    (void)map_set(&n->by_address, address_key(&x->address), x);
    list_push(&n->used, &x->link);
    return x->address;
}

const char *names_find(struct names *n, uint32_t address)
{
    struct name *x = map_get(&n->by_address, address_key(&address));

    if (!x)
        return NULL;
    touch(n, x);
    return x->text;
}

bool names_is_made_up(uint32_t address)
{
    return address >> 17 == FIRST >> 17;
}
