/* sandbox_name: names and aliases of sandboxes, and lookup by caller. */
#include "core/sandbox/sandbox_internal.h"

#include "base/suggest.h"

#define NAME_MAX_LEN 63

static bool name_char(char c, bool first)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || (c == '-' && !first);
}

struct owned sandbox_owned(const struct sandbox *s)
{
    return (struct owned){.owner = str_of(s->owner ? s->owner : ""),
                          .tenant = str_of(s->tenant ? s->tenant : ""),
                          .sandbox = str_of(s->id)};
}

static struct sandbox *by_id(const struct sandboxes *all, struct str id)
{
    return map_get(&all->by_id, id);
}

/* --- checks: among the sandboxes of one owner, a name is unique --- */

static bool is_of(const struct sandbox *s, struct str owner)
{
    return s && str_eq_c(owner, s->owner ? s->owner : "");
}

/* Another sandbox of this owner with that name, in any dialect. */
static const struct sandbox *taken_by(const struct sandboxes *all, struct str owner,
                                      struct str text)
{
    const struct sandbox *s = map_get(&all->by_name, text);

    while (s && !is_of(s, owner))
        s = s->same_name;
    for (const struct alias *a = alias_named(all->aliases, text); a && !s; a = alias_same(a))
        if (is_of(by_id(all, str_of(a->object)), owner))
            s = by_id(all, str_of(a->object));
    return s;
}

static int refuse_taken(const struct sandbox *other, struct str name, struct err *e)
{
    err_set(e, ERR_CONFLICT, 0, "a sandbox named '" STR_FMT "' exists already",
            (int)size_min(name.n, 64), name.p);
    err_object(e, "sandbox", other->id);
    return err_hint(e, "choose another name, or destroy it: holt rm %s", other->id);
}

int sandbox_name_check(struct sandboxes *all, const struct sandbox *self, struct str owner,
                       struct str name, struct err *e)
{
    const struct sandbox *other;

    for (size_t i = 0; i < name.n; i++)
        if (!name_char(name.p[i], i == 0) || name.n > NAME_MAX_LEN) {
            err_set(e, ERR_INVALID, 0, "field 'name': '" STR_FMT "' is not a valid name",
                    (int)size_min(name.n, 64), name.p);
            return err_hint(e, "up to %d of a-z, 0-9 and '-', not '-' first", NAME_MAX_LEN);
        }
    if (name.n == 0)
        return 0;
    other = taken_by(all, owner, name);
    return other && other != self ? refuse_taken(other, name, e) : 0;
}

/* Two dialects may use the same alias for two sandboxes of one owner: each means its own. */
int sandbox_alias_check(struct sandboxes *all, struct str owner, struct alias_name n, struct err *e)
{
    const struct sandbox *other;

    if (alias_check(all->aliases, n, STR(""), e) < 0)
        return -1;
    other = by_id(all, n.alias);
    if (other)
        return refuse_taken(other, n.alias, e);
    for (other = map_get(&all->by_name, n.alias); other; other = other->same_name)
        if (is_of(other, owner))
            return refuse_taken(other, n.alias, e);
    for (const struct alias *a = alias_named(all->aliases, n.alias); a; a = alias_same(a)) {
        other = by_id(all, str_of(a->object));
        if (is_of(other, owner) && str_eq(a->name.dialect, n.dialect))
            return refuse_taken(other, n.alias, e);
    }
    return 0;
}

/* --- changes --- */

static void unname(struct sandbox *s)
{
    struct sandbox *at = s->name ? map_get(&s->all->by_name, str_of(s->name)) : NULL;

    if (at == s && s->same_name) {
        map_set(&s->all->by_name, str_of(s->name), s->same_name);
    } else if (at == s) {
        map_remove(&s->all->by_name, str_of(s->name));
    } else {
        while (at && at->same_name != s)
            at = at->same_name;
        if (at)
            at->same_name = s->same_name;
    }
    s->same_name = NULL;
}

void sandbox_named(struct sandbox *s)
{
    if (s->name && *s->name)
        s->same_name = map_set(&s->all->by_name, str_of(s->name), s);
}

void sandbox_unnamed(struct sandbox *s)
{
    unname(s);
    if (!s->all->closed) /* the table is freed as a whole then */
        alias_drop(s->all->aliases, str_of(s->id));
}

void sandbox_rename(struct sandbox *s, struct str name)
{
    unname(s);
    text_set(&s->name, name);
    sandbox_named(s);
}

/* --- lookup --- */

static struct sandbox *not_found(struct sandboxes *all, const struct principal *by, struct str ref,
                                 struct err *e)
{
    struct suggest n = {.word = ref};

    err_set(e, ERR_NOT_FOUND, 0, "there is no sandbox '" STR_FMT "'", (int)size_min(ref.n, 64),
            ref.p ? ref.p : "");
    for (size_t i = 0; i < size_min(all->count, 256) && ref.n <= 64; i++) {
        const struct owned o = sandbox_owned(all->sorted[i]);

        if (all->sorted[i]->name && *all->sorted[i]->name && owner_may(by, &o, OWNER_SEE))
            suggest_try(&n, all->sorted[i]->name);
    }
    if (n.best)
        err_hint(e, "did you mean '%s'? holt ls lists all sandboxes", n.best);
    else
        err_hint(e, "holt ls lists the sandboxes");
    return NULL;
}

static void offer(struct owner_look *l, struct sandbox *s, int rank)
{
    const struct owned o = s ? sandbox_owned(s) : (struct owned){0};

    if (s)
        owner_offer(l, s, s->id, &o, rank);
}

/* Its alias in this dialect wins over its name, that over aliases in other dialects. */
static void offer_named(struct sandboxes *all, struct str dialect, struct owner_look *l)
{
    for (struct sandbox *s = map_get(&all->by_name, l->name); s; s = s->same_name)
        offer(l, s, 1);
    for (const struct alias *a = alias_named(all->aliases, l->name); a; a = alias_same(a))
        offer(l, by_id(all, str_of(a->object)),
              dialect.n > 0 && str_eq(a->name.dialect, dialect) ? 0 : 2);
}

struct sandbox *sandbox_find_as(struct sandboxes *all, const struct principal *by,
                                struct str dialect, struct str ref, struct err *e)
{
    struct owner_look l = {.by = by, .text = ref, .name = ref};
    struct sandbox *s = by_id(all, ref);
    struct err why = {0};

    if (s)
        return sandbox_check(s, by, e) == 0 ? s : NULL;
    offer_named(all, dialect, &l);
    if (!l.found && owner_look_split(&l))
        offer_named(all, dialect, &l);
    s = owner_found(&l, "sandbox", &why);
    if (s || why.code == ERR_NONE)
        return s ? s : not_found(all, by, ref, e);
    *e = why;
    return NULL;
}

struct sandbox *sandbox_find(struct sandboxes *all, const struct principal *by, struct str ref,
                             struct err *e)
{
    return sandbox_find_as(all, by, STR(""), ref, e);
}

struct sandbox *sandbox_own(struct sandboxes *all, const struct principal *by, struct alias_name n)
{
    for (const struct alias *a = alias_named(all->aliases, n.alias); a; a = alias_same(a)) {
        struct sandbox *s = by_id(all, str_of(a->object));

        if (str_eq(a->name.dialect, n.dialect) && is_of(s, str_of(principal_owner(by))))
            return s;
    }
    return NULL;
}

struct sandbox *sandbox_next(struct sandboxes *all, const struct principal *by, struct str after)
{
    for (size_t i = sorted_after(SORTED(all, id), after); i < all->count; i++) {
        const struct owned o = sandbox_owned(all->sorted[i]);

        if (owner_may(by, &o, OWNER_SEE))
            return all->sorted[i];
    }
    return NULL;
}
