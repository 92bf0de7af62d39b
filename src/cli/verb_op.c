/* verb_op: turns any operation into a command: request, pages, table. */
#include "cli/verb_op.h"

#include "base/enc.h"
#include "base/mem.h"
#include "cli/request.h"
#include "proto/json.h"

#include <inttypes.h>

#define ROWS_MAX 100000 /* of one list: more than a person reads, and it fits in memory */

static void add_scalar(struct buf *to, const json_t *v)
{
    AUTO(mem_free) char *dumped = NULL;

    if (json_is_string(v)) {
        enc_percent(to, str_make(json_string_value(v), json_string_length(v)));
        return;
    }
    if (json_is_integer(v)) {
        buf_printf(to, "%" PRId64, (int64_t)json_integer_value(v));
        return;
    }
    dumped = json_dumps(v, JSON_COMPACT | JSON_ENCODE_ANY);
    enc_percent(to, str_of(dumped));
}

static void add_query(struct buf *to, char *sep, const char *name, const json_t *v)
{
    if (json_is_array(v)) {
        for (size_t i = 0; i < json_array_size(v); i++)
            add_query(to, sep, name, json_array_get(v, i));
        return;
    }
    if (json_is_object(v)) { /* a map: name=KEY=VALUE for each */
        for (void *at = json_object_iter((json_t *)v); at;
             at = json_object_iter_next((json_t *)v, at)) {
            AUTO(json_decref)
            json_t *pair = json_sprintf("%s=%s", json_object_iter_key(at),
                                        json_string_value(json_object_iter_value(at)));

            add_query(to, sep, name, pair);
        }
        return;
    }
    buf_printf(to, "%c%s=", *sep, name);
    *sep = '&';
    add_scalar(to, v);
}

/* The value of "{name...}": several segments, whose slashes stay. */
static void add_rest(struct buf *to, const json_t *v)
{
    struct str rest = {json_string_value(v), json_string_length(v)};

    while (rest.n > 0) {
        ptrdiff_t slash = str_index(rest, '/');
        size_t n = slash < 0 ? rest.n : (size_t)slash;

        enc_percent(to, str_make(rest.p, n));
        if (slash >= 0)
            buf_add_char(to, '/');
        rest = str_skip(rest, slash < 0 ? n : n + 1);
    }
}

static void add_path(struct buf *to, const struct op *op, const json_t *args)
{
    for (const char *p = op->path; *p; p++) {
        const char *end = *p == '{' ? strchr(p, '}') : NULL;
        const json_t *v;

        if (!end) {
            buf_add_char(to, *p);
            continue;
        }
        v = json_object_getn(args, p + 1, strcspn(p + 1, ".}"));
        if (v && end[-1] == '.')
            add_rest(to, v);
        else if (v)
            add_scalar(to, v);
        p = end;
    }
}

void op_target(const struct op *op, const json_t *args, struct buf *to)
{
    char sep = '?';

    add_path(to, op, args);
    for (size_t i = 0; i < op->in_count; i++) {
        const json_t *v = json_object_get(args, op->in[i].name);

        if (v && op_place(op, &op->in[i]) == OP_IN_QUERY)
            add_query(to, &sep, op->in[i].name, v);
    }
}

void op_body(const struct op *op, const json_t *args, struct buf *to)
{
    AUTO(json_decref) json_t *body = json_object();
    AUTO(mem_free) char *text = NULL;

    if (strcmp(op->method, "GET") == 0 || strcmp(op->method, "HEAD") == 0 ||
        strcmp(op->method, "DELETE") == 0)
        return;
    for (size_t i = 0; i < op->in_count; i++) {
        json_t *v = json_object_get(args, op->in[i].name);

        if (v && op_place(op, &op->in[i]) == OP_IN_BODY)
            json_object_set(body, op->in[i].name, v);
    }
    text = json_dumps(body, JSON_COMPACT);
    buf_add_c(to, text);
}

int op_send(const struct cli *c, const struct op *op, const json_t *args, const struct request *how,
            struct reply *ret, struct err *e)
{
    AUTO(target_done) struct target t = {0};
    AUTO(buf_done) struct buf target = {0};
    struct request r = *how;

    if (target_choose(c, &t, e) < 0)
        return -1;
    op_target(op, args, &target);
    r.method = op->method;
    r.target = buf_cstr(&target);
    r.connect_ms = c->connect_ms;
    if (r.feed)
        r.type = op->upload;
    return request_run(&t, &r, ret, e);
}

int op_request(const struct cli *c, const struct op *op, const json_t *args, struct reply *ret,
               struct err *e)
{
    AUTO(buf_done) struct buf body = {0};

    op_body(op, args, &body);
    return op_send(c, op, args,
                   &(struct request){
                       .body = buf_str(&body), .creates = op->creates, .timeout_ms = c->timeout_ms},
                   ret, e);
}

struct print_spec op_print_spec(const struct cli *c, const struct op *op)
{
    return (struct print_spec){
        .columns = op->columns,
        .fields = op->out,
        .field_count = op->out_count,
        .items = op->reply == OP_REPLY_LIST ? op->items : NULL,
        .color = c->color,
    };
}

/* Appends the next page's items; *ret_cursor is "" at the end. */
static int add_page(json_t *all, const char *items, const json_t *page, char **ret_cursor)
{
    json_t *to = json_object_get(all, items);
    const char *cursor = json_string_value(json_object_get(page, "cursor"));

    if (page != all && json_array_extend(to, json_object_get(page, items)) < 0)
        return -1;
    mem_free(*ret_cursor);
    *ret_cursor = xstrdup(cursor ? cursor : "");
    return 0;
}

static void note_the_rest(const char *cursor, int64_t wanted)
{
    if (cursor[0] && wanted == ROWS_MAX)
        cli_note("stopped after %d rows; continue with --cursor %s", ROWS_MAX, cursor);
}

static void trim_rows(json_t *list, int64_t wanted)
{
    while ((int64_t)json_array_size(list) > wanted)
        json_array_remove(list, json_array_size(list) - 1);
}

/* The first page uses the user's own --limit (which the server checks); later pages request no more
 * than is missing.  A repeated cursor or an empty page ends the loop. */
int op_list(const struct cli *c, const struct op *op, const json_t *args, json_t **ret,
            struct err *e)
{
    AUTO(json_decref) json_t *all = NULL, *asked = json_copy((json_t *)args);
    AUTO(mem_free) char *cursor = xstrdup("");
    int64_t wanted = args_int(args, "limit", ROWS_MAX);
    bool pages = op_input(op, STR("cursor")) != NULL;
    const struct op_field *limit = op_input(op, STR("limit"));

    if (limit && limit->max > 0 && json_object_get(asked, "limit") && wanted > limit->max)
        json_object_set_new(asked, "limit", json_integer(limit->max));
    for (;;) {
        AUTO(reply_done) struct reply reply = {0};
        AUTO(json_decref) json_t *page = NULL;
        AUTO(mem_free) char *last = xstrdup(cursor);

        if (op_request(c, op, asked, &reply, e) < 0 || reply_json(&reply, &page, e) < 0)
            return -1;
        if (!json_is_array(json_object_get(page, op->items)))
            return err_set(e, ERR_UNAVAILABLE, 0, "the reply has no list '%s'", op->items);
        if (!all)
            all = json_incref(page);
        if (add_page(all, op->items, page, &cursor) < 0)
            return err_set(e, ERR_INTERNAL, 0, "out of memory");
        if (!pages || !cursor[0] || strcmp(cursor, last) == 0 ||
            json_array_size(json_object_get(page, op->items)) == 0 ||
            (int64_t)json_array_size(json_object_get(all, op->items)) >= wanted)
            break;
        json_object_set_new(asked, "cursor", json_string(cursor));
    }
    if (json_object_get(all, "cursor"))
        json_object_set_new(all, "cursor", cursor[0] ? json_string(cursor) : json_null());
    trim_rows(json_object_get(all, op->items), wanted);
    note_the_rest(cursor, wanted);
    *ret = TAKE(all);
    return 0;
}

static int print_text(const struct reply *reply)
{
    AUTO(buf_done) struct buf out = {0};

    print_safe_lines(&out, buf_str(&reply->body));
    cli_write(buf_str(&out));
    return 0;
}

static int on_bytes(void *arg, struct str bytes)
{
    (void)arg;
    cli_write(bytes);
    return 0;
}

int op_bytes(const struct cli *c, const struct op *op, const json_t *args, struct err *e)
{
    AUTO(reply_done) struct reply reply = {0};
    bool follows = args_bool(args, "follow");

    return op_send(c, op, args,
                   &(struct request){.accept = "*/*",
                                     .part = on_bytes,
                                     .timeout_ms = follows ? 0 : c->timeout_ms},
                   &reply, e);
}

/* -q: the ids that other commands take, one per line. */
static int print_ids(const json_t *rows)
{
    AUTO(buf_done) struct buf out = {0};

    for (size_t i = 0; i < json_array_size(rows); i++) {
        const char *id = args_str(json_array_get(rows, i), "id");

        print_safe(&out, str_of(id ? id : "-"));
        buf_add_char(&out, '\n');
    }
    cli_write(buf_str(&out));
    return 0;
}

int op_list_run(struct cli *c, const struct op *op, const json_t *args, struct err *e)
{
    struct print_spec spec = op_print_spec(c, op);
    AUTO(json_decref) json_t *v = NULL;

    if (op_list(c, op, args, &v, e) < 0)
        return -1;
    if (args_bool(args, "quiet"))
        return print_ids(json_object_get(v, op->items));
    return cli_print(c, v, &spec, e);
}

int op_verb_run(struct cli *c, const struct cmd *cmd, const json_t *args, struct err *e)
{
    struct print_spec spec = op_print_spec(c, cmd->op);
    AUTO(reply_done) struct reply reply = {0};
    AUTO(json_decref) json_t *v = NULL;

    if (cmd->op->reply == OP_REPLY_LIST)
        return op_list_run(c, cmd->op, args, e);
    if (cmd->op->reply == OP_REPLY_BYTES)
        return op_bytes(c, cmd->op, args, e);
    if (op_request(c, cmd->op, args, &reply, e) < 0)
        return -1;
    if (cmd->op->reply == OP_REPLY_EMPTY || buf_len(&reply.body) == 0)
        return 0;
    if (cmd->op->reply == OP_REPLY_TEXT)
        return print_text(&reply);
    if (reply_json(&reply, &v, e) < 0)
        return -1;
    return cli_print(c, v, &spec, e);
}
