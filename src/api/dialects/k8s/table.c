/* table: objects as the tables that kubectl prints. */
#include "api/dialects/k8s/k8s.h"

#include "base/clock.h"

/* The words of kubectl's own ages: two units where one is too coarse. */
void k8s_age(int64_t ms, struct buf *to)
{
    long long s = (long long)(i64_max(ms, 0) / 1000), m = s / 60, h = m / 60, d = h / 24;

    if (s < 120)
        buf_printf(to, "%llds", s);
    else if (m < 10)
        buf_printf(to, s % 60 ? "%lldm%llds" : "%lldm", m, s % 60);
    else if (h < 3)
        buf_printf(to, "%lldm", m);
    else if (h < 8)
        buf_printf(to, m % 60 ? "%lldh%lldm" : "%lldh", h, m % 60);
    else if (h < 48)
        buf_printf(to, "%lldh", h);
    else if (d < 8)
        buf_printf(to, h % 24 ? "%lldd%lldh" : "%lldd", d, h % 24);
    else
        buf_printf(to, "%lldd", d);
}

void k8s_cell_age(const json_t *object, struct buf *to)
{
    int64_t made = 0;

    if (clock_parse(k8s_text(k8s_meta(object), "creationTimestamp"), &made) == 0)
        k8s_age(clock_wall_ms() - made, to);
    else
        buf_add_c(to, "<unknown>");
}

static void put_condition(const json_t *object, const char *member, struct buf *to)
{
    const json_t *all = json_object_get(json_object_get(object, "status"), "conditions");

    for (size_t i = 0; i < json_array_size(all); i++)
        if (str_eq_c(k8s_text(json_array_get(all, i), "type"), "Ready"))
            buf_add_str(to, k8s_text(json_array_get(all, i), member));
}

void k8s_cell_ready(const json_t *object, struct buf *to)
{
    put_condition(object, "status", to);
}

void k8s_cell_reason(const json_t *object, struct buf *to)
{
    put_condition(object, "reason", to);
}

static void cell_name(const json_t *object, struct buf *to)
{
    buf_add_str(to, k8s_name(object));
}

static const struct k8s_column name_column = {
    "Name", "string",
    "name", "Name must be unique within a namespace. Is required when creating resources.",
    0,      cell_name};

static json_t *definition(const struct k8s_column *c)
{
    json_t *d = json_object();

    json_object_set_new(d, "name", json_string(c->name));
    json_object_set_new(d, "type", json_string(c->type));
    json_object_set_new(d, "format", json_string(c->format));
    json_object_set_new(d, "description", json_string(c->text));
    json_object_set_new(d, "priority", json_integer(c->priority));
    return d;
}

static json_t *cell(const struct k8s_column *c, const json_t *object)
{
    AUTO(buf_done) struct buf text = {0};
    int64_t n;

    c->cell(object, &text);
    if (strcmp(c->type, "integer") == 0 && str_parse_i64(buf_str(&text), &n) == 0)
        return json_integer(n);
    return k8s_str(buf_str(&text));
}

static json_t *row_object(const struct k8s_query *q, json_t *object)
{
    json_t *o;

    if (q->include == K8S_WHOLE)
        return json_incref(object);
    if (q->include == K8S_NOTHING)
        return json_null();
    o = json_object();
    json_object_set_new(o, "kind", json_string("PartialObjectMetadata"));
    json_object_set_new(o, "apiVersion", json_string(K8S_TABLE_VERSION));
    json_object_set(o, "metadata", json_object_get(object, "metadata"));
    return o;
}

static json_t *row(const struct k8s_kind *kind, const struct k8s_query *q, json_t *object)
{
    json_t *cells = json_array(), *one = json_object();

    json_array_append_new(cells, cell(&name_column, object));
    for (size_t i = 0; i < kind->column_count; i++)
        json_array_append_new(cells, cell(&kind->columns[i], object));
    json_object_set_new(one, "cells", cells);
    json_object_set_new(one, "object", row_object(q, object));
    return one;
}

json_t *k8s_table(const struct k8s_kind *kind, const struct k8s_query *q, json_t *objects,
                  bool head)
{
    json_t *t = json_object(), *columns = json_array(), *rows = json_array(), *o;
    size_t i;

    json_object_set_new(t, "kind", json_string("Table"));
    json_object_set_new(t, "apiVersion", json_string(K8S_TABLE_VERSION));
    json_object_set_new(t, "metadata", json_object());
    if (head) {
        json_array_append_new(columns, definition(&name_column));
        for (size_t k = 0; k < kind->column_count; k++)
            json_array_append_new(columns, definition(&kind->columns[k]));
    }
    json_object_set_new(t, "columnDefinitions", columns);
    json_array_foreach(objects, i, o) json_array_append_new(rows, row(kind, q, o));
    json_object_set_new(t, "rows", rows);
    json_decref(objects);
    return t;
}
