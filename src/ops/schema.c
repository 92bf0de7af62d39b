/* schema: prints fields, bodies and replies as JSON Schema. */
#include "ops/schema.h"

#include <ctype.h>

void schema_ref(struct jw *w, const char *kind, const char *name)
{
    AUTO(buf_done) struct buf to = {0};

    buf_printf(&to, "#/components/%s/%s", kind, name);
    jw_object(w);
    jw_kstr(w, "$ref", buf_str(&to));
    jw_object_end(w);
}

bool schema_has_body(const struct op *op)
{
    for (size_t i = 0; i < op->in_count; i++)
        if (op_place(op, &op->in[i]) == OP_IN_BODY)
            return true;
    return false;
}

struct str schema_name(const char *name, bool upper, struct buf *to)
{
    for (; *name; name++) {
        if (*name == '.' || *name == '_') {
            upper = true;
            continue;
        }
        buf_add_char(to, upper ? (char)toupper((unsigned char)*name) : *name);
        upper = false;
    }
    return buf_str(to);
}

/* --- one field as a schema --- */

static void add_type(struct jw *w, const char *type, bool nullable)
{
    jw_key(w, "type");
    if (!nullable) {
        jw_c(w, type);
        return;
    }
    jw_array(w);
    jw_c(w, type);
    jw_c(w, "null");
    jw_array_end(w);
}

static void add_limits(struct jw *w, const struct op_field *f, const char *min, const char *max)
{
    if (f->min == 0 && f->max == 0)
        return;
    jw_kint(w, min, f->min);
    jw_kint(w, max, f->max);
}

static void schema_str(struct jw *w, const struct op_field *f)
{
    add_type(w, "string", f->nullable);
    if (f->pattern)
        jw_kc(w, "pattern", f->pattern);
    add_limits(w, f, "minLength", "maxLength");
}

static void schema_int(struct jw *w, const struct op_field *f)
{
    add_type(w, "integer", f->nullable);
    jw_kc(w, "format", "int64");
    add_limits(w, f, "minimum", "maximum");
}

static void schema_bool(struct jw *w, const struct op_field *f)
{
    add_type(w, "boolean", f->nullable);
}

static void add_null(struct jw *w, const struct op_field *f)
{
    if (!f->nullable)
        return;
    jw_object(w);
    jw_kc(w, "type", "null");
    jw_object_end(w);
}

/* A number in its base unit, or text with a unit. */
static void schema_quantity(struct jw *w, const struct op_field *f)
{
    const char *pattern = f->type == OP_SIZE ? "^[0-9]+([kKmMgGtT]([iI]?[bB])?|[bB])?$"
                                             : "^([0-9]+|([0-9]+(\\.[0-9]+)?(ms|s|m|h|d))+)$";

    struct op_field number = *f;

    number.nullable = false;
    jw_key(w, "oneOf");
    jw_array(w);
    jw_object(w);
    schema_int(w, &number);
    jw_object_end(w);
    jw_object(w);
    jw_kc(w, "type", "string");
    jw_kc(w, "pattern", pattern);
    jw_object_end(w);
    add_null(w, f);
    jw_array_end(w);
}

static void schema_time(struct jw *w, const struct op_field *f)
{
    add_type(w, "string", f->nullable);
    jw_kc(w, "format", "date-time");
}

static void schema_choice(struct jw *w, const struct op_field *f)
{
    add_type(w, "string", f->nullable);
    jw_key(w, "enum");
    jw_array(w);
    for (size_t i = 0; f->choices[i]; i++)
        jw_c(w, f->choices[i]);
    if (f->nullable)
        jw_null(w);
    jw_array_end(w);
}

static void add_string_schema(struct jw *w, const char *key)
{
    jw_key(w, key);
    jw_object(w);
    jw_kc(w, "type", "string");
    jw_object_end(w);
}

static void schema_list(struct jw *w, const struct op_field *f)
{
    add_type(w, "array", f->nullable);
    add_string_schema(w, "items");
    add_limits(w, f, "minItems", "maxItems");
}

static void schema_map(struct jw *w, const struct op_field *f)
{
    add_type(w, "object", f->nullable);
    add_string_schema(w, "additionalProperties");
    add_limits(w, f, "minProperties", "maxProperties");
}

static void schema_json(struct jw *w, const struct op_field *f)
{
    struct str left = str_of(f->types);

    jw_key(w, "type");
    jw_array(w);
    while (left.n > 0)
        jw_str(w, str_cut(left, '|', &left));
    if (f->nullable)
        jw_c(w, "null");
    jw_array_end(w);
}

static void schema_since(struct jw *w, const struct op_field *f)
{
    jw_key(w, "oneOf");
    jw_array(w);
    jw_object(w);
    jw_kc(w, "type", "integer");
    jw_kc(w, "format", "int64");
    jw_kint(w, "minimum", 0);
    jw_object_end(w);
    jw_object(w);
    jw_kc(w, "type", "string");
    jw_kc(w, "format", "date-time");
    jw_object_end(w);
    add_null(w, f);
    jw_array_end(w);
}

/* A default or an example, as a value of its type. */
static void add_value(struct jw *w, const struct op_field *f, const char *text)
{
    int64_t n;
    bool number =
        f->type == OP_INT || f->type == OP_DURATION || f->type == OP_SIZE || f->type == OP_SINCE;

    if (number && str_parse_i64(str_of(text), &n) == 0) {
        jw_int(w, n);
    } else if (f->type == OP_BOOL) {
        jw_bool(w, strcmp(text, "true") == 0);
    } else if (f->type == OP_LIST) {
        jw_array(w);
        jw_c(w, text);
        jw_array_end(w);
    } else {
        jw_c(w, text);
    }
}

void schema_field(struct jw *w, const struct op_field *f)
{
    static void (*const schemas[])(struct jw *, const struct op_field *) = {
        [OP_STR] = schema_str,           [OP_INT] = schema_int,       [OP_BOOL] = schema_bool,
        [OP_DURATION] = schema_quantity, [OP_SIZE] = schema_quantity, [OP_TIME] = schema_time,
        [OP_CHOICE] = schema_choice,     [OP_LIST] = schema_list,     [OP_MAP] = schema_map,
        [OP_JSON] = schema_json,         [OP_SINCE] = schema_since,
    };

    assert(f->type < ARRAY_LEN(schemas));
    jw_object(w);
    jw_kc(w, "description", f->text);
    schemas[f->type](w, f);
    if (f->preset) {
        jw_key(w, "default");
        add_value(w, f, f->preset);
    }
    if (f->example) {
        jw_key(w, "examples");
        jw_array(w);
        add_value(w, f, f->example);
        jw_array_end(w);
    }
    jw_object_end(w);
}

/* --- objects: bodies and replies --- */

static void add_body_schema(struct jw *w, const struct op *op)
{
    AUTO(buf_done) struct buf name = {0};
    struct op_field field;

    (void)schema_name(op->name, true, &name);
    buf_add_c(&name, "Input");
    jw_key(w, buf_cstr(&name));
    jw_object(w);
    jw_kc(w, "type", "object");
    jw_kbool(w, "additionalProperties", false);
    jw_key(w, "properties");
    jw_object(w);
    for (size_t i = 0; i < op->in_count; i++) {
        if (op_place(op, &op->in[i]) != OP_IN_BODY)
            continue;
        field = op->in[i];
        field.nullable = !field.required; /* null means absent */
        jw_key(w, field.name);
        schema_field(w, &field);
    }
    jw_object_end(w);
    jw_key(w, "required");
    jw_array(w);
    for (size_t i = 0; i < op->in_count; i++)
        if (op_place(op, &op->in[i]) == OP_IN_BODY && op->in[i].required)
            jw_c(w, op->in[i].name);
    jw_array_end(w);
    jw_object_end(w);
}

static void add_reply_schema(struct jw *w, const struct op *op)
{
    jw_key(w, op->schema);
    jw_object(w);
    jw_kc(w, "type", "object");
    jw_key(w, "properties");
    jw_object(w);
    for (size_t i = 0; i < op->out_count; i++) {
        jw_key(w, op->out[i].name);
        schema_field(w, &op->out[i]);
    }
    jw_object_end(w);
    jw_key(w, "required");
    jw_array(w);
    for (size_t i = 0; i < op->out_count; i++)
        if (!op->out[i].optional)
            jw_c(w, op->out[i].name);
    jw_array_end(w);
    jw_object_end(w);
}

static void add_list_schema(struct jw *w, const struct op *op)
{
    static const struct op_field cursor =
        REPLY("cursor", OP_STR, "Pass it as 'cursor' to get the next page; null: this is the last.",
              .nullable = true);
    AUTO(buf_done) struct buf name = {0};

    buf_printf(&name, "%sList", op->schema);
    jw_key(w, buf_cstr(&name));
    jw_object(w);
    jw_kc(w, "type", "object");
    jw_key(w, "properties");
    jw_object(w);
    jw_key(w, op->items);
    jw_object(w);
    jw_kc(w, "type", "array");
    jw_key(w, "items");
    schema_ref(w, "schemas", op->schema);
    jw_object_end(w);
    jw_key(w, cursor.name);
    schema_field(w, &cursor);
    jw_object_end(w);
    jw_key(w, "required");
    jw_array(w);
    jw_c(w, op->items);
    jw_c(w, cursor.name);
    jw_array_end(w);
    jw_object_end(w);
}

static void add_error_schema(struct jw *w)
{
    static const char *codes[ERR_CODE_COUNT];
    const struct op_field fields[] = {
        REPLY("code", OP_CHOICE, "The kind of error; the same in gRPC and in the exit status.",
              .choices = codes, .example = "not_found"),
        REPLY("message", OP_STR, "What failed and why.", .example = "no token 'tk_x'"),
        REPLY("object", OP_STR, "The object it is about.", .example = "token/tk_x"),
        REPLY("hint", OP_STR, "What to do about it.", .example = "see `holt token ls`"),
    };

    for (size_t i = 1; i < ERR_CODE_COUNT; i++)
        codes[i - 1] = err_table[i].name;
    jw_key(w, "Error");
    jw_object(w);
    jw_kc(w, "type", "object");
    jw_kc(w, "description", "Every error has this form.");
    jw_key(w, "properties");
    jw_object(w);
    jw_key(w, "error");
    jw_object(w);
    jw_kc(w, "type", "object");
    jw_key(w, "properties");
    jw_object(w);
    for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
        jw_key(w, fields[i].name);
        schema_field(w, &fields[i]);
    }
    jw_object_end(w);
    jw_key(w, "required");
    jw_raw(w, STR("[\"code\",\"message\"]"));
    jw_object_end(w);
    jw_object_end(w);
    jw_key(w, "required");
    jw_raw(w, STR("[\"error\"]"));
    jw_object_end(w);
}

/* Rows may share a schema: it is printed with the first of them (as an item, and as a list). */
static bool is_first_with_schema(size_t row, bool list)
{
    for (size_t i = 0; i < row; i++) {
        const struct op *op = op_table[i];

        if (op->schema && strcmp(op->schema, op_table[row]->schema) == 0 &&
            (!list || op->reply == OP_REPLY_LIST))
            return false;
    }
    return true;
}

void schema_all(struct jw *w)
{
    jw_key(w, "schemas");
    jw_object(w);
    for (size_t i = 0; i < op_count; i++) {
        const struct op *op = op_table[i];

        if (schema_has_body(op))
            add_body_schema(w, op);
        if (op->schema && is_first_with_schema(i, false))
            add_reply_schema(w, op);
        if (op->reply == OP_REPLY_LIST && is_first_with_schema(i, true))
            add_list_schema(w, op);
    }
    add_error_schema(w);
    jw_object_end(w);
}
