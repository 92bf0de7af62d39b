/* body: reads JSON bodies by a table of fields. */
#include "api/dialects/fluid/body.h"

static int wrong_type(const struct fluid_field *f, const char *want, struct err *e)
{
    return err_set(e, ERR_INVALID, 0, "invalid json: field \"%s\" must be %s", f->name, want);
}

static int read_text(const struct fluid_field *f, const json_t *v, struct str *to, struct err *e)
{
    if (!json_is_string(v))
        return wrong_type(f, "a string", e);
    if (memchr(json_string_value(v), '\0', json_string_length(v)))
        return wrong_type(f, "a string without NUL", e);
    *to = str_make(json_string_value(v), json_string_length(v));
    return 0;
}

static int read_texts(const struct fluid_field *f, const json_t *v, struct arena *a,
                      struct fluid_strs *to, struct err *e)
{
    if (!json_is_array(v))
        return wrong_type(f, "a list of strings", e);
    to->v = arena_zalloc(a, (json_array_size(v) + 1) * sizeof *to->v);
    for (; to->n < json_array_size(v); to->n++)
        if (read_text(f, json_array_get(v, to->n), &to->v[to->n], e) < 0)
            return -1;
    return 0;
}

static int read_map(const struct fluid_field *f, json_t *v, struct arena *a, struct fluid_map *to,
                    struct err *e)
{
    if (!json_is_object(v))
        return wrong_type(f, "an object of strings", e);
    to->v = arena_zalloc(a, (json_object_size(v) + 1) * sizeof *to->v);
    for (void *at = json_object_iter(v); at; at = json_object_iter_next(v, at)) {
        struct pair *p = &to->v[to->n++];

        p->key = str_of(json_object_iter_key(at));
        if (read_text(f, json_object_iter_value(at), &p->value, e) < 0)
            return -1;
    }
    return 0;
}

static int read_field(const struct fluid_field *f, json_t *v, struct arena *a, void *to,
                      struct err *e)
{
    if (json_is_null(v))
        return 0;
    switch (f->kind) {
    case FLUID_STR:
        return read_text(f, v, to, e);
    case FLUID_INT:
        if (!json_is_integer(v))
            return wrong_type(f, "a whole number", e);
        *(int64_t *)to = json_integer_value(v);
        return 0;
    case FLUID_BOOL:
        if (!json_is_boolean(v))
            return wrong_type(f, "true or false", e);
        *(bool *)to = json_is_true(v);
        return 0;
    case FLUID_STRS:
        return read_texts(f, v, a, to, e);
    case FLUID_MAP:
        return read_map(f, v, a, to, e);
    case FLUID_JSON:
        *(json_t **)to = v;
        return 0;
    }
    return 0;
}

static const struct fluid_field *field_of(const struct fluid_form *f, const char *name)
{
    for (size_t i = 0; i < f->count; i++)
        if (strcmp(f->fields[i].name, name) == 0)
            return &f->fields[i];
    return NULL;
}

static bool is_missing(const struct fluid_field *f, const void *at)
{
    const struct str *text = at;
    const struct fluid_strs *list = at;

    if (!f->required)
        return false;
    return f->kind == FLUID_STRS ? list->n == 0 : text->n == 0;
}

static int check_required(const struct fluid_form *f, const void *in, struct err *e)
{
    for (size_t i = 0; i < f->count; i++)
        if (is_missing(&f->fields[i], (const char *)in + f->fields[i].offset))
            return err_set(e, ERR_INVALID, 0, "%s is required", f->fields[i].name);
    return 0;
}

int fluid_read_body(struct str text, const struct fluid_form *f, struct arena *a, json_t **hold,
                    void **ret, struct err *e)
{
    void *in = arena_zalloc(a, f->size + 1);

    if (text.n == 0 && f->optional)
        text = STR("{}");
    if (text.n == 0)
        return err_set(e, ERR_INVALID, 0, "invalid json: EOF");
    if ((f->lenient ? json_read_lax : json_read)(text, hold, e) < 0)
        return err_wrap(e, "invalid json");
    if (!json_is_object(*hold))
        return err_set(e, ERR_INVALID, 0, "invalid json: the body must be an object");
    for (void *at = json_object_iter(*hold); at; at = json_object_iter_next(*hold, at)) {
        const struct fluid_field *field = field_of(f, json_object_iter_key(at));

        if (!field && !f->lenient)
            return err_set(e, ERR_INVALID, 0, "invalid json: unknown field \"%.100s\"",
                           json_object_iter_key(at));
        if (field &&
            read_field(field, json_object_iter_value(at), a, (char *)in + field->offset, e) < 0)
            return -1;
    }
    if (check_required(f, in, e) < 0)
        return -1;
    *ret = in;
    return 0;
}
