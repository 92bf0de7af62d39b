/* session: sessions: lists, create, kill. */
#include "api/dialects/agentic/agentic.h"

#include "base/enc.h"
#include "base/mem.h"
#include "base/rnd.h"
#include "core/exec/console.h"

#include <signal.h>

#define ROWS 50
#define COLS 220

/* --- finding --- */

struct exec *agentic_session_of(struct api *a, const struct principal *who, struct str id)
{
    struct sandboxes *all = a->c.sandboxes;
    struct sandbox_info i;
    struct err e;

    for (struct sandbox *s = sandbox_next(all, who, STR("")); s;
         s = sandbox_next(all, who, str_of(i.id))) {
        struct exec *x = exec_find(s, id, &e);
        struct exec_info info;

        sandbox_info(s, &i);
        if (!x)
            continue;
        exec_info(x, &info);
        return info.pty ? x : NULL;
    }
    return NULL;
}

struct exec *agentic_session(struct request *r, struct str id)
{
    return agentic_session_of(r->api, &r->who, id);
}

static void no_session(struct request *r)
{
    agentic_error(r, 404, "session '" STR_FMT "' not tracked", (int)size_min(r->params.v[0].n, 64),
                  r->params.v[0].p);
}

/* --- lists --- */

struct seats {
    struct jw *w;
    enum console_role role;
    int64_t count;
};

static void write_seat(void *arg, const struct console_seat *s)
{
    struct seats *l = arg;

    if (s->role != l->role)
        return;
    l->count++;
    jw_c(l->w, s->name);
}

static int64_t write_seats(struct jw *w, const struct api *a, const char *exec, const char *key,
                           enum console_role role)
{
    struct seats l = {w, role, 0};

    jw_key(w, key);
    jw_array(w);
    console_each(a->consoles, exec, write_seat, &l);
    jw_array_end(w);
    return l.count;
}

static void write_session(struct jw *w, const struct api *a, const struct exec *x, struct str agent)
{
    struct exec_info i;
    int64_t attached;

    exec_info(x, &i);
    jw_object(w);
    jw_kc(w, "session_id", i.id);
    jw_kstr(w, "agent_id", agent);
    jw_kc(w, "command_id", i.id);
    jw_kstr(w, "name", i.name);
    attached = write_seats(w, a, i.id, "controllers", CONSOLE_CONTROLLER);
    attached += write_seats(w, a, i.id, "observers", CONSOLE_OBSERVER);
    jw_kint(w, "attachment_count", attached);
    jw_kint(w, "replay_oldest_seq", i.out_from);
    jw_kint(w, "replay_newest_seq", i.out_end);
    jw_kint(w, "replay_total_bytes", i.out_end - i.out_from);
    jw_kint(w, "max_client_lag", 0);
    jw_object_end(w);
}

static void list_sessions(struct request *r, struct sandbox *s, struct jw *w)
{
    struct sandbox_info box;
    struct exec_info i;

    sandbox_info(s, &box);
    for (struct exec *x = exec_next(s, STR("")); x; x = exec_next(s, str_of(i.id))) {
        exec_info(x, &i);
        if (i.name.n > 0 && i.ended_ms == 0)
            write_session(w, r->api, x, agentic_name(&box));
    }
}

void agentic_sessions(struct request *r)
{
    struct sandboxes *all = r->api->c.sandboxes;
    struct jw w = request_json(r);
    struct sandbox_info i;

    jw_array(&w);
    for (struct sandbox *s = sandbox_next(all, &r->who, STR("")); s;
         s = sandbox_next(all, &r->who, str_of(i.id))) {
        sandbox_info(s, &i);
        list_sessions(r, s, &w);
    }
    jw_array_end(&w);
    request_send_json(r, 200);
}

void agentic_write_command(struct jw *w, const struct exec_info *i)
{
    AUTO(buf_done) struct buf line = {0};

    for (size_t k = 0; k < i->argc; k++) {
        buf_add_c(&line, k ? " " : "");
        buf_add_str(&line, i->argv[k]);
    }
    jw_kstr(w, "command", buf_str(&line));
}

void agentic_agent_sessions(struct request *r)
{
    struct sandbox *s = agentic_find(r, AGENTIC_ANY);
    struct sandbox_info box;
    struct exec_info i;
    struct jw w;

    if (!s)
        return;
    sandbox_info(s, &box);
    w = request_json(r);
    jw_object(&w);
    jw_kstr(&w, "agent_id", agentic_name(&box));
    jw_key(&w, "sessions");
    jw_array(&w);
    for (struct exec *x = exec_next(s, STR("")); x; x = exec_next(s, str_of(i.id))) {
        exec_info(x, &i);
        if (i.name.n == 0 || i.ended_ms > 0)
            continue;
        jw_object(&w);
        jw_kc(&w, "session_id", i.id);
        jw_kc(&w, "command_id", i.id);
        jw_kstr(&w, "session_name", i.name);
        jw_kc(&w, "session_type", "interactive");
        agentic_write_command(&w, &i);
        jw_kint(&w, "created_at_secs", (clock_wall_ms() - i.created_ms) / 1000); /* its age */
        jw_kbool(&w, "has_screen", i.pty);
        jw_object_end(&w);
    }
    jw_array_end(&w);
    jw_object_end(&w);
    request_send_json(r, 200);
}

/* --- create --- */

struct create_job {
    struct waiter waiter;
};

static void write_addresses(struct jw *w, struct request *r, const char *instance, const char *id)
{
    struct str host = auth_host(http_req_header(xchg_req(r->x), "host"));
    struct arena *a = xchg_arena(r->x);

    if (host.n == 0)
        host = STR("localhost");
    jw_kc(w, "ws_endpoint", arena_printf(a, "ws://" STR_FMT ":8121/", STR_ARG(host)));
    jw_key(w, "join_message");
    jw_object(w);
    jw_kc(w, "type", "join_session");
    jw_kc(w, "session_id", id);
    jw_kc(w, "role", "controller");
    jw_object_end(w);
    jw_kc(w, "pty_ws_url",
          arena_printf(a, "wss://" STR_FMT "/agents/%s/sessions/%s/attach", STR_ARG(host), instance,
                       id));
    jw_kc(w, "pty_ws_subprotocol", "pty-ws.v1");
    jw_kc(w, "orchestrator_observer_url",
          arena_printf(a, "/ws/sessions/%s/orchestrate?role=observer", id));
    jw_kc(w, "orchestrator_controller_url",
          arena_printf(a, "/ws/sessions/%s/orchestrate?role=controller", id));
    jw_kc(w, "default_role", "observer");
}

static void session_made(void *arg, struct exec *x, const struct err *e)
{
    AUTO(mem_free) struct create_job *j = arg;
    struct request *r = waiter_end(&j->waiter);
    struct exec_info i;
    struct jw w;

    if (r && e->code != ERR_NONE) {
        agentic_fail(r, err_table[e->code].http, e);
        return;
    }
    if (!r)
        return;
    exec_info(x, &i);
    w = request_json(r);
    jw_object(&w);
    jw_kc(&w, "session_id", i.id);
    jw_kc(&w, "instance_id", i.sandbox);
    jw_kc(&w, "command_id", i.id);
    jw_kstr(&w, "session_name", i.name);
    write_addresses(&w, r, i.sandbox, i.id);
    jw_object_end(&w);
    request_send_json(r, 200);
}

static struct str new_name(struct arena *a)
{
    unsigned char bytes[4];
    char hex[2 * sizeof bytes + 1];

    rnd_bytes(bytes, sizeof bytes);
    enc_hex(bytes, sizeof bytes, hex);
    return str_of(arena_printf(a, "terminal-%s", hex));
}

static int64_t side_of(const json_t *body, const char *key, int64_t preset)
{
    const json_t *v = json_object_get(body, key);

    return json_is_integer(v) ? i64_min(i64_max(json_integer_value(v), 1), 1000) : preset;
}

static void session_read(struct request *r, const json_t *body)
{
    struct sandbox *s = agentic_find(r, AGENTIC_ANY);
    const json_t *args = json_object_get(body, "args");
    struct str command = agentic_member(body, "command"),
               name = agentic_member(body, "session_name");
    struct str *argv = arena_zalloc(xchg_arena(r->x), (json_array_size(args) + 1) * sizeof *argv);
    struct exec_spec spec = {.pty = true,
                             .rows = (int)side_of(body, "rows", ROWS),
                             .cols = (int)side_of(body, "cols", COLS),
                             .name = name.n > 0 ? name : new_name(xchg_arena(r->x)),
                             .cwd = agentic_member(body, "working_dir")};
    const struct principal by = request_who(r);
    struct create_job *j;

    if (!s)
        return;
    if (json_array_size(args) > 0) {
        argv[spec.argc++] = command.n > 0 ? command : STR("bash");
        for (size_t i = 0; i < json_array_size(args); i++)
            argv[spec.argc++] = str_of(json_string_value(json_array_get(args, i)));
        spec.argv = argv;
    } else {
        spec.shell = command.n > 0 ? command : STR("exec bash 2>/dev/null || exec sh");
    }
    j = xzalloc(sizeof *j);
    request_wait(r, &j->waiter);
    exec_start(s, &spec, &by, session_made, j);
}

void agentic_agent_session_create(struct request *r)
{
    agentic_collect(r, session_read);
}

/* --- kill --- */

struct kill_job {
    struct waiter waiter;
    char id[ID_SIZE];
    int signal; /* 0: an empty reply */
};

static void session_killed(void *arg, struct exec *x, const struct err *e)
{
    AUTO(mem_free) struct kill_job *j = arg;
    struct request *r = waiter_end(&j->waiter);
    struct jw w;

    (void)x;
    if (r && e->code != ERR_NONE && j->signal) {
        agentic_fail(r, err_table[e->code].http, e);
    } else if (r && !j->signal) {
        request_send(r, 204, NULL, STR(""));
    } else if (r) {
        w = request_json(r);
        jw_object(&w);
        jw_kc(&w, "session_id", j->id);
        jw_kint(&w, "signal", j->signal);
        jw_kc(&w, "status", "signaled");
        jw_object_end(&w);
        request_send_json(r, 200);
    }
}

static bool signal_of(struct str text, int *ret)
{
    struct err e;

    *ret = SIGTERM;
    if (text.n == 0)
        return true;
    return signal_parse(text, ret, &e) == 0 &&
           (*ret == SIGTERM || *ret == SIGKILL || *ret == SIGINT || *ret == SIGHUP);
}

void agentic_session_kill(struct request *r)
{
    struct exec *x = agentic_session(r, r->params.v[0]);
    struct kill_job *j;
    struct exec_info i;
    int sig;

    if (!x) {
        no_session(r);
        return;
    }
    if (!signal_of(agentic_query(r, "signal"), &sig)) {
        agentic_error(r, 400, "unsupported signal; supported: TERM, KILL, INT, HUP");
        return;
    }
    exec_info(x, &i);
    j = xzalloc(sizeof *j);
    j->signal = sig;
    (void)snprintf(j->id, sizeof j->id, "%s", i.id);
    request_wait(r, &j->waiter);
    exec_signal(x, sig, session_killed, j);
}

void agentic_agent_session_kill(struct request *r)
{
    struct sandbox *s = agentic_find(r, AGENTIC_ANY);
    struct exec_info i;
    struct kill_job *j;
    struct exec *x;

    if (!s)
        return;
    x = exec_named(s, r->params.v[1]);
    if (x)
        exec_info(x, &i);
    if (!x || i.ended_ms > 0) {
        request_send(r, 204, NULL, STR(""));
        return;
    }
    j = xzalloc(sizeof *j);
    request_wait(r, &j->waiter);
    exec_cancel(x, session_killed, j);
}
