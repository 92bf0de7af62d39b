/* file: reads settings from a YAML file. */
#include "conf/setting.h"

#include "base/starter.h"
#include "proto/yaml.h"

#include <inttypes.h>

#define FILE_MAX (1 << 20) /* of a settings file */

struct file {
    struct load *l;
    const char *path;
    bool seed;
    struct yaml y;
};

static void file_done_p(struct file *f)
{
    yaml_done(&f->y);
}

/* A scalar as the environment would write it; false: not a scalar. */
static bool scalar_text(const json_t *v, struct buf *to)
{
    if (json_is_string(v))
        buf_add(to, json_string_value(v), json_string_length(v));
    else if (json_is_integer(v))
        buf_printf(to, "%" PRId64, (int64_t)json_integer_value(v));
    else if (json_is_boolean(v))
        buf_add_c(to, json_is_true(v) ? "true" : "false");
    else
        return false;
    return true;
}

/* A number for a converter that takes text: `cpu_limit: 0.5`. */
static bool fraction_text(const json_t *v, const struct setting_alias *alias, struct buf *to)
{
    if (!json_is_real(v) || !alias || !alias->convert)
        return false;
    buf_printf(to, "%.15g", json_real_value(v));
    return true;
}

static bool is_host(const struct given *g, const json_t *v)
{
    return json_is_object(v) && strcmp(g->s->f.name, "hosts") == 0;
}

static int take_scalar(struct file *f, const json_t *v, struct given *g,
                       const struct setting_alias *alias, struct err *e)
{
    AUTO(buf_done) struct buf text = {0};

    if (is_host(g, v)) {
        if (conf_host_from_json(v, &text, e) < 0)
            return err_wrap(e, "%s: setting 'hosts'", g->where);
        g->whole = true;
    } else if (!scalar_text(v, &text) && !fraction_text(v, alias, &text)) {
        AUTO(buf_done) struct buf rule = {0};

        op_rule(&g->s->f, &rule);
        return err_set(e, ERR_INVALID, 0, "%s: setting '%s' is %s; it must be %s", g->where,
                       g->s->f.name,
                       json_is_array(v)    ? "a list"
                       : json_is_object(v) ? "a mapping"
                                           : "a number with a fraction",
                       buf_cstr(&rule));
    }
    g->text = buf_str(&text);
    return alias ? load_alias(f->l, g->s, alias, g, e) : load_apply(f->l, g, e);
}

static int take_list(struct file *f, const json_t *v, struct given *g,
                     const struct setting_alias *alias, struct err *e)
{
    if (json_array_size(v) == 0) { /* "[]" replaces earlier values */
        g->text = STR("");
        return load_apply(f->l, g, e);
    }
    g->whole = true;
    for (size_t i = 0; i < json_array_size(v); i++) {
        char *where =
            arena_printf(&f->l->a, "%s:%zu", f->path, yaml_place_of_item(&f->y, v, i).line);

        g->where = where;
        if (take_scalar(f, json_array_get(v, i), g, alias, e) < 0)
            return -1;
    }
    return 0;
}

static bool is_empty(const json_t *v)
{
    return json_is_null(v) || (json_is_string(v) && json_string_length(v) == 0) ||
           (json_is_array(v) && json_array_size(v) == 0);
}

/* In a dialect's own file 0 and false mean unset, except for aliases with zero_counts: then the
 * variable wins. */
static enum rank seed_rank(const struct setting_alias *a, const json_t *v)
{
    bool zero = json_is_false(v) || (json_is_integer(v) && json_integer_value(v) == 0);

    return zero && !a->zero_counts ? RANK_FILE_ALIAS : RANK_SEED_FILE;
}

static int take_member(struct file *f, const char *key, const json_t *v, struct given *g,
                       struct err *e)
{
    const struct setting_alias *alias = NULL;
    bool is_variable = key[0] >= 'A' && key[0] <= 'Z'; /* a name of the environment, not a key */

    g->s = f->seed ? NULL : setting_find(str_of(key));
    if ((f->seed ? is_empty(v) : json_is_null(v)) &&
        (g->s || setting_find_alias(str_of(key), &alias)))
        return 0; /* "key:" without a value: not set */
    if (g->s) {
        g->rank = RANK_FILE;
        if (json_is_array(v) && g->s->f.type == OP_LIST)
            return take_list(f, v, g, NULL, e);
        return take_scalar(f, v, g, NULL, e);
    }
    if (database_is_part(str_of(key)))
        return 0; /* take_database has read them together */
    g->s = is_variable ? NULL : setting_find_alias(str_of(key), &alias);
    if (g->s) {
        g->rank = f->seed ? seed_rank(alias, v) : RANK_FILE_ALIAS;
        (void)setting_alias_is(alias, str_of(key), &g->rest);
        if (json_is_array(v) && g->s->f.type == OP_LIST)
            return take_list(f, v, g, alias, e);
        return take_scalar(f, v, g, alias, e);
    }
    if (!is_variable && setting_is_foreign(str_of(key))) {
        load_warn(f->l, "%s: '%s' is understood but has no effect: %s", g->where, key,
                  setting_foreign_why(str_of(key)));
        return 0;
    }
    return load_unknown(f->l, str_of(key), AS_KEY, g->where, e);
}

/* `database: {host: …, name: …}` is one value in parts. */
static int take_database(struct file *f, const json_t *section, struct given *g, struct err *e)
{
    AUTO(buf_done) struct buf url = {0};
    int r = database_url(section, &url, e);

    if (r < 0)
        return err_wrap(e, "%s", g->where);
    if (r == 0)
        return 0;
    g->s = setting_find(STR("db"));
    g->rank = RANK_FILE_ALIAS;
    g->text = buf_str(&url);
    return load_apply(f->l, g, e);
}

/* prefix: "" at the top, "logging." inside `logging:`. */
static int take_mapping(struct file *f, json_t *object, const char *prefix, struct err *e)
{
    for (void *at = json_object_iter(object); at; at = json_object_iter_next(object, at)) {
        const char *name = json_object_iter_key(at);
        struct yaml_place place = yaml_place_of_key(&f->y, object, name);
        char *key = arena_printf(&f->l->a, "%s%s", prefix, name);
        struct given g = {.where = arena_printf(&f->l->a, "%s:%zu", f->path, place.line)};
        json_t *v = json_object_iter_value(at);
        char *inner = arena_printf(&f->l->a, "%s.", key);

        if (json_is_object(v) && prefix[0] == '\0' && !setting_find(str_of(key)) &&
            setting_is_section(str_of(inner))) {
            if ((strcmp(key, "database") == 0 && take_database(f, v, &g, e) < 0) ||
                take_mapping(f, v, inner, e) < 0)
                return -1;
            continue;
        }
        if (take_member(f, key, v, &g, e) < 0)
            return -1;
    }
    return 0;
}

int file_load(struct load *l, const char *path, bool seed, struct err *e)
{
    __attribute__((cleanup(file_done_p))) struct file f = {.l = l, .path = path, .seed = seed};
    AUTO(buf_done) struct buf text = {0};
    int r = starter_read(path, FILE_MAX, &text);

    if (r < 0)
        return err_set(e, err_code_from_errno(-r), -r, "read settings file '%s'", path);
    conf_list_add(&l->c->files, path);
    if (yaml_read(buf_str(&text), &f.y, e) < 0)
        return err_wrap(e, "settings file '%s'", path);
    if (json_is_null(f.y.root))
        return 0;
    if (!json_is_object(f.y.root))
        return err_set(e, ERR_INVALID, 0, "settings file '%s' must be a mapping of keys to values",
                       path);
    return take_mapping(&f, f.y.root, "", e);
}
