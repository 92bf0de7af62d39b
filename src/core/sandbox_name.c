#include "core/sandbox_inside.h"

#include "base/near.h"

#define NAME_MAX_LEN 63

static bool name_char(char c, bool first)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || (c == '-' && !first);
}

/* --- what is free: a text leads to one sandbox, whoever asks --- */

int sandbox_name_check(struct sandboxes *all, const struct sandbox *self, struct str name,
                       struct err *e)
{
    const struct sandbox *other;
    struct err none;

    for (size_t i = 0; i < name.n; i++)
        if (!name_char(name.p[i], i == 0) || name.n > NAME_MAX_LEN) {
            err_set(e, ERR_INVALID, 0, "field 'name': '" STR_FMT "' is no name",
                    (int)size_min(name.n, 64), name.p);
            return err_hint(e, "up to %d of a-z, 0-9 and '-', not '-' first", NAME_MAX_LEN);
        }
    if (name.n == 0)
        return 0;
    other = map_get(&all->by_name, name);
    if (!other) {
        const char *object = alias_find_any(all->aliases, name, &none);

        other = object ? map_get(&all->by_id, str_of(object)) : NULL;
    }
    if (!other || other == self)
        return 0;
    err_set(e, ERR_CONFLICT, 0, "a sandbox named '" STR_FMT "' exists already", STR_ARG(name));
    err_object(e, "sandbox", other->id);
    return err_hint(e, "choose another name, or destroy it: holt rm " STR_FMT, STR_ARG(name));
}

int sandbox_alias_check(struct sandboxes *all, struct alias_name n, struct err *e)
{
    const struct sandbox *other;

    if (alias_check(all->aliases, n, STR(""), e) < 0)
        return -1;
    other = map_get(&all->by_name, n.alias);
    if (!other)
        other = map_get(&all->by_id, n.alias);
    if (!other)
        return 0;
    err_set(e, ERR_CONFLICT, 0, "a sandbox named '" STR_FMT "' exists already", STR_ARG(n.alias));
    err_object(e, "sandbox", other->id);
    return err_hint(e, "choose another, or destroy it: holt rm %s", other->id);
}

/* --- changes --- */

static void unname(struct sandbox *s)
{
    if (s->name && map_get(&s->all->by_name, str_of(s->name)) == s)
        map_remove(&s->all->by_name, str_of(s->name));
}

void sandbox_named(struct sandbox *s)
{
    if (s->name && *s->name)
        map_set(&s->all->by_name, str_of(s->name), s);
}

void sandbox_unnamed(struct sandbox *s)
{
    unname(s);
    if (!s->all->closed) /* the table goes as a whole then */
        alias_drop(s->all->aliases, str_of(s->id));
}

void sandbox_rename(struct sandbox *s, struct str name)
{
    unname(s);
    text_set(&s->name, name);
    sandbox_named(s);
}

/* --- looking up --- */

static struct sandbox *of_object(struct sandboxes *all, const char *object)
{
    return object ? map_get(&all->by_id, str_of(object)) : NULL;
}

static struct sandbox *not_found(struct sandboxes *all, struct str ref, struct err *e)
{
    struct near n = {.word = ref};

    err_set(e, ERR_NOT_FOUND, 0, "there is no sandbox '" STR_FMT "'", (int)size_min(ref.n, 64),
            ref.p ? ref.p : "");
    for (size_t i = 0; i < size_min(all->count, 256) && ref.n <= 64; i++)
        if (all->sorted[i]->name && *all->sorted[i]->name)
            near_try(&n, all->sorted[i]->name);
    if (n.best)
        err_hint(e, "did you mean '%s'? holt ls lists all", n.best);
    else
        err_hint(e, "holt ls lists those there are");
    return NULL;
}

struct sandbox *sandbox_find_as(struct sandboxes *all, struct str dialect, struct str ref,
                                struct err *e)
{
    struct sandbox *s = map_get(&all->by_id, ref);
    struct err why = {0};

    if (!s && dialect.n > 0)
        s = of_object(all, alias_find(all->aliases, (struct alias_name){dialect, ref}));
    if (!s)
        s = map_get(&all->by_name, ref);
    if (s)
        return s;
    s = of_object(all, alias_find_any(all->aliases, ref, &why));
    if (s || why.code != ERR_CONFLICT)
        return s ? s : not_found(all, ref, e);
    *e = why;
    return NULL;
}

struct sandbox *sandbox_find(struct sandboxes *all, struct str ref, struct err *e)
{
    return sandbox_find_as(all, STR(""), ref, e);
}
