/* resolve: merges a loadout with those it extends, and composes one of parts of the registry. */
#include "core/loadout/loadout_internal.h"

#include "base/mem.h"
#include "proto/yaml.h"

#define DEPTH_MAX 16
#define FILES_MAX 128  /* of one resolution */
#define ITEMS_MAX 1000 /* of one list: lists are joined, each item compared with the others */
#define PARTS_MAX 64   /* of one kind in a composition: each framework names each provider */

/* --- merging --- */

static bool is_texts(const json_t *list)
{
    for (size_t i = 0; i < json_array_size(list); i++)
        if (!json_is_string(json_array_get(list, i)))
            return false;
    return json_array_size(list) > 0;
}

static bool is_objects(const json_t *list)
{
    for (size_t i = 0; i < json_array_size(list); i++)
        if (!json_is_object(json_array_get(list, i)))
            return false;
    return json_array_size(list) > 0;
}

static bool has(const json_t *list, const json_t *one)
{
    for (size_t i = 0; i < json_array_size(list); i++)
        if (json_equal(json_array_get(list, i), (json_t *)(uintptr_t)one))
            return true;
    return false;
}

static void join(json_t *to, const json_t *more)
{
    for (size_t i = 0; i < json_array_size(more); i++)
        if (!has(to, json_array_get(more, i)))
            (void)json_array_append_new(to, json_deep_copy(json_array_get(more, i)));
}

void loadout_merge(json_t *to, const json_t *over)
{
    const char *key;
    json_t *v;

    json_object_foreach((json_t *)(uintptr_t)over, key, v)
    {
        json_t *old = json_object_get(to, key);

        if (json_is_object(old) && json_is_object(v))
            loadout_merge(old, v);
        else if ((is_texts(old) && is_texts(v)) || (is_objects(old) && is_objects(v)))
            join(old, v);
        else
            (void)json_object_set_new(to, key, json_deep_copy(v));
    }
}

/* --- checks --- */

static int must_be(const json_t *m, const char *key, const char *value, const char *path,
                   struct err *e)
{
    const char *is = json_string_value(json_object_get(m, key));

    if (is && strcmp(is, value) == 0)
        return 0;
    return err_set(e, ERR_INVALID, 0, "loadout '%.80s': %s must be '%s'", path, key, value);
}

static bool has_long_list(const json_t *v)
{
    const char *key;
    json_t *member;

    if (json_array_size(v) > ITEMS_MAX)
        return true;
    for (size_t i = 0; i < json_array_size(v); i++)
        if (has_long_list(json_array_get(v, i)))
            return true;
    json_object_foreach((json_t *)(uintptr_t)v, key, member) if (has_long_list(member)) return true;
    return false;
}

int loadout_check(const json_t *m, const char *path, struct err *e)
{
    static const char *const objects[] = {"metadata", "resources", "network", "readiness",
                                          "runtimes", "ai_tools",  "aiwg",    "docker"};
    static const char *const lists[] = {"extends", "packages", "write_files", "runcmd"};
    const char *kind = json_string_value(json_object_get(m, "kind"));
    bool layer = kind && strcmp(kind, "layer") == 0;

    if (!json_is_object(m))
        return err_set(e, ERR_INVALID, 0, "loadout '%.80s' is no object", path);
    if (has_long_list(m))
        return err_set(e, ERR_INVALID, 0, "loadout '%.80s': a list has more than %d items", path,
                       ITEMS_MAX);
    if (must_be(m, "apiVersion", "loadout/v1", path, e) < 0)
        return -1;
    if (!layer && (!kind || strcmp(kind, "loadout") != 0))
        return err_set(e, ERR_INVALID, 0, "loadout '%.80s': kind must be 'loadout' or 'layer'",
                       path);
    for (size_t i = 0; i < ARRAY_LEN(objects); i++) {
        const json_t *v = json_object_get(m, objects[i]);

        if (v && !json_is_object(v))
            return err_set(e, ERR_INVALID, 0, "loadout '%.80s': '%s' must be an object", path,
                           objects[i]);
    }
    for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
        const json_t *v = json_object_get(m, lists[i]);

        if (v && !json_is_array(v))
            return err_set(e, ERR_INVALID, 0, "loadout '%.80s': '%s' must be a list", path,
                           lists[i]);
    }
    if (!layer && !json_is_string(json_object_get(json_object_get(m, "metadata"), "name")))
        return err_set(e, ERR_INVALID, 0, "loadout '%.80s': metadata.name is missing", path);
    return 0;
}

/* --- extends --- */

struct chain { /* the files that are being resolved, the innermost first */
    const char *path;
    const struct chain *outer;
    size_t depth;
};
struct resolving {
    const struct loadouts *l;
    size_t files;
};

/* "a → b → a" */
static int say_cycle(const struct chain *c, const char *path, struct err *e)
{
    AUTO(buf_done) struct buf names = {0}, all = {0};

    buf_add_c(&names, path);
    for (; c; c = c->outer) {
        buf_clear(&all);
        buf_printf(&all, "%s -> %s", c->path, buf_cstr(&names));
        buf_clear(&names);
        buf_add_str(&names, buf_str(&all));
        if (strcmp(c->path, path) == 0)
            break;
    }
    return err_set(e, ERR_INVALID, 0, "loadouts extend each other in a circle: %.180s",
                   buf_cstr(&names));
}

static bool is_in(const struct chain *c, const char *path)
{
    for (; c; c = c->outer)
        if (strcmp(c->path, path) == 0)
            return true;
    return false;
}

static int resolve_into(struct resolving *r, const struct chain *c, const json_t *m, json_t *to,
                        struct err *e);

static int resolve_parent(struct resolving *r, const struct chain *outer, const json_t *ref,
                          json_t *to, struct err *e)
{
    struct loadout_info i;
    struct chain c = {.outer = outer, .depth = outer ? outer->depth + 1 : 1};

    if (!json_is_string(ref))
        return err_set(e, ERR_INVALID, 0, "'extends' is a list of paths");
    if (c.depth > DEPTH_MAX || ++r->files > FILES_MAX) {
        err_set(e, ERR_LIMIT, 0, "a loadout extends at most %d others, %d deep", FILES_MAX,
                DEPTH_MAX);
        return err_limit_fixed(e, FILES_MAX, "put several of them into one file");
    }
    if (loadout_find(r->l, str_of(json_string_value(ref)), &i, e) < 0)
        return -1;
    if (is_in(outer, i.path))
        return say_cycle(outer, i.path, e);
    c.path = i.path;
    return resolve_into(r, &c, i.manifest, to, e);
}

static int resolve_into(struct resolving *r, const struct chain *c, const json_t *m, json_t *to,
                        struct err *e)
{
    const json_t *parents = json_object_get(m, "extends");
    AUTO(json_decref) json_t *own = NULL;

    for (size_t i = 0; i < json_array_size(parents); i++)
        if (resolve_parent(r, c, json_array_get(parents, i), to, e) < 0)
            return -1;
    own = json_copy((json_t *)(uintptr_t)m);
    (void)json_object_del(own, "extends");
    loadout_merge(to, own);
    return 0;
}

/* --- what a request names --- */

static int read_manifest(const json_t *given, json_t **ret, struct err *e)
{
    AUTO(yaml_done) struct yaml y = {0};

    if (json_is_string(given)) {
        if (yaml_read(str_make(json_string_value(given), json_string_length(given)), &y, e) < 0)
            return err_wrap(e, "read the loadout");
        *ret = json_incref(y.root);
    } else {
        *ret = json_incref((json_t *)(uintptr_t)given);
    }
    if (loadout_check(*ret, "of the request", e) == 0)
        return 0;
    json_decref(*ret);
    *ret = NULL;
    return -1;
}

static const json_t *named_in(const json_t *list, const char *name)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *is = json_string_value(json_object_get(json_array_get(list, i), "name"));

        if (is && name && strcmp(is, name) == 0)
            return json_array_get(list, i);
    }
    return NULL;
}

static int unknown_part(const char *what, const json_t *name, struct err *e)
{
    err_set(e, ERR_INVALID, 0, "the registry has no %s '%.64s'", what,
            json_is_string(name) ? json_string_value(name) : "");
    return err_hint(e, "`holt loadout registry` lists what there is");
}

/* Each provider's layer, and what AIWG is to do. */
static int compose_aiwg(const json_t *reg, const json_t *aiwg, json_t *extends, json_t *to,
                        struct err *e)
{
    const json_t *providers = json_object_get(aiwg, "providers");
    const json_t *frameworks = json_object_get(aiwg, "frameworks");
    AUTO(json_decref) json_t *list = json_array();

    if (json_array_size(providers) > PARTS_MAX || json_array_size(frameworks) > PARTS_MAX)
        return err_set(e, ERR_INVALID, 0, "a composition has at most %d providers and frameworks",
                       PARTS_MAX);
    for (size_t i = 0; i < json_array_size(providers); i++) {
        const json_t *name = json_array_get(providers, i);
        const json_t *p = named_in(json_object_get(reg, "providers"), json_string_value(name));

        if (!p)
            return unknown_part("provider", name, e);
        (void)json_array_append(extends, json_object_get(p, "layer"));
    }
    for (size_t i = 0; i < json_array_size(frameworks); i++) {
        const json_t *name = json_array_get(frameworks, i);

        if (!named_in(json_object_get(reg, "frameworks"), json_string_value(name)))
            return unknown_part("framework", name, e);
        (void)json_array_append_new(list,
                                    json_pack("{s:O, s:O?}", "name", name, "providers", providers));
    }
    if (json_array_size(list) > 0)
        (void)json_object_set_new(to, "aiwg",
                                  json_pack("{s:b, s:O}", "enabled", 1, "frameworks", list));
    return 0;
}

static int compose(const struct loadouts *l, const json_t *c, json_t **ret, struct err *e)
{
    const json_t *reg = loadouts_registry(l), *init = json_object_get(c, "init");
    const json_t *script =
        named_in(json_object_get(reg, "init_scripts"), init ? json_string_value(init) : "ubuntu");
    AUTO(json_decref)
    json_t *m = json_pack("{s:s, s:s, s:{s:s, s:s}, s:[]}", "apiVersion", "loadout/v1", "kind",
                          "loadout", "metadata", "name", "composed", "description",
                          "Composed of parts of the registry.", "extends");
    json_t *extends = json_object_get(m, "extends");

    if (!json_is_object(c))
        return err_set(e, ERR_INVALID, 0, "'composition' is an object");
    if (!script)
        return unknown_part("init", init, e);
    (void)json_array_extend(extends, json_object_get(script, "layers"));
    if (compose_aiwg(reg, json_object_get(c, "aiwg"), extends, m, e) < 0)
        return -1;
    *ret = TAKE(m);
    return 0;
}

bool loadout_ref_is_empty(const struct loadout_ref *r)
{
    return r->name.n == 0 && !r->manifest && !r->composition;
}

static int take_ref(const struct loadouts *l, const struct loadout_ref *r, json_t **ret,
                    struct chain *c, struct err *e)
{
    int named = (r->name.n > 0) + (r->manifest != NULL) + (r->composition != NULL);
    struct loadout_info i;

    if (named != 1)
        return err_set(e, ERR_INVALID, 0,
                       "give one of: a loadout's name, a manifest, a composition");
    if (r->manifest)
        return read_manifest(r->manifest, ret, e);
    if (r->composition)
        return compose(l, r->composition, ret, e);
    if (loadout_find(l, r->name, &i, e) < 0)
        return -1;
    c->path = i.path;
    *ret = json_incref((json_t *)(uintptr_t)i.manifest);
    return 0;
}

int loadout_resolve(const struct loadouts *l, const struct loadout_ref *ref, json_t **ret,
                    struct err *e)
{
    struct resolving r = {.l = l};
    struct chain c = {0};
    AUTO(json_decref) json_t *m = NULL;
    AUTO(json_decref) json_t *to = json_object();

    if (take_ref(l, ref, &m, &c, e) < 0 || resolve_into(&r, c.path ? &c : NULL, m, to, e) < 0)
        return err_wrap(e, "resolve the loadout");
    *ret = TAKE(to);
    return 0;
}
