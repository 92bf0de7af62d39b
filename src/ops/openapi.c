/* openapi: prints the operations as OpenAPI 3.1. */
#include "base/mem.h"
#include "ops/schema.h"

#include <ctype.h>

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
        schema_field(w, f);
        jw_object_end(w);
    }
    if (op->creates)
        schema_ref(w, "parameters", "IdempotencyKey");
    jw_array_end(w);
}

static void add_bytes(struct jw *w, const char *type)
{
    jw_key(w, type);
    jw_raw(w, STR("{\"schema\":{\"type\":\"string\",\"format\":\"binary\"}}"));
}

/* null means no body, if that is allowed (decode.c). */
static void add_body_schema(struct jw *w, const char *name, bool required)
{
    if (required) {
        schema_ref(w, "schemas", name);
        return;
    }
    jw_object(w);
    jw_key(w, "oneOf");
    jw_array(w);
    schema_ref(w, "schemas", name);
    jw_raw(w, STR("{\"type\":\"null\"}"));
    jw_array_end(w);
    jw_object_end(w);
}

static void add_body(struct jw *w, const struct op *op)
{
    AUTO(buf_done) struct buf name = {0};
    bool required = false;

    if (op->upload) {
        jw_key(w, "requestBody");
        jw_object(w);
        jw_key(w, "content");
        jw_object(w);
        add_bytes(w, op->upload);
        jw_object_end(w);
        jw_object_end(w);
    }
    if (!schema_has_body(op))
        return;
    for (size_t i = 0; i < op->in_count; i++)
        required = required || (op->in[i].required && op_place(op, &op->in[i]) == OP_IN_BODY);
    (void)schema_name(op->name, true, &name);
    buf_add_c(&name, "Input");
    jw_key(w, "requestBody");
    jw_object(w);
    jw_kbool(w, "required", required);
    jw_key(w, "content");
    jw_object(w);
    jw_key(w, "application/json");
    jw_object(w);
    jw_key(w, "schema");
    add_body_schema(w, buf_cstr(&name), required);
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

    if (op->reply == OP_REPLY_EMPTY || op->reply == OP_REPLY_SOCKET ||
        strcmp(op->method, "HEAD") == 0)
        return;
    jw_key(w, "content");
    jw_object(w);
    if (op->schema) {
        buf_printf(&name, "%s%s", op->schema, op->reply == OP_REPLY_LIST ? "List" : "");
        jw_key(w, "application/json");
        jw_object(w);
        jw_key(w, "schema");
        schema_ref(w, "schemas", buf_cstr(&name));
        jw_object_end(w);
    }
    if (op->reply == OP_REPLY_TEXT)
        add_text_content(w, op->media ? op->media : "text/plain");
    if (op->also)
        jw_key(w, op->also), jw_raw(w, STR("{}"));
    if (op->streams || op->reply == OP_REPLY_STREAM)
        add_text_content(w, "text/event-stream");
    if (op->reply == OP_REPLY_BYTES)
        add_bytes(w, op->media ? op->media : "application/octet-stream");
    jw_object_end(w);
}

static void open_reply(struct jw *w, int status, const char *text)
{
    char key[8];

    (void)snprintf(key, sizeof key, "%d", status);
    jw_key(w, key);
    jw_object(w);
    jw_kc(w, "description", text);
}

static void add_reply(struct jw *w, const struct op *op, int status, const char *text)
{
    open_reply(w, status, text);
    add_content(w, op);
    jw_object_end(w);
}

static void add_bare_reply(struct jw *w, int status, const char *text)
{
    open_reply(w, status, text);
    jw_object_end(w);
}

static void add_failure(struct jw *w, enum err_code code)
{
    char key[8];

    (void)snprintf(key, sizeof key, "%d", err_table[code].http);
    jw_key(w, key);
    schema_ref(w, "responses", err_table[code].name);
}

/* The failures that clients handle; "default" covers the rest. */
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
    return op->perm != PERM_NONE || schema_has_body(op); /* a login fails like a wrong token */
}

static void add_responses(struct jw *w, const struct op *op)
{
    jw_key(w, "responses");
    jw_object(w);
    if (op->reply == OP_REPLY_SOCKET)
        add_reply(w, op, 101, "It is a WebSocket from here on.");
    else
        add_reply(w, op, op->status ? op->status : 200,
                  op->reply == OP_REPLY_EMPTY ? "Done." : "Done; the reply says what came of it.");
    if (op->later)
        add_reply(w, op, 202, op->later);
    if (op->ranges)
        add_reply(w, op, 206, "The part that the Range header names.");
    if (op->cached)
        add_bare_reply(w, 304, "What the client has is still the same.");
    for (size_t i = 0; i < ARRAY_LEN(failures); i++)
        if (can_fail(op, failures[i].code))
            add_failure(w, failures[i].code);
    if (strcmp(op->name, "readyz") == 0)
        add_reply(w, op, 503, "It is not ready; the reply says why.");
    jw_key(w, "default");
    schema_ref(w, "responses", "error");
    jw_object_end(w);
}

static void add_method(struct jw *w, const struct op *op, const char *method)
{
    AUTO(buf_done) struct buf id = {0};
    size_t first = strcspn(op->text, "\n");

    jw_key(w, method);
    jw_object(w);
    (void)schema_name(op->name, false, &id);
    if (strcmp(op->method, "*") == 0)
        (void)schema_name(method, true, &id);
    jw_kstr(w, "operationId", buf_str(&id));
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

/* OpenAPI has no "any method": lists each one. */
static void add_operation(struct jw *w, const struct op *op)
{
    static const char *const any[] = {"get", "head", "post", "put", "patch", "delete", "options"};
    char method[8] = "";

    for (size_t i = 0; strcmp(op->method, "*") == 0 && i < ARRAY_LEN(any); i++)
        add_method(w, op, any[i]);
    for (size_t i = 0; op->method[i] && i < sizeof method - 1; i++)
        method[i] = (char)tolower((unsigned char)op->method[i]);
    if (strcmp(method, "*") != 0)
        add_method(w, op, method);
}

/* OpenAPI writes "{path...}" as "{path}". */
static void add_path_key(struct jw *w, const char *path)
{
    AUTO(buf_done) struct buf key = {0};
    const char *dots = strstr(path, "...}");

    buf_add(&key, path, dots ? (size_t)(dots - path) : strlen(path));
    buf_add_c(&key, dots ? "}" : "");
    jw_key(w, buf_cstr(&key));
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
        add_path_key(w, op_table[i]->path);
        jw_object(w);
        for (size_t j = i; j < op_count; j++)
            if (strcmp(op_table[j]->path, op_table[i]->path) == 0)
                add_operation(w, op_table[j]);
        jw_object_end(w);
    }
    jw_object_end(w);
}

/* --- the document --- */

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
               "\"schema\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":128}}}"));
    jw_key(w, "responses");
    jw_object(w);
    for (size_t i = 0; i < ARRAY_LEN(failures); i++)
        add_error_response(w, err_table[failures[i].code].name, failures[i].text);
    add_error_response(w, "error", "It failed; the code says how.");
    jw_object_end(w);
    schema_all(w);
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
