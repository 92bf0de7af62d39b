#include "base/mem.h"
#include "ops/op.h"
#include "proto/json.h"

#include <ctype.h>
#include <inttypes.h>

/* --- one field as a schema --- */

static void add_ref(struct jw *w, const char *kind, const char *name)
{
    AUTO(buf_done) struct buf to = {0};

    buf_printf(&to, "#/components/%s/%s", kind, name);
    jw_object(w);
    jw_kstr(w, "$ref", buf_str(&to));
    jw_object_end(w);
}

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

/* A number in its base unit, or text with a unit. */
static void schema_quantity(struct jw *w, const struct op_field *f)
{
    const char *pattern =
        f->type == OP_SIZE ? "^[0-9]+([kKmMgGtT]([iI]?[bB])?|[bB])?$" : "^[0-9]+(ms|s|m|h|d)?$";

    jw_key(w, "oneOf");
    jw_array(w);
    jw_object(w);
    schema_int(w, f);
    jw_object_end(w);
    jw_object(w);
    jw_kc(w, "type", "string");
    jw_kc(w, "pattern", pattern);
    jw_object_end(w);
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
    (void)w; /* any value: no keyword restricts it */
    (void)f;
}

static void schema_since(struct jw *w, const struct op_field *f)
{
    (void)f;
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
    jw_array_end(w);
}

/* A default or an example, written as the type has it. */
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

static void add_schema(struct jw *w, const struct op_field *f)
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

static bool has_body(const struct op *op)
{
    for (size_t i = 0; i < op->in_count; i++)
        if (op_place(op, &op->in[i]) == OP_IN_BODY)
            return true;
    return false;
}

/* "token.create" as "tokenCreate", or "TokenCreate" with upper. */
static struct str camel(const char *name, bool upper, struct buf *to)
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

static void add_body_schema(struct jw *w, const struct op *op)
{
    AUTO(buf_done) struct buf name = {0};

    (void)camel(op->name, true, &name);
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
        jw_key(w, op->in[i].name);
        add_schema(w, &op->in[i]);
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
        add_schema(w, &op->out[i]);
    }
    jw_object_end(w);
    jw_key(w, "required");
    jw_array(w);
    for (size_t i = 0; i < op->out_count; i++)
        jw_c(w, op->out[i].name);
    jw_array_end(w);
    jw_object_end(w);
}

static void add_list_schema(struct jw *w, const struct op *op)
{
    static const struct op_field cursor =
        REPLY("cursor", OP_STR, "Ask for the page behind this one with it; null: this is the last.",
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
    add_ref(w, "schemas", op->schema);
    jw_object_end(w);
    jw_key(w, cursor.name);
    add_schema(w, &cursor);
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
        REPLY("message", OP_STR, "What failed, and why.", .example = "no token 'tk_x'"),
        REPLY("object", OP_STR, "What it is about.", .example = "token/tk_x"),
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
        add_schema(w, &fields[i]);
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

/* Rows may share a schema: it is printed with the first that has it (as an item, and as a list). */
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

static void add_schemas(struct jw *w)
{
    jw_key(w, "schemas");
    jw_object(w);
    for (size_t i = 0; i < op_count; i++) {
        const struct op *op = op_table[i];

        if (has_body(op))
            add_body_schema(w, op);
        if (op->schema && is_first_with_schema(i, false))
            add_reply_schema(w, op);
        if (op->reply == OP_REPLY_LIST && is_first_with_schema(i, true))
            add_list_schema(w, op);
    }
    add_error_schema(w);
    jw_object_end(w);
}

/* --- operations --- */

static void add_parameters(struct jw *w, const struct op *op)
{
    jw_key(w, "parameters");
    jw_array(w);
    for (size_t i = 0; i < op->in_count; i++) {
        const struct op_field *f = &op->in[i];
        enum op_place place = op_place(op, f);

        if (place == OP_IN_BODY)
            continue;
        jw_object(w);
        jw_kc(w, "name", f->name);
        jw_kc(w, "in", place == OP_IN_PATH ? "path" : "query");
        jw_kbool(w, "required", f->required);
        jw_kc(w, "description", f->text);
        jw_key(w, "schema");
        add_schema(w, f);
        jw_object_end(w);
    }
    if (op->creates)
        add_ref(w, "parameters", "IdempotencyKey");
    jw_array_end(w);
}

static void add_body(struct jw *w, const struct op *op)
{
    AUTO(buf_done) struct buf name = {0};
    bool required = false;

    if (!has_body(op))
        return;
    for (size_t i = 0; i < op->in_count; i++)
        required = required || (op->in[i].required && op_place(op, &op->in[i]) == OP_IN_BODY);
    (void)camel(op->name, true, &name);
    buf_add_c(&name, "Input");
    jw_key(w, "requestBody");
    jw_object(w);
    jw_kbool(w, "required", required);
    jw_key(w, "content");
    jw_object(w);
    jw_key(w, "application/json");
    jw_object(w);
    jw_key(w, "schema");
    add_ref(w, "schemas", buf_cstr(&name));
    jw_object_end(w);
    jw_object_end(w);
    jw_object_end(w);
}

static void add_text_content(struct jw *w, const char *type)
{
    jw_key(w, type);
    jw_raw(w, STR("{\"schema\":{\"type\":\"string\"}}"));
}

static void add_content(struct jw *w, const struct op *op)
{
    AUTO(buf_done) struct buf name = {0};

    if (op->reply == OP_REPLY_EMPTY)
        return;
    jw_key(w, "content");
    jw_object(w);
    if (op->schema) {
        buf_printf(&name, "%s%s", op->schema, op->reply == OP_REPLY_LIST ? "List" : "");
        jw_key(w, "application/json");
        jw_object(w);
        jw_key(w, "schema");
        add_ref(w, "schemas", buf_cstr(&name));
        jw_object_end(w);
    }
    if (op->reply == OP_REPLY_TEXT)
        add_text_content(w, "text/plain");
    if (op->streams || op->reply == OP_REPLY_STREAM)
        add_text_content(w, "text/event-stream");
    jw_object_end(w);
}

static void add_reply(struct jw *w, const struct op *op, int status, const char *text)
{
    char key[8];

    (void)snprintf(key, sizeof key, "%d", status);
    jw_key(w, key);
    jw_object(w);
    jw_kc(w, "description", text);
    add_content(w, op);
    jw_object_end(w);
}

static void add_failure(struct jw *w, enum err_code code)
{
    char key[8];

    (void)snprintf(key, sizeof key, "%d", err_table[code].http);
    jw_key(w, key);
    add_ref(w, "responses", err_table[code].name);
}

/* The failures that clients plan for; "default" stands for the rest. */
static const struct failure {
    enum err_code code;
    const char *text;
} failures[] = {
    {ERR_INVALID, "The request is malformed or a field is out of range; the message names it."},
    {ERR_UNAUTHENTICATED, "No token, or one that does not work."},
    {ERR_FORBIDDEN, "The token's role may not do this."},
    {ERR_NOT_FOUND, "There is no such object."},
    {ERR_CONFLICT, "The object's state does not allow it, or it exists already."},
    {ERR_LIMIT, "Too many requests: try later, as Retry-After says."},
};

static bool can_fail(const struct op *op, enum err_code code)
{
    if (code == ERR_INVALID)
        return true;
    if (code == ERR_NOT_FOUND)
        return strchr(op->path, '{');
    if (code == ERR_CONFLICT)
        return op->creates;
    if (code == ERR_FORBIDDEN)
        return op->perm > PERM_SELF;
    return op->perm != PERM_NONE || has_body(op); /* a login fails like a token */
}

static void add_responses(struct jw *w, const struct op *op)
{
    jw_key(w, "responses");
    jw_object(w);
    add_reply(w, op, op->status ? op->status : 200,
              op->reply == OP_REPLY_EMPTY ? "Done." : "Done; the reply says what came of it.");
    for (size_t i = 0; i < ARRAY_LEN(failures); i++)
        if (can_fail(op, failures[i].code))
            add_failure(w, failures[i].code);
    if (strcmp(op->name, "readyz") == 0)
        add_reply(w, op, 503, "It is not ready; the reply says why.");
    jw_key(w, "default");
    add_ref(w, "responses", "error");
    jw_object_end(w);
}

static void add_operation(struct jw *w, const struct op *op)
{
    AUTO(buf_done) struct buf id = {0};
    char method[8] = "";
    size_t first = strcspn(op->text, "\n");

    for (size_t i = 0; op->method[i] && i < sizeof method - 1; i++)
        method[i] = (char)tolower((unsigned char)op->method[i]);
    jw_key(w, method);
    jw_object(w);
    jw_kstr(w, "operationId", camel(op->name, false, &id));
    jw_kstr(w, "summary", str_make(op->text, first - (op->text[first - 1] == '.')));
    jw_kc(w, "description", op->text);
    jw_key(w, "tags");
    jw_array(w);
    jw_c(w, op->group);
    jw_array_end(w);
    jw_kc(w, "x-permission", perm_name(op->perm));
    if (op->verb)
        jw_kc(w, "x-verb", op->verb);
    if (op->perm == PERM_NONE) {
        jw_key(w, "security");
        jw_raw(w, STR("[]"));
    }
    if (op->creates || op->in_count > 0)
        add_parameters(w, op);
    add_body(w, op);
    add_responses(w, op);
    jw_object_end(w);
}

static bool is_first_with_path(size_t row)
{
    for (size_t i = 0; i < row; i++)
        if (strcmp(op_table[i]->path, op_table[row]->path) == 0)
            return false;
    return true;
}

static void add_paths(struct jw *w)
{
    jw_key(w, "paths");
    jw_object(w);
    for (size_t i = 0; i < op_count; i++) {
        if (!is_first_with_path(i))
            continue;
        jw_key(w, op_table[i]->path);
        jw_object(w);
        for (size_t j = i; j < op_count; j++)
            if (strcmp(op_table[j]->path, op_table[i]->path) == 0)
                add_operation(w, op_table[j]);
        jw_object_end(w);
    }
    jw_object_end(w);
}

/* --- the whole --- */

static void add_error_response(struct jw *w, const char *name, const char *text)
{
    jw_key(w, name);
    jw_object(w);
    jw_kc(w, "description", text);
    jw_key(w, "content");
    jw_raw(w, STR("{\"application/json\":{\"schema\":{\"$ref\":\"#/components/schemas/Error\"}}}"));
    jw_object_end(w);
}

static void add_components(struct jw *w)
{
    jw_key(w, "components");
    jw_object(w);
    jw_key(w, "securitySchemes");
    jw_raw(w, STR("{\"bearer\":{\"type\":\"http\",\"scheme\":\"bearer\","
                  "\"description\":\"A token, as `holt token create` shows it.\"},"
                  "\"cookie\":{\"type\":\"apiKey\",\"in\":\"cookie\",\"name\":\"" OP_COOKIE "\","
                  "\"description\":\"The dashboard's session.\"}}"));
    jw_key(w, "parameters");
    jw_raw(w,
           STR("{\"IdempotencyKey\":{\"name\":\"Idempotency-Key\",\"in\":\"header\","
               "\"required\":false,\"description\":\"Makes a repeat of the request harmless: the "
               "same key gets the first reply again.\","
               "\"schema\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":255}}}"));
    jw_key(w, "responses");
    jw_object(w);
    for (size_t i = 0; i < ARRAY_LEN(failures); i++)
        add_error_response(w, err_table[failures[i].code].name, failures[i].text);
    add_error_response(w, "error", "It failed; the code says how.");
    jw_object_end(w);
    add_schemas(w);
    jw_object_end(w);
}

static void add_info(struct jw *w, const char *version)
{
    jw_key(w, "info");
    jw_object(w);
    jw_kc(w, "title", "holt");
    jw_kc(w, "version", version);
    jw_kc(w, "summary", "Isolated computers for AI agents, on your own hardware.");
    jw_kc(w, "description",
          "Printed from the table of operations in src/ops. Lists are pages: `cursor` of one reply "
          "asks for the next. Times are RFC 3339 in UTC. Durations are milliseconds, or text such "
          "as `15m`; sizes are bytes, or text such as `64m`.");
    jw_key(w, "license");
    jw_raw(w, STR("{\"name\":\"Apache-2.0\",\"identifier\":\"Apache-2.0\"}"));
    jw_object_end(w);
    jw_key(w, "servers");
    jw_raw(w,
           STR("[{\"url\":\"http://127.0.0.1:8122\",\"description\":\"The default address.\"}]"));
    jw_key(w, "security");
    jw_raw(w, STR("[{\"bearer\":[]},{\"cookie\":[]}]"));
    jw_key(w, "tags");
    jw_array(w);
    for (const struct op_group *g = op_groups; g->name; g++) {
        jw_object(w);
        jw_kc(w, "name", g->name);
        jw_kc(w, "description", g->text);
        jw_object_end(w);
    }
    jw_array_end(w);
}

void op_openapi(struct buf *to, const char *version)
{
    AUTO(buf_done) struct buf flat = {0};
    AUTO(json_decref) json_t *tree = NULL;
    AUTO(mem_free) char *text = NULL;
    struct jw w = {.to = &flat};

    jw_object(&w);
    jw_kc(&w, "openapi", "3.1.0");
    add_info(&w, version);
    add_paths(&w);
    add_components(&w);
    jw_object_end(&w);
    tree = json_loadb(buf_data(&flat), buf_len(&flat), JSON_REJECT_DUPLICATES, NULL);
    assert(tree); /* our own text */
    text = json_dumps(tree, JSON_INDENT(2));
    assert(text);
    buf_add_c(to, text);
    buf_add_char(to, '\n');
}
