/* runtime: what the python runtime answers at port 8888, and sandboxd at 8080, but for files. */
#include "api/dialects/k8s/file.h"

#include "api/share/command.h"
#include "base/clock.h"
#include "base/mem.h"

#define WORDS_MAX 1024
#define TIMEOUT_MS 300000
#define TIMEOUT_MAX_S 86400.0
#define TIMED_OUT 124 /* as timeout(1) */

/* --- commands --- */

struct execute_job {
    struct waiter waiter;
    struct command *command;
};

static void caller_gone(struct waiter *w)
{
    struct execute_job *j = CONTAINER_OF(w, struct execute_job, waiter);

    command_drop(j->command, true);
    mem_free(j);
}

static void send_result(struct request *r, struct str out, struct str err, int code, bool timed_out)
{
    struct jw w = request_json(r);

    jw_object(&w);
    jw_kstr(&w, "stdout", out);
    jw_kstr(&w, "stderr", err);
    jw_kint(&w, "exit_code", code);
    if (timed_out)
        jw_kbool(&w, "timed_out", true);
    jw_object_end(&w);
    request_send_json(r, 200);
}

static void send_unstarted(struct request *r, const char *why)
{
    send_result(r, STR(""),
                str_of(arena_printf(xchg_arena(r->x), "Failed to execute command: %s", why)), 1,
                false);
}

static void command_done(void *arg, struct exec *x, const struct collect *c, const struct err *e)
{
    AUTO(mem_free) struct execute_job *j = arg;
    struct request *r = waiter_end(&j->waiter);
    struct exec_info i;

    if (!r)
        return;
    if (x)
        exec_info(x, &i);
    if (!x)
        k8s_detail(r, err_table[e->code].http, "%s", e->msg);
    else if (i.state == EXEC_FAILED)
        send_unstarted(r, arena_cstr(xchg_arena(r->x), i.failure));
    else if (!c)
        k8s_detail(r, err_table[e->code].http, "%s", e->msg);
    else
        send_result(r, buf_str(&c->streams[0]), buf_str(&c->streams[1]),
                    i.timed_out ? TIMED_OUT : i.exit_code, i.timed_out);
}

static void execute(struct request *r, struct str body)
{
    static const struct command_ops ops = {.done = command_done};
    struct sandbox *s = k8s_target(r, NULL); /* it may be gone by now */
    struct str *argv = arena_alloc(xchg_arena(r->x), WORDS_MAX * sizeof *argv);
    const struct principal by = request_who(r);
    struct exec_spec spec = {.argv = argv, .cwd = STR(K8S_BASE), .timeout_ms = TIMEOUT_MS};
    const json_t *limit;
    struct execute_job *j;
    struct err e = {0};
    int n;

    if (!s)
        return;
    if (json_read_lax(body, &r->body, &e) < 0 ||
        !json_is_string(json_object_get(r->body, "command"))) {
        k8s_detail(r, 422, "the body must be {\"command\": a text}");
        return;
    }
    limit = json_object_get(r->body, "timeout_seconds");
    if (json_is_number(limit)) {
        if (!(json_number_value(limit) > 0 && json_number_value(limit) <= TIMEOUT_MAX_S)) {
            k8s_detail(r, 422, "timeout_seconds must be above 0, and at most a day");
            return;
        }
        spec.timeout_ms = i64_max((int64_t)(json_number_value(limit) * 1000), 1);
    }
    n = k8s_split_words(k8s_text(r->body, "command"), xchg_arena(r->x), argv, WORDS_MAX, &e);
    if (n <= 0) {
        send_unstarted(r, n < 0 ? e.msg : "the command is empty");
        return;
    }
    spec.argc = (size_t)n;
    j = xzalloc(sizeof *j);
    j->waiter.gone = caller_gone;
    request_wait(r, &j->waiter);
    j->command = command_start(r->api, s, &spec, &(struct exec_input){0}, &by, &ops, j);
}

/* --- health, metadata --- */

static void send_root(struct request *r)
{
    k8s_send(r, 200,
             json_pack("{s:s,s:s}", "status", "ok", "message", "Sandbox Runtime is active."));
}

static void send_health(struct request *r, struct sandbox *s)
{
    struct sandbox_info i;
    bool up;

    sandbox_info(s, &i);
    up = i.state == SANDBOX_RUNNING && !i.reconnecting;
    k8s_send(r, up ? 200 : 503,
             json_pack("{s:s,s:f}", "status", up ? "ok" : "unavailable", "uptime_seconds",
                       (double)i64_max(clock_wall_ms() - i.started_ms, 0) / 1000.0));
}

static bool is_hidden(struct str name)
{
    static const char *const words[] = {"TOKEN", "SECRET", "PASSWORD", "CREDENTIAL", "KEY"};

    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        if (str_find(name, str_of(words[i])))
            return true;
    return false;
}

static void put_variable(void *arg, struct str text)
{
    struct str value, name = str_cut(text, '=', &value);

    if (str_starts(name, STR("SANDBOX_")) && !is_hidden(name))
        json_object_setn_new(arg, name.p, name.n, k8s_str(value));
}

static void send_metadata(struct request *r, struct sandbox *s)
{
    json_t *env = json_object();

    exec_each_env(s, put_variable, env);
    k8s_send(r, 200, json_pack("{s:o}", "env", env));
}

/* --- paths --- */

static bool asks(const struct request *r, const char *method, const char *path)
{
    return str_eq_c(xchg_req(r->x)->method, method) && str_eq_c(xchg_req(r->x)->path, path);
}

/* The rest of a path below this one; p NULL: it is not below. */
static struct str below(const struct request *r, const char *path)
{
    struct str all = xchg_req(r->x)->path;

    return str_starts(all, str_of(path)) ? str_skip(all, strlen(path)) : (struct str){0};
}

bool k8s_legacy(struct request *r, struct sandbox *s)
{
    static const struct {
        const char *path;
        void (*run)(struct request *r, struct sandbox *s, struct str path);
    } files[] = {
        {"/download/", k8s_download}, {"/list/", k8s_list_files}, {"/exists/", k8s_exists}};

    if (asks(r, "GET", "/")) {
        send_root(r);
        return true;
    }
    if (asks(r, "POST", "/execute")) {
        request_collect(r, execute);
        return true;
    }
    if (asks(r, "POST", "/upload")) {
        k8s_upload(r);
        return true;
    }
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        struct str path = below(r, files[i].path);

        if (!path.p || !str_eq_c(xchg_req(r->x)->method, "GET"))
            continue;
        files[i].run(r, s, path);
        return true;
    }
    return false;
}

bool k8s_sandboxd(struct request *r, struct sandbox *s)
{
    struct str path = below(r, "/v1/files/");

    if (asks(r, "GET", "/v1/health"))
        send_health(r, s);
    else if (asks(r, "GET", "/v1/metadata"))
        send_metadata(r, s);
    else if (path.p)
        k8s_files(r, s, path);
    else
        return false;
    return true;
}
