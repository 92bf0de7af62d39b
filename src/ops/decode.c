/* decode: decodes path, query and body of a request into an input struct. */
#include "base/enc.h"
#include "base/suggest.h"
#include "ops/op.h"
#include "ops/value.h"

#define FIELDS_MAX 64 /* of one operation: a bit each */

struct decode {
    const struct op *op;
    struct arena *a;
    char *in;
    uint64_t seen; /* fields present, by index */
    struct err *e;
};

static struct value value_of(struct decode *d, const struct op_field *f)
{
    return (struct value){.f = f, .a = d->a, .slot = d->in + f->offset, .e = d->e};
}

static bool note_seen(struct decode *d, const struct op_field *f)
{
    uint64_t bit = UINT64_C(1) << (f - d->op->in);
    bool before = d->seen & bit;

    d->seen |= bit;
    if (f->given > 0)
        *(bool *)(d->in + f->given) = true;
    return before;
}

/* --- unknown and misplaced fields --- */

static const char *const place_names[] = {
    [OP_IN_PATH] = "path", [OP_IN_QUERY] = "query", [OP_IN_BODY] = "body"};

static int hint_known(const struct op *op, struct str name, enum op_place place, struct err *e)
{
    struct suggest n = {.word = name};
    char list[sizeof e->hint] = "";
    size_t at = 0;

    for (size_t i = 0; i < op->in_count && at < sizeof list; i++) {
        if (op_place(op, &op->in[i]) != place)
            continue;
        suggest_try(&n, op->in[i].name);
        at += (size_t)snprintf(list + at, sizeof list - at, "%s%s", at ? ", " : "", op->in[i].name);
    }
    if (n.best)
        return err_hint(e, "did you mean '%s'?", n.best);
    if (at)
        return err_hint(e, "it knows: %s", list);
    return err_hint(e, "%s takes no fields in the %s", op->name, place_names[place]);
}

/* The field of that name in that place; NULL with *e set. */
static const struct op_field *find(struct decode *d, struct str name, enum op_place place)
{
    const struct op_field *f = op_input(d->op, name);
    char shown[VALUE_SHOWN * 6 + 8];

    if (f && op_place(d->op, f) == place)
        return f;
    if (f) {
        (void)err_set(d->e, ERR_INVALID, 0, "field '%s' belongs in the %s, not in the %s", f->name,
                      place_names[op_place(d->op, f)], place_names[place]);
        return NULL;
    }
    (void)err_set(d->e, ERR_INVALID, 0, "%s has no field '%s'", d->op->name,
                  value_shown(name, shown));
    (void)hint_known(d->op, name, place, d->e);
    return NULL;
}

/* --- the three places --- */

static int decode_path(struct decode *d, const struct op_params *path)
{
    const char *at = d->op->path;

    for (size_t i = 0; path && i < path->n; i++) {
        const struct op_field *f;
        struct value v;
        const char *end;

        at = strchr(at, '{');
        assert(at); /* the router has one value per pair of braces */
        end = strchr(at, '}');
        assert(end);
        f = op_input(d->op, str_make(at + 1, strcspn(at + 1, ".}")));
        assert(f);
        v = value_of(d, f);
        (void)note_seen(d, f);
        if (value_text(&v, path->v[i]) < 0)
            return -1;
        at = end;
    }
    return 0;
}

static int bad_escape(struct decode *d, struct str raw)
{
    char shown[VALUE_SHOWN * 6 + 8];

    return err_set(d->e, ERR_INVALID, 0, "the query has a bad %%-escape in '%s'",
                   value_shown(raw, shown));
}

static int decode_pair(struct decode *d, struct str raw)
{
    AUTO(buf_done) struct buf name = {0}, text = {0};
    struct str rest, raw_name = str_cut(raw, '=', &rest);
    const struct op_field *f;
    struct value v;

    if (dec_percent(&name, raw_name, true) < 0)
        return bad_escape(d, raw);
    f = find(d, buf_str(&name), OP_IN_QUERY);
    if (!f)
        return -1;
    /* A time has no space, but people write its "+02:00" unescaped. */
    if (dec_percent(&text, rest, f->type != OP_TIME && f->type != OP_SINCE) < 0)
        return bad_escape(d, raw);
    if (note_seen(d, f) && f->type != OP_LIST && f->type != OP_MAP)
        return err_set(d->e, ERR_INVALID, 0, "field '%s' is given twice in the query", f->name);
    v = value_of(d, f);
    if (f->type == OP_BOOL && raw_name.n == raw.n) /* "?follow" */
        return value_text(&v, STR("true"));
    return value_text(&v, buf_str(&text));
}

static int decode_query(struct decode *d, struct str query)
{
    while (query.n > 0) {
        struct str raw = str_cut(query, '&', &query);

        if (raw.n > 0 && decode_pair(d, raw) < 0)
            return -1;
    }
    return 0;
}

/* null means absent: many clients write members without a value. */
static int decode_body(struct decode *d, const json_t *body)
{
    json_t *o = (json_t *)(uintptr_t)body; /* jansson's iterators are not const */

    if (!body || json_is_null(body))
        return 0;
    if (!json_is_object(body))
        return err_set(d->e, ERR_INVALID, 0, "the body is %s; it must be a JSON object",
                       json_is_array(body) ? "a list" : "a single value");
    for (void *at = json_object_iter(o); at; at = json_object_iter_next(o, at)) {
        const struct op_field *f = find(d, str_of(json_object_iter_key(at)), OP_IN_BODY);
        const json_t *given = json_object_iter_value(at);
        struct value v;

        if (!f)
            return -1;
        if (json_is_null(given))
            continue;
        v = value_of(d, f);
        (void)note_seen(d, f);
        if (value_json(&v, given) < 0)
            return -1;
    }
    return 0;
}

static int fill_the_rest(struct decode *d)
{
    for (size_t i = 0; i < d->op->in_count; i++) {
        const struct op_field *f = &d->op->in[i];
        struct value v = value_of(d, f);
        bool seen = d->seen & UINT64_C(1) << i;

        if (seen && value_end(&v) < 0)
            return -1;
        if (!seen && f->required) {
            AUTO(buf_done) struct buf rule = {0};

            op_rule(f, &rule);
            return err_set(d->e, ERR_INVALID, 0, "field '%s' is required in the %s: %s", f->name,
                           place_names[op_place(d->op, f)], buf_cstr(&rule));
        }
        if (!seen && f->preset && value_text(&v, str_of(f->preset)) < 0)
            /* a unit test decodes all presets */
            return err_wrap(d->e, "preset of %s", d->op->name);
    }
    return 0;
}

int op_decode(const struct op *op, const struct op_params *path, struct str query,
              const json_t *body, struct arena *a, void **ret, struct err *e)
{
    struct decode d = {.op = op, .a = a, .e = e};

    assert(op->in_count <= FIELDS_MAX);
    d.in = arena_zalloc(a, size_max(op->in_size, 1));
    for (size_t i = 0; i < op->in_count; i++) {
        struct value v = value_of(&d, &op->in[i]);

        value_absent(&v);
    }
    if (decode_path(&d, path) < 0 || decode_query(&d, query) < 0 || decode_body(&d, body) < 0 ||
        fill_the_rest(&d) < 0)
        return -1;
    *ret = d.in;
    return 0;
}

int op_decode_text(const struct op_field *f, struct str text, struct arena *a, void *in,
                   struct err *e)
{
    struct value v = {.f = f, .a = a, .slot = (char *)in + f->offset, .e = e};

    return value_text(&v, text);
}
