/* verb_sbx: holt sbx, the commands of sbx's own client. */
#include "cli/verbs.h"

#include "base/enc.h"
#include "base/mem.h"
#include "cli/dialects/sbx/sbx.h"
#include "cli/request.h"
#include "proto/json.h"

#include <inttypes.h>
#include <unistd.h>

#define WHITE " \t\r\n\v\f"

struct sbx { /* one command */
    struct cli *c;
    const struct sbx_args *a;
    struct target target;
};

/* --- requests --- */

static const char *reason_of(int status)
{
    static const struct {
        int status;
        const char *text;
    } reasons[] = {{400, "Bad Request"},
                   {401, "Unauthorized"},
                   {403, "Forbidden"},
                   {404, "Not Found"},
                   {409, "Conflict"},
                   {429, "Too Many Requests"},
                   {500, "Internal Server Error"},
                   {503, "Service Unavailable"}};

    for (size_t i = 0; i < ARRAY_LEN(reasons); i++)
        if (reasons[i].status == status)
            return reasons[i].text;
    return "Error";
}

static void say_refused(struct cli *c, int status, struct str body)
{
    AUTO(buf_done) struct buf line = {0};

    print_safe(&line, str_trim(body));
    (void)fprintf(stderr, "%d %s: %s\n", status, reason_of(status), buf_cstr(&line));
    c->status = 1;
}

/* 1: the server refused, and the reason was printed. */
static int ask(struct sbx *x, const char *method, const char *path, const json_t *body,
               json_t **ret, struct err *e)
{
    AUTO(reply_done) struct reply reply = {0};
    char *text = body ? json_dumps(body, JSON_COMPACT) : NULL;
    const struct request rq = {.method = method,
                               .target = path,
                               .body = str_of(text),
                               .timeout_ms = x->a->sync ? 0 : x->c->timeout_ms};
    int r = request_run(&x->target, &rq, &reply, e);

    free(text); /* allocated by jansson */
    if (reply.status == 500 && x->a->sync)
        return reply_json(&reply, ret, e);
    if (reply.status >= 400) {
        say_refused(x->c, reply.status, buf_str(&reply.body));
        return 1;
    }
    return r < 0 ? -1 : reply_json(&reply, ret, e);
}

static char *path_of(const struct sbx_args *a, const char *more, struct buf *to)
{
    buf_add_c(to, "/sandboxes");
    if (a->id) {
        buf_add_char(to, '/');
        enc_percent(to, str_of(a->id));
    }
    if (more)
        buf_add_c(to, more);
    return buf_cstr(to);
}

static const char *text_of(const json_t *o, const char *key)
{
    const char *s = json_string_value(json_object_get(o, key));

    return s ? s : "";
}

/* --- printing --- */

PRINTF_LIKE(1, 2) static void print_line(const char *fmt, ...)
{
    AUTO(buf_done) struct buf text = {0}, line = {0};
    va_list ap;

    va_start(ap, fmt);
    buf_vprintf(&text, fmt, ap);
    va_end(ap);
    print_safe(&line, buf_str(&text));
    buf_add_char(&line, '\n');
    cli_write(buf_str(&line));
}

/* key=value, one a line. */
static void print_members(const json_t *o, const char *const *keys)
{
    AUTO(buf_done) struct buf out = {0};

    for (; *keys; keys++) {
        const json_t *v = json_object_get(o, *keys);

        if (!v)
            continue;
        buf_printf(&out, "%s=", *keys);
        if (json_is_integer(v))
            buf_printf(&out, "%" PRId64, (int64_t)json_integer_value(v));
        else
            print_safe(&out, str_of(json_string_value(v)));
        buf_add_char(&out, '\n');
    }
    cli_write(buf_str(&out));
}

static void print_rows(const json_t *rows)
{
    static const char *const heads[] = {"ID", "AGE", "STATE", "ALLOCATED", "LAST_EXEC_TIME"};
    static const char *const keys[] = {"id", "age", "state", "allocated", "last_exec_time"};
    AUTO(buf_done) struct buf out = {0};
    int width[ARRAY_LEN(keys)];

    for (size_t k = 0; k < ARRAY_LEN(keys); k++) {
        width[k] = (int)strlen(heads[k]);
        for (size_t i = 0; i < json_array_size(rows); i++) {
            size_t n = strlen(text_of(json_array_get(rows, i), keys[k]));

            width[k] = (int)size_max((size_t)width[k], size_min(n, 300));
        }
    }
    for (size_t i = 0; i <= json_array_size(rows); i++) {
        for (size_t k = 0; k < ARRAY_LEN(keys); k++) {
            const char *text = i == 0 ? heads[k] : text_of(json_array_get(rows, i - 1), keys[k]);
            AUTO(buf_done) struct buf safe = {0};

            print_safe(&safe, str_of(text));
            buf_printf(&out, "%-*s%s", k + 1 < ARRAY_LEN(keys) ? width[k] : 0, buf_cstr(&safe),
                       k + 1 < ARRAY_LEN(keys) ? "  " : "\n");
        }
    }
    cli_write(buf_str(&out));
}

/* --- verbs --- */

static void add_text(json_t *o, const char *key, const char *value)
{
    if (value && value[0])
        (void)json_object_set_new(o, key, json_string(value));
}

static json_t *words_of(const struct sbx_args *a)
{
    json_t *list = json_array();
    struct str left = str_of(a->cmd);

    for (size_t i = 0; i < a->word_count; i++)
        (void)json_array_append_new(list, json_string(a->words[i]));
    while (a->word_count == 0 && left.n > 0) {
        size_t n = strcspn(left.p, WHITE);

        if (n > 0)
            (void)json_array_append_new(list, json_stringn(left.p, n));
        left = str_skip(left, n + strspn(left.p + n, WHITE));
    }
    return list;
}

static int run_create(struct sbx *x, struct err *e)
{
    const struct sbx_args *a = x->a;
    AUTO(json_decref) json_t *body = json_object(), *words = words_of(a), *got = NULL;
    int r;

    add_text(body, "id", a->id);
    add_text(body, "image", a->image);
    add_text(body, "volume_mode", a->volume);
    add_text(body, "cache_mode", a->cache_mode);
    add_text(body, "cache_pvc_size", a->cache_size);
    add_text(body, "cache_pvc_storage_class", a->cache_class);
    add_text(body, "cache_pvc_access_mode", a->cache_access);
    if (json_array_size(words) > 0)
        (void)json_object_set(body, "command", words);
    if (a->env)
        (void)json_object_set(body, "env", a->env);
    if (a->allow)
        (void)json_object_set(body, "allowed_hosts", a->allow);
    if (a->deny)
        (void)json_object_set(body, "disallowed_hosts", a->deny);
    r = ask(x, "POST", "/sandboxes", body, &got, e);
    if (r != 0)
        return r;
    print_line("id=%s namespace=%s pod=%s", text_of(got, "id"), text_of(got, "namespace"),
               text_of(got, "pod_name"));
    return 0;
}

static struct str bytes_of(const json_t *o, const char *key)
{
    const json_t *v = json_object_get(o, key);

    return str_make(json_string_value(v), json_string_length(v));
}

/* Whether the reply has the command's complete output, byte for byte. */
static bool is_exact(const json_t *got)
{
    static const char replaced[] = "\xef\xbf\xbd";
    struct str out = bytes_of(got, "stdout"), err = bytes_of(got, "stderr");

    return !json_is_true(json_object_get(got, "truncated")) &&
           !(out.n && memmem(out.p, out.n, replaced, 3)) &&
           !(err.n && memmem(err.p, err.n, replaced, 3));
}

/* The original's message for a command that failed. */
static void say_failed(struct cli *c, const char *error)
{
    AUTO(buf_done) struct buf body = {0};
    struct jw w = {.to = &body};

    jw_object(&w);
    jw_kc(&w, "error", error);
    jw_object_end(&w);
    say_refused(c, 500, buf_str(&body));
}

/* Prints the output (from its events if the reply is not exact), then the original's error, and
 * sets the exit status. */
static int print_result(struct sbx *x, const json_t *got, struct err *e)
{
    const char *error = json_string_value(json_object_get(got, "error"));
    const json_t *code = json_object_get(got, "exit_code");
    struct str err = bytes_of(got, "stderr");
    int ignored;

    if (is_exact(got)) {
        cli_write(bytes_of(got, "stdout"));
        (void)fwrite(err.p ? err.p : "", 1, err.n, stderr);
    } else if (sbx_follow(&x->target, x->a->id, text_of(got, "sync_exec_id"), true, &ignored, e) <
               0) {
        return -1;
    }
    if (error)
        say_failed(x->c, error);
    if (error && json_is_integer(code))
        x->c->status = (int)json_integer_value(code);
    return 0;
}

static json_t *exec_body(const struct sbx_args *a, struct err *e)
{
    AUTO(json_decref) json_t *words = words_of(a);
    json_t *body;
    int64_t seconds = 0;

    if (json_array_size(words) == 0) {
        (void)err_set(e, ERR_INVALID, 0, "-cmd is required");
        return NULL;
    }
    if (a->timeout && str_parse_i64(str_of(a->timeout), &seconds) < 0) {
        (void)err_set(e, ERR_INVALID, 0, "invalid value \"%.100s\" for flag -timeout", a->timeout);
        return NULL;
    }
    body = json_object();
    (void)json_object_set(body, "command", words);
    (void)json_object_set_new(body, "async", json_boolean(!a->sync || a->stream || a->stream_raw));
    if (seconds != 0) /* the original writes 0 for no timeout */
        (void)json_object_set_new(body, "timeout_seconds", json_integer(seconds));
    return body;
}

static int run_exec(struct sbx *x, struct err *e)
{
    const struct sbx_args *a = x->a;
    AUTO(json_decref) json_t *body = exec_body(a, e), *got = NULL;
    AUTO(buf_done) struct buf path = {0};
    bool streams = a->stream || a->stream_raw;
    int r;

    if (!body)
        return -1;
    r = ask(x, "POST", path_of(a, "/exec", &path), body, &got, e);
    if (r != 0)
        return r;
    if (a->sync && !streams)
        return print_result(x, got, e);
    if (!a->stream_raw)
        print_line("exec_id=%s status=%s", text_of(got, "exec_id"), text_of(got, "status"));
    if (!streams)
        return 0;
    return sbx_follow(&x->target, a->id, text_of(got, "exec_id"), a->stream_raw, &x->c->status, e);
}

static int run_status(struct sbx *x, struct err *e)
{
    static const char *const keys[] = {"id", "namespace", "phase", "pod_name", NULL};
    AUTO(json_decref) json_t *got = NULL;
    AUTO(buf_done) struct buf path = {0};
    int r = ask(x, "GET", path_of(x->a, NULL, &path), NULL, &got, e);

    if (r == 0 && x->a->id)
        print_members(got, keys);
    else if (r == 0)
        print_rows(got);
    return r;
}

static int run_delete(struct sbx *x, struct err *e)
{
    AUTO(json_decref) json_t *got = NULL;
    AUTO(buf_done) struct buf path = {0};
    int r = ask(x, "DELETE", path_of(x->a, NULL, &path), NULL, &got, e);

    if (r == 0)
        cli_write(STR("deleted\n"));
    return r;
}

static int run_record(struct sbx *x, struct err *e)
{
    static const char *const keys[] = {"sandbox_id",  "exec_id",         "status",
                                       "exit_code",   "timeout_seconds", "started_at",
                                       "finished_at", "error",           NULL};
    bool cancel = strcmp(x->a->verb, "exec-cancel") == 0;
    AUTO(json_decref) json_t *got = NULL;
    AUTO(buf_done) struct buf path = {0};
    int r;

    (void)path_of(x->a, "/execs/", &path);
    enc_percent(&path, str_of(x->a->exec_id));
    buf_add_c(&path, cancel ? "/cancel" : "");
    r = ask(x, cancel ? "POST" : "GET", buf_cstr(&path), NULL, &got, e);
    if (r == 0)
        print_members(got, keys);
    return r;
}

static const struct {
    const char *name;
    bool needs_id, needs_exec;
    int (*run)(struct sbx *x, struct err *e);
} verbs[] = {
    {"create", false, false, run_create},    {"exec", true, false, run_exec},
    {"status", false, false, run_status},    {"delete", true, false, run_delete},
    {"exec-status", true, true, run_record}, {"exec-cancel", true, true, run_record},
};

static int check_and_run(struct sbx *x, size_t verb, struct err *e)
{
    if (verbs[verb].needs_id && !x->a->id)
        return err_set(e, ERR_INVALID, 0, "-id is required");
    if (verbs[verb].needs_exec && !x->a->exec_id)
        return err_set(e, ERR_INVALID, 0, "-exec-id is required");
    if (x->a->addr)
        x->c->server = x->a->addr;
    if (target_choose(x->c, &x->target, e) < 0)
        return -1;
    return verbs[verb].run(x, e);
}

/* Its own failures are one line without "holt:", with exit status 1, as sbx prints them. */
static void run_words(struct cli *c, char **words, size_t n)
{
    AUTO(sbx_args_done) struct sbx_args a = {0};
    struct sbx x = {.c = c, .a = &a};
    struct err e = {0};
    size_t i = 0;
    int r;

    while (i < ARRAY_LEN(verbs) && (n == 0 || strcmp(words[0], verbs[i].name) != 0))
        i++;
    if (i == ARRAY_LEN(verbs)) {
        cli_write(str_of(sbx_usage));
        c->status = 1;
        return;
    }
    r = sbx_args_parse(words, n, &a, &e);
    if (r == 0 && a.help)
        cli_write(str_of(sbx_usage));
    else if (r == 0)
        r = check_and_run(&x, i, &e);
    target_done(&x.target);
    if (r < 0) {
        AUTO(buf_done) struct buf line = {0};

        print_safe(&line, str_of(e.msg));
        (void)fprintf(stderr, "%s\n", buf_cstr(&line));
        c->status = 1;
    }
}

static int sbx_run(struct cli *c, const struct cmd *cmd, const json_t *args, struct err *e)
{
    const json_t *list = json_object_get(args, "words");
    size_t n = json_array_size(list);
    AUTO(mem_free) char **words = xzalloc((n + 1) * sizeof *words);

    (void)cmd, (void)e;
    for (size_t i = 0; i < n; i++)
        words[i] = arena_cstr(&c->arena, str_of(json_string_value(json_array_get(list, i))));
    run_words(c, words, n);
    return 0;
}

/* clang-format off */
static const struct cli_flag sbx_flags[] = {
    {{.name = "words", .type = OP_LIST, .positional = true, .example = "create -id demo",
      .text = "A verb of sbx and its flags."}, 0, true},
};

const struct verb sbx_verb = {
    .verb = "sbx", .group = "sandbox",
     .text = "The commands of sbx, with its flags and texts: create, exec, status, delete, exec-status, exec-cancel.\n"
             "A link to holt called sbx is this command. The exit status of exec -sync, -stream and -stream-raw is the command's.",
     .flags = sbx_flags, .flag_count = ARRAY_LEN(sbx_flags), .run = sbx_run,
     .examples = (const char *const[]){"holt sbx create -id demo", "holt sbx exec -id demo -stream-raw -- make test", "holt sbx status", NULL},
};
/* clang-format on */
