/* socket_agent: messages about agents: subscriptions, commands, shells, sessions. */
#include "api/dialects/agentic/socket.h"

#include "base/mem.h"
#include "core/exec/feed.h"

#define SHELL "main"
#define SHELL_LINE "exec bash 2>/dev/null || exec sh"
#define COLS_MIN 20
#define ROWS_MIN 5

/* --- replies --- */

static struct jw reply_begin(struct buf *json, const char *type)
{
    struct jw w = {.to = json};

    jw_object(&w);
    jw_kc(&w, "type", type);
    return w;
}

static void reply_end(struct socket_client *c, struct jw *w)
{
    jw_object_end(w);
    (void)!socket_tell(c, w->to);
}

static void tell_ids(struct socket_client *c, const char *type, struct str agent, const char *key,
                     struct str value, const char *command)
{
    AUTO(buf_done) struct buf json = {0};
    struct jw w = reply_begin(&json, type);

    jw_kstr(&w, "agent_id", agent);
    if (key)
        jw_kstr(&w, key, value);
    if (command)
        jw_kc(&w, "command_id", command);
    reply_end(c, &w);
}

/* --- subscriptions --- */

static void subscribe_to(struct socket_client *c, struct sandbox *s)
{
    struct sandbox_info i;

    sandbox_info(s, &i);
    if (push_wants(c, i.id))
        return;
    (void)map_set(&c->agents, str_of(i.id), c);
    push_agent(c, s);
}

static void hear_subscribe(struct socket_client *c, const json_t *m)
{
    struct str id = agentic_member(m, "agent_id");
    struct sandbox_info i;
    struct sandbox *s;

    if (str_eq_c(id, "*")) {
        c->everything = true;
        for (s = sandbox_next(c->api->c.sandboxes, &c->who, STR("")); s;
             s = sandbox_next(c->api->c.sandboxes, &c->who, str_of(i.id))) {
            sandbox_info(s, &i);
            push_agent(c, s);
        }
    } else {
        s = socket_agent(c, m);
        if (!s)
            return;
        subscribe_to(c, s);
    }
    tell_ids(c, "subscribed", id, NULL, STR(""), NULL);
}

static void hear_unsubscribe(struct socket_client *c, const json_t *m)
{
    struct str id = agentic_member(m, "agent_id");
    struct sandbox_info i;
    struct sandbox *s;

    if (str_eq_c(id, "*")) {
        c->everything = false;
        push_end(c);
        push_begin(c);
    } else {
        s = socket_agent(c, m);
        if (!s)
            return;
        sandbox_info(s, &i);
        (void)map_remove(&c->agents, str_of(i.id));
        push_drop(c, i.id);
    }
    tell_ids(c, "unsubscribed", id, NULL, STR(""), NULL);
}

static void hear_ping(struct socket_client *c, const json_t *m)
{
    AUTO(buf_done) struct buf json = {0};
    struct jw w = reply_begin(&json, "pong");

    jw_kint(&w, "timestamp", json_integer_value(json_object_get(m, "timestamp")));
    reply_end(c, &w);
}

static void hear_list_agents(struct socket_client *c, const json_t *m)
{
    AUTO(buf_done) struct buf json = {0};
    struct jw w = reply_begin(&json, "agent_list");
    struct sandbox_info i;

    (void)m;
    jw_key(&w, "agents");
    jw_array(&w);
    for (struct sandbox *s = sandbox_next(c->api->c.sandboxes, &c->who, STR("")); s;
         s = sandbox_next(c->api->c.sandboxes, &c->who, str_of(i.id))) {
        sandbox_info(s, &i);
        if (agentic_is(&i, AGENTIC_ANY))
            agentic_write_agent(&w, c->api, s, NULL);
    }
    jw_array_end(&w);
    reply_end(c, &w);
}

/* --- commands --- */

struct start_job {
    struct socket_client *c;
    const char *type; /* of the reply */
    char *agent, *key_value;
    const char *key;
};

static void command_started(void *arg, struct exec *x, const struct err *e)
{
    struct start_job *j = arg;
    struct exec_info i;

    if (e->code != ERR_NONE || !x) {
        socket_error(j->c, "%s", e->msg);
    } else {
        exec_info(x, &i);
        tell_ids(j->c, j->type, str_of(j->agent), j->key, str_of(j->key_value), i.id);
    }
    socket_unref(j->c);
    mem_free(j->agent);
    mem_free(j->key_value);
    mem_free(j);
}

static void start(struct socket_client *c, struct sandbox *s, const struct exec_spec *spec,
                  const char *type, const char *key, struct str value)
{
    struct start_job *j = xzalloc(sizeof *j);
    struct sandbox_info i;

    sandbox_info(s, &i);
    *j = (struct start_job){.c = c, .type = type, .agent = str_dup(agentic_name(&i)), .key = key};
    j->key_value = str_dup(value);
    c->refs++;
    subscribe_to(c, s);
    exec_start(s, spec, &c->who, command_started, j);
}

/* "command" with "args": an argv; alone: a shell line.  The texts are the message's. */
static void read_command(const json_t *m, struct arena *a, struct exec_spec *spec)
{
    const json_t *args = json_object_get(m, "args");
    struct str command = agentic_member(m, "command"), *argv;

    if (json_array_size(args) == 0) {
        spec->shell = command.n > 0 ? command : STR(SHELL_LINE);
        return;
    }
    argv = arena_zalloc(a, (json_array_size(args) + 1) * sizeof *argv);
    argv[spec->argc++] = command.n > 0 ? command : STR("sh");
    for (size_t i = 0; i < json_array_size(args); i++)
        argv[spec->argc++] = str_of(json_string_value(json_array_get(args, i)));
    spec->argv = argv;
}

static int side(const json_t *m, const char *key, int preset)
{
    const json_t *v = json_object_get(m, key);

    return json_is_integer(v) ? (int)i64_min(i64_max(json_integer_value(v), 1), 1000) : preset;
}

static void hear_send_command(struct socket_client *c, const json_t *m)
{
    AUTO(arena_done) struct arena a = {0};
    struct sandbox *s = socket_may_write(c) ? socket_agent(c, m) : NULL;
    struct exec_spec spec = {.want_stdin = true};

    if (!s)
        return;
    read_command(m, &a, &spec);
    start(c, s, &spec, "command_started", "command", agentic_member(m, "command"));
}

static void hear_create_session(struct socket_client *c, const json_t *m)
{
    AUTO(arena_done) struct arena a = {0};
    struct sandbox *s = socket_may_write(c) ? socket_agent(c, m) : NULL;
    struct str name = agentic_member(m, "session_name");
    struct exec_spec spec = {.pty = true,
                             .rows = side(m, "rows", 24),
                             .cols = side(m, "cols", 80),
                             .name = name,
                             .cwd = agentic_member(m, "working_dir")};

    if (!s)
        return;
    if (name.n == 0) {
        socket_error(c, "Invalid message: 'session_name' is needed");
        return;
    }
    read_command(m, &a, &spec);
    start(c, s, &spec, "session_created", "session_name", name);
}

/* The running command of this id that the caller may use. */
static struct exec *running(struct socket_client *c, const json_t *m)
{
    struct sandbox *s = socket_may_write(c) ? socket_agent(c, m) : NULL;
    struct str id = agentic_member(m, "command_id");
    struct err e = {0};
    struct exec *x = s ? exec_find(s, id, &e) : NULL;

    if (s && !x)
        socket_error(c, "command '" STR_FMT "' not found", (int)size_min(id.n, 64), id.p);
    return x;
}

static void changed(void *arg, struct exec *x, const struct err *e)
{
    (void)arg, (void)x, (void)e; /* the command may just have ended: that is told */
}

static void hear_send_input(struct socket_client *c, const json_t *m)
{
    struct exec *x = running(c, m);

    if (!x)
        return;
    feed_start(c->api->consoles, x, agentic_member(m, "data"), false);
    tell_ids(c, "input_sent", agentic_member(m, "agent_id"), "command_id",
             agentic_member(m, "command_id"), NULL);
}

static void hear_pty_resize(struct socket_client *c, const json_t *m)
{
    struct exec *x = running(c, m);
    int cols = side(m, "cols", 80), rows = side(m, "rows", 24);
    AUTO(json_decref) json_t *zero = json_object();

    if (!x)
        return;
    if (cols < COLS_MIN || rows < ROWS_MIN) {
        socket_error(c, "a terminal has at least %d columns and %d rows", COLS_MIN, ROWS_MIN);
        return;
    }
    exec_resize(x, rows, cols, changed, NULL);
    hear_ping(c, zero);
}

/* --- sessions by their names --- */

static struct exec *named(struct socket_client *c, struct sandbox *s, struct str name)
{
    struct exec *x = exec_named(s, name);
    struct exec_info i;

    if (x) {
        exec_info(x, &i);
        if (i.ended_ms == 0)
            return x;
    }
    if (c)
        socket_error(c, "Session '" STR_FMT "' not found", (int)size_min(name.n, 64), name.p);
    return NULL;
}

static void tell_named(struct socket_client *c, const char *type, struct sandbox *s,
                       const struct exec *x)
{
    struct sandbox_info box;
    struct exec_info i;

    sandbox_info(s, &box);
    exec_info(x, &i);
    tell_ids(c, type, agentic_name(&box), "session_name", i.name, i.id);
}

static void hear_start_shell(struct socket_client *c, const json_t *m)
{
    struct sandbox *s = socket_may_write(c) ? socket_agent(c, m) : NULL;
    struct exec *x = s ? named(NULL, s, STR(SHELL)) : NULL;
    const struct exec_spec spec = {.pty = true,
                                   .rows = side(m, "rows", 24),
                                   .cols = side(m, "cols", 80),
                                   .name = STR(SHELL),
                                   .shell = STR(SHELL_LINE)};

    if (x) {
        subscribe_to(c, s);
        tell_named(c, "shell_started", s, x);
    } else if (s) {
        start(c, s, &spec, "shell_started", NULL, STR(""));
    }
}

static void hear_list_sessions(struct socket_client *c, const json_t *m)
{
    struct sandbox *s = socket_agent(c, m);
    AUTO(buf_done) struct buf json = {0};
    struct sandbox_info box;
    struct exec_info i;
    struct jw w;

    if (!s)
        return;
    sandbox_info(s, &box);
    w = reply_begin(&json, "session_list");
    jw_kstr(&w, "agent_id", agentic_name(&box));
    jw_key(&w, "sessions");
    jw_array(&w);
    for (struct exec *x = exec_next(s, STR("")); x; x = exec_next(s, str_of(i.id))) {
        exec_info(x, &i);
        if (i.name.n == 0 || i.ended_ms > 0)
            continue;
        jw_object(&w);
        jw_kstr(&w, "session_name", i.name);
        jw_kc(&w, "command_id", i.id);
        jw_kc(&w, "session_id", i.id);
        jw_kc(&w, "session_type", "interactive");
        agentic_write_command(&w, &i);
        jw_kbool(&w, "running", true);
        jw_object_end(&w);
    }
    jw_array_end(&w);
    reply_end(c, &w);
}

static void hear_attach_session(struct socket_client *c, const json_t *m)
{
    struct sandbox *s = socket_agent(c, m);
    struct exec *x = s ? named(c, s, agentic_member(m, "session_name")) : NULL;

    if (!x)
        return;
    subscribe_to(c, s);
    if (json_object_get(m, "cols") && request_may(c->r, PERM_SANDBOX_WRITE))
        exec_resize(x, side(m, "rows", 24), side(m, "cols", 80), changed, NULL);
    tell_named(c, "session_attached", s, x);
}

static void hear_detach_session(struct socket_client *c, const json_t *m)
{
    tell_ids(c, "session_detached", agentic_member(m, "agent_id"), "session_name",
             agentic_member(m, "session_name"), NULL);
}

static void hear_kill_session(struct socket_client *c, const json_t *m)
{
    struct sandbox *s = socket_may_write(c) ? socket_agent(c, m) : NULL;
    struct exec *x = s ? named(c, s, agentic_member(m, "session_name")) : NULL;

    if (!x)
        return;
    exec_cancel(x, changed, NULL);
    tell_ids(c, "session_killed", agentic_member(m, "agent_id"), "session_name",
             agentic_member(m, "session_name"), NULL);
}

/* --- the table --- */

static const struct {
    const char *type;
    void (*hear)(struct socket_client *c, const json_t *m);
} messages[] = {
    {"subscribe", hear_subscribe},
    {"unsubscribe", hear_unsubscribe},
    {"ping", hear_ping},
    {"list_agents", hear_list_agents},
    {"send_command", hear_send_command},
    {"send_input", hear_send_input},
    {"start_shell", hear_start_shell},
    {"pty_resize", hear_pty_resize},
    {"list_sessions", hear_list_sessions},
    {"create_session", hear_create_session},
    {"attach_session", hear_attach_session},
    {"detach_session", hear_detach_session},
    {"kill_session", hear_kill_session},
    {"join_session", join_session},
    {"leave_session", leave_session},
    {"session_input", session_input},
    {"session_resize", session_resize},
};

bool socket_hear(struct socket_client *c, struct str type, const json_t *m)
{
    for (size_t i = 0; i < ARRAY_LEN(messages); i++)
        if (str_eq_c(type, messages[i].type)) {
            messages[i].hear(c, m);
            return true;
        }
    return false;
}
