/* alias: the table of other names of objects. */
#include "core/sandbox/alias.h"

#include "base/buf.h"
#include "base/map.h"
#include "base/mem.h"

#include <stdio.h>
#include <string.h>

struct entry {
    struct alias a;
    struct entry *same; /* the next with this text */
    char texts[];
};

struct aliases {
    struct map by_text;   /* the first one with this text */
    struct map by_object; /* its newest one */
};

struct aliases *aliases_new(void)
{
    return xzalloc(sizeof(struct aliases));
}

struct aliases *aliases_free(struct aliases *t)
{
    size_t at = 0;
    struct str key;
    void *v;

    if (!t)
        return NULL;
    while (map_next(&t->by_object, &at, &key, &v))
        for (struct entry *x = v, *next; x; x = next) {
            next = x->a.next ? CONTAINER_OF(x->a.next, struct entry, a) : NULL;
            mem_free(x);
        }
    map_done(&t->by_text);
    map_done(&t->by_object);
    mem_free(t);
    return NULL;
}

static bool is_plain(struct str s, size_t max)
{
    for (size_t i = 0; i < s.n; i++)
        if ((unsigned char)s.p[i] < ' ' || s.p[i] == 0x7f)
            return false;
    return s.n > 0 && s.n <= max;
}

static bool has(const struct aliases *t, struct alias_name n, struct str object)
{
    for (const struct alias *a = alias_first(t, object); a; a = a->next)
        if (str_eq(a->name.alias, n.alias) && str_eq(a->name.dialect, n.dialect))
            return true;
    return false;
}

/* --- changes --- */

int alias_check(const struct aliases *t, struct alias_name n, struct str object, struct err *e)
{
    size_t count = 0;

    if (!is_plain(n.dialect, ALIAS_DIALECT_MAX) || !is_plain(n.alias, ALIAS_MAX)) {
        err_set(e, ERR_INVALID, 0, "'" STR_FMT "' cannot be an alias", (int)size_min(n.alias.n, 64),
                n.alias.p ? n.alias.p : "");
        return err_hint(e, "1 to %d bytes without control characters", ALIAS_MAX);
    }
    for (const struct alias *a = alias_first(t, object); a; a = a->next)
        count++;
    if (count >= ALIASES_PER_OBJECT && !has(t, n, object)) {
        err_set(e, ERR_LIMIT, 0, "'" STR_FMT "' has %d aliases already", STR_ARG(object),
                ALIASES_PER_OBJECT);
        return err_limit_fixed(e, ALIASES_PER_OBJECT, "use one of those");
    }
    return 0;
}

static struct entry *entry_new(struct alias_name n, struct str object)
{
    struct entry *x = xzalloc(sizeof *x + n.dialect.n + n.alias.n + 2);
    char *alias = x->texts + n.dialect.n + 1;

    memcpy(x->texts, n.dialect.p, n.dialect.n);
    memcpy(alias, n.alias.p, n.alias.n);
    x->a.name = (struct alias_name){str_make(x->texts, n.dialect.n), str_make(alias, n.alias.n)};
    (void)snprintf(x->a.object, sizeof x->a.object, STR_FMT, STR_ARG(object));
    return x;
}

int alias_add(struct aliases *t, struct alias_name n, struct str object, struct err *e)
{
    struct entry *x;

    assert(object.n > 0 && object.n < ID_SIZE);
    if (alias_check(t, n, object, e) < 0)
        return -1;
    if (has(t, n, object))
        return 0;
    x = entry_new(n, object);
    x->same = map_set(&t->by_text, n.alias, x);
    x->a.next = map_set(&t->by_object, object, x); /* the struct alias is the first member */
    return 0;
}

static void unlink_text(struct aliases *t, const struct entry *x)
{
    struct entry *first = map_get(&t->by_text, x->a.name.alias);

    if (first == x && !x->same) {
        map_remove(&t->by_text, x->a.name.alias);
    } else if (first == x) {
        map_set(&t->by_text, x->a.name.alias, x->same);
    } else {
        while (first->same != x)
            first = first->same;
        first->same = x->same;
    }
}

void alias_drop(struct aliases *t, struct str object)
{
    struct entry *x = map_remove(&t->by_object, object);

    while (x) {
        struct entry *next = x->a.next ? CONTAINER_OF(x->a.next, struct entry, a) : NULL;

        unlink_text(t, x);
        mem_free(x);
        x = next;
    }
}

/* --- lookup --- */

const struct alias *alias_named(const struct aliases *t, struct str alias)
{
    const struct entry *x = map_get(&t->by_text, alias);

    return x ? &x->a : NULL;
}

const struct alias *alias_same(const struct alias *a)
{
    const struct entry *x = CONTAINER_OF(a, struct entry, a);

    return x->same ? &x->same->a : NULL;
}

const struct alias *alias_first(const struct aliases *t, struct str object)
{
    const struct entry *x = map_get(&t->by_object, object);

    return x ? &x->a : NULL;
}

/* --- rows --- */

int aliases_load(struct aliases *t, struct store_tx *tx, struct err *e)
{
    struct store_rows *rows;
    int r;

    if (tx_query(tx, "SELECT dialect, alias, object FROM aliases ORDER BY dialect, alias",
                 NO_PARAMS, &rows, e) < 0)
        return -1;
    while ((r = rows_step(rows, e)) > 0) {
        struct str object = rows_text(rows, 2);

        if (object.n == 0 || object.n >= ID_SIZE)
            return err_set(e, ERR_INTERNAL, 0, "a row of aliases has a damaged object");
        if (alias_add(t, (struct alias_name){rows_text(rows, 0), rows_text(rows, 1)}, object, e) <
            0)
            return err_wrap(e, "a row of aliases");
    }
    rows_end(rows);
    return r;
}

int alias_put(struct store_tx *tx, struct alias_name n, const char *object, struct err *e)
{
    return tx_run(tx,
                  "INSERT INTO aliases (dialect, alias, object) VALUES (:dialect, :alias, :object) "
                  "ON CONFLICT (dialect, alias, object) DO NOTHING",
                  PARAMS(P_TEXT("dialect", n.dialect), P_TEXT("alias", n.alias),
                         P_C("object", object)),
                  e) < 0
               ? -1
               : 0;
}

int alias_erase(struct store_tx *tx, const char *object, struct err *e)
{
    return tx_run(tx, "DELETE FROM aliases WHERE object = :object", PARAMS(P_C("object", object)),
                  e) < 0
               ? -1
               : 0;
}
