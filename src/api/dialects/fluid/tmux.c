/* tmux: sessions of sandboxes as tmux's, each with one window and one pane. */
#include "api/dialects/fluid/fluid.h"

#include "base/clock.h"
#include "base/mem.h"
#include "core/exec/console.h"
#include "core/exec/feed.h"
#include "core/session/keys.h"
#include "core/session/live.h"
#include "proto/digest.h"

#include <inttypes.h>

#define READ_MAX 1000
#define TEXT_MAX 4096
#define NAME_MAX_LEN 256
#define ROWS 50
#define COLS 200
#define SHELL_LINE                                                                                 \
    "for s in \"$SHELL\" /bin/bash /bin/sh; do [ -x \"$s\" ] && exec \"$s\" -l; done; exec sh"

/* --- finding --- */

/* Made of its id: it needs no table, and is the same after a restart. */
static uint32_t pane_number(const char *id)
{
    unsigned char hash[SHA256_SIZE];

    sha256(str_of(id), hash);
    return ((uint32_t)hash[0] << 24 | (uint32_t)hash[1] << 16 | (uint32_t)hash[2] << 8 | hash[3]) &
           0x7fffffff;
}

static bool is_session(const struct exec_info *i)
{
    return i->pty && i->name.n > 0 && i->ended_ms == 0;
}

static bool is_meant(const struct exec_info *i, struct str ref)
{
    char text[16];

    if (ref.n > 0 && (ref.p[0] == '%' || ref.p[0] == '$')) {
        (void)snprintf(text, sizeof text, "%" PRIu32, pane_number(i->id));
        return str_eq_c(str_skip(ref, 1), text);
    }
    return str_eq_c(ref, i->id) || str_eq(str_cut(ref, ':', &(struct str){0}), i->name);
}

typedef void (*session_each)(void *arg, struct exec *x, const struct exec_info *i);

static void each_session(struct request *r, session_each each, void *arg)
{
    struct sandboxes *all = r->api->c.sandboxes;
    struct sandbox_info box;
    struct exec_info i;

    for (struct sandbox *s = sandbox_next(all, &r->who, STR("")); s;
         s = sandbox_next(all, &r->who, str_of(box.id))) {
        sandbox_info(s, &box);
        for (struct exec *x = exec_next(s, STR("")); x; x = exec_next(s, str_of(i.id))) {
            exec_info(x, &i);
            if (is_session(&i))
                each(arg, x, &i);
        }
    }
}

struct looking {
    struct str ref;
    struct exec *found, *own;
    const struct sandbox *control;
    size_t count;
};

static void look_at(void *arg, struct exec *x, const struct exec_info *i)
{
    struct looking *l = arg;

    if (!is_meant(i, l->ref))
        return;
    l->count++;
    l->found = x;
    if (exec_sandbox(x) == l->control)
        l->own = x;
}

/* NULL: the reply is sent, with this status if there is none. */
static struct exec *find_pane(struct request *r, struct str ref, int missing)
{
    struct looking l = {
        .ref = ref, .control = sandbox_own(r->api->c.sandboxes, &r->who, fluid_control_name(r))};

    each_session(r, look_at, &l);
    if (l.own || l.count == 1)
        return l.own ? l.own : l.found;
    if (l.count > 1)
        fluid_error(r, 409, "several sandboxes have a session '" STR_FMT "': use its %%n",
                    (int)size_min(ref.n, 64), ref.p);
    else
        fluid_error(r, missing, "no session or pane '" STR_FMT "'", (int)size_min(ref.n, 64),
                    ref.p);
    return NULL;
}

/* --- lists --- */

struct writing {
    struct request *r;
    struct jw w;
    struct buf to;
    struct str session; /* this one only; empty: all */
    int64_t count;
};

static void count_seat(void *arg, const struct console_seat *s)
{
    (void)s;
    *(bool *)arg = true;
}

static void write_number(struct jw *w, const char *key, char mark, const struct exec_info *i)
{
    char text[16];

    (void)snprintf(text, sizeof text, "%c%" PRIu32, mark, pane_number(i->id));
    jw_kc(w, key, text);
}

static void write_session(void *arg, struct exec *x, const struct exec_info *i)
{
    struct writing *t = arg;
    bool attached = false;

    (void)x;
    console_each(t->r->api->consoles, i->id, count_seat, &attached);
    jw_object(&t->w);
    jw_kstr(&t->w, "name", i->name);
    write_number(&t->w, "id", '$', i);
    jw_kint(&t->w, "windows", 1);
    jw_ktime(&t->w, "created", i->created_ms);
    jw_kbool(&t->w, "attached", attached);
    jw_kc(&t->w, "sandbox_id", i->sandbox);
    jw_object_end(&t->w);
}

static void write_window(void *arg, struct exec *x, const struct exec_info *i)
{
    struct writing *t = arg;

    (void)x;
    if (t->session.n > 0 && !is_meant(i, t->session))
        return;
    jw_object(&t->w);
    jw_kstr(&t->w, "session_name", i->name);
    jw_kint(&t->w, "index", 0);
    jw_kstr(&t->w, "name", i->argc > 0 ? i->argv[0] : i->name);
    jw_kbool(&t->w, "active", true);
    jw_kint(&t->w, "panes", 1);
    jw_kint(&t->w, "width", i->cols);
    jw_kint(&t->w, "height", i->rows);
    jw_object_end(&t->w);
}

static void write_pane(void *arg, struct exec *x, const struct exec_info *i)
{
    struct writing *t = arg;

    (void)x;
    if (t->session.n > 0 && !is_meant(i, t->session))
        return;
    jw_object(&t->w);
    jw_kstr(&t->w, "session_name", i->name);
    jw_kint(&t->w, "window_index", 0);
    jw_kstr(&t->w, "window_name", i->argc > 0 ? i->argv[0] : i->name);
    jw_kint(&t->w, "pane_index", 0);
    write_number(&t->w, "pane_id", '%', i);
    jw_kint(&t->w, "pane_pid", (int64_t)i->pid);
    jw_kstr(&t->w, "pane_title", i->name);
    jw_kint(&t->w, "pane_width", i->cols);
    jw_kint(&t->w, "pane_height", i->rows);
    jw_kbool(&t->w, "active", true);
    jw_kstr(&t->w, "current_path", i->cwd);
    jw_kc(&t->w, "sandbox_id", i->sandbox);
    jw_object_end(&t->w);
}

static void send_list(struct request *r, session_each write, const char *key)
{
    struct writing t = {.r = r, .session = fluid_query(r, "session")};

    t.w.to = &t.to;
    if (key) {
        jw_object(&t.w);
        jw_key(&t.w, key);
    }
    jw_array(&t.w);
    each_session(r, write, &t);
    jw_array_end(&t.w);
    if (key)
        jw_object_end(&t.w);
    fluid_reply(r, 200, buf_str(&t.to));
    buf_done(&t.to);
}

void fluid_tmux_sessions(struct request *r)
{
    send_list(r, write_session, NULL);
}

void fluid_tmux_windows(struct request *r)
{
    send_list(r, write_window, NULL);
}

void fluid_tmux_panes(struct request *r)
{
    send_list(r, write_pane, "panes");
}

/* --- create --- */

struct tmux_in {
    struct str name, session_name, window_name, command, sandbox_id;
    bool horizontal, new_window;
};
static const struct fluid_field tmux_fields[] = {
    {"name", FLUID_STR, offsetof(struct tmux_in, name), false},
    {"session_name", FLUID_STR, offsetof(struct tmux_in, session_name), false},
    {"window_name", FLUID_STR, offsetof(struct tmux_in, window_name), false},
    {"command", FLUID_STR, offsetof(struct tmux_in, command), false},
    {"sandbox_id", FLUID_STR, offsetof(struct tmux_in, sandbox_id), false},
    {"horizontal", FLUID_BOOL, offsetof(struct tmux_in, horizontal), false},
    {"new_window", FLUID_BOOL, offsetof(struct tmux_in, new_window), false},
};
const struct fluid_form fluid_tmux_form = {FLUID_FORM(tmux_fields, struct tmux_in), .lenient = true,
                                           .optional = true};

struct tmux_job {
    struct waiter waiter;
    enum { TMUX_SESSION, TMUX_PANE, TMUX_SANDBOX } what;
    struct buf reply;
    int64_t ttl_ms;
};

static void tmux_free(struct tmux_job *j)
{
    buf_done(&j->reply);
    mem_free(j);
}
DEFINE_AUTO(struct tmux_job *, tmux_free)

static void write_terminal(struct jw *w, const struct exec_info *i);

static void write_made(struct jw *w, const struct tmux_job *j, const struct exec *x)
{
    struct sandbox_info box;
    struct exec_info i;

    exec_info(x, &i);
    sandbox_info(exec_sandbox(x), &box);
    jw_object(w);
    if (j->what == TMUX_PANE) {
        write_number(w, "pane_id", '%', &i);
        jw_kstr(w, "session_name", i.name);
        jw_kint(w, "window_index", 0);
        jw_kint(w, "pane_index", 0);
    } else {
        write_number(w, "session_id", '$', &i);
        jw_kstr(w, "session_name", i.name);
    }
    if (j->what == TMUX_SESSION)
        write_number(w, "pane_id", '%', &i);
    jw_kstr(w, "sandbox_id", fluid_sandbox_id(&box));
    if (j->what == TMUX_SANDBOX)
        write_terminal(w, &i);
    jw_object_end(w);
}

static void session_made(void *arg, struct exec *x, const struct err *e)
{
    AUTO(tmux_free) struct tmux_job *j = arg;
    struct request *r = waiter_end(&j->waiter);
    AUTO(buf_done) struct buf json = {0};
    struct exec_info i = {.state = EXEC_FAILED};

    if (x)
        exec_info(x, &i);
    if (r && (!x || i.state == EXEC_FAILED)) {
        if (x)
            fluid_error(r, 500, "the session was not started: " STR_FMT, STR_ARG(i.failure));
        else
            fluid_refuse(r, e);
    } else if (r) {
        write_made(&(struct jw){.to = &json}, j, x);
        fluid_reply(r, 200, buf_str(&json));
    }
}

static bool name_is_valid(struct str s)
{
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];

        if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && !(c >= '0' && c <= '9') &&
            c != '_' && c != '-')
            return false;
    }
    return s.n > 0 && s.n <= NAME_MAX_LEN;
}

static void begin_session(struct request *r, struct sandbox *s, struct str name, struct str line,
                          struct tmux_job *j)
{
    const struct principal by = request_who(r);
    const struct exec_spec spec = {.shell = line.n > 0 ? line : STR(SHELL_LINE),
                                   .name = name,
                                   .pty = true,
                                   .want_stdin = true,
                                   .rows = ROWS,
                                   .cols = COLS,
                                   .timeout_ms = j->ttl_ms};

    request_wait(r, &j->waiter);
    exec_start(s, &spec, &by, session_made, j);
}

void fluid_tmux_session_create(struct request *r, struct sandbox *s)
{
    const struct tmux_in *in = r->in;
    struct tmux_job *j;

    if (!name_is_valid(in->name)) {
        fluid_error(r, 400, "name is required: 1 to %d characters of [A-Za-z0-9_-]", NAME_MAX_LEN);
        return;
    }
    j = xzalloc(sizeof *j);
    j->what = TMUX_SESSION;
    begin_session(r, s, in->name, in->command, j);
}

/* A pane beside others is a session of its own, whose name begins with theirs. */
void fluid_tmux_pane_create(struct request *r, struct sandbox *s)
{
    const struct tmux_in *in = r->in;
    struct str name = in->session_name.n > 0 ? in->session_name : in->window_name;
    struct exec_info i = {0};
    struct exec *x = name.n > 0 ? exec_named(s, name) : NULL;
    char made[NAME_MAX_LEN + 16];
    struct tmux_job *j;

    if (name.n > 0 && !name_is_valid(name)) {
        fluid_error(r, 400, "session_name has 1 to %d characters of [A-Za-z0-9_-]", NAME_MAX_LEN);
        return;
    }
    if (x)
        exec_info(x, &i);
    if (name.n == 0 || (x && i.ended_ms == 0)) {
        char suffix[FLUID_ID];

        (void)snprintf(made, sizeof made, STR_FMT "-%s", STR_ARG(name.n > 0 ? name : STR("pane")),
                       fluid_new_id("", suffix));
        name = str_of(made);
    }
    j = xzalloc(sizeof *j);
    j->what = TMUX_PANE;
    begin_session(r, s, name, in->command, j);
}

/* --- keys and text --- */

struct keys_in {
    struct str pane_id, key, text;
};
static const struct fluid_field keys_fields[] = {
    {"pane_id", FLUID_STR, offsetof(struct keys_in, pane_id), true},
    {"key", FLUID_STR, offsetof(struct keys_in, key), false},
    {"text", FLUID_STR, offsetof(struct keys_in, text), false},
};
const struct fluid_form fluid_keys_form = {FLUID_FORM(keys_fields, struct keys_in),
                                           .lenient = true};

static bool key_is_allowed(struct str key)
{
    static const char *const keys[] = {"Enter", "C-c",  "C-d",  "C-z",   "Escape",
                                       "Up",    "Down", "Left", "Right", "Tab"};

    for (size_t i = 0; i < ARRAY_LEN(keys); i++)
        if (str_eq_c(key, keys[i]))
            return true;
    return false;
}

static void reply_flag(struct request *r, struct str pane, const char *flag)
{
    AUTO(buf_done) struct buf json = {0};
    struct jw w = {.to = &json};

    jw_object(&w);
    jw_kstr(&w, "pane_id", pane);
    jw_kbool(&w, flag, true);
    jw_object_end(&w);
    fluid_reply(r, 200, buf_str(&json));
}

void fluid_tmux_send(struct request *r)
{
    const struct keys_in *in = r->in;
    AUTO(buf_done) struct buf bytes = {0};
    struct err e = {0};
    struct exec *x;

    if (in->key.n == 0 && in->text.n == 0) {
        fluid_error(r, 400, "key is required (or text)");
        return;
    }
    if (in->text.n > TEXT_MAX) {
        fluid_error(r, 413, "text has at most %d bytes", TEXT_MAX);
        return;
    }
    if (in->key.n > 0 && !key_is_allowed(in->key)) {
        fluid_error(r, 403,
                    "key '" STR_FMT "' is not allowed: Enter, C-c, C-d, C-z, Escape, Up, Down, "
                    "Left, Right, Tab; type with 'text'",
                    (int)size_min(in->key.n, 32), in->key.p);
        return;
    }
    x = find_pane(r, in->pane_id, 403);
    if (!x)
        return;
    buf_add_str(&bytes, in->text);
    if (in->key.n > 0 && keys_put(in->key, false, &bytes, &e) < 0) {
        fluid_refuse(r, &e);
        return;
    }
    feed_start(r->api->consoles, x, buf_str(&bytes), false);
    reply_flag(r, in->pane_id, "sent");
}

void fluid_tmux_switch(struct request *r)
{
    const struct keys_in *in = r->in;

    if (find_pane(r, in->pane_id, 404))
        reply_flag(r, in->pane_id, "switched");
}

/* --- read --- */

struct read_in {
    struct str pane_id;
    int64_t last_n_lines;
};
static const struct fluid_field read_fields[] = {
    {"pane_id", FLUID_STR, offsetof(struct read_in, pane_id), true},
    {"last_n_lines", FLUID_INT, offsetof(struct read_in, last_n_lines), false},
};
const struct fluid_form fluid_read_form = {FLUID_FORM(read_fields, struct read_in),
                                           .lenient = true};

struct look {
    struct waiter waiter;
    struct live_watch watch;
    struct buf pane;
    int64_t lines;
};

static void look_end(struct look *l)
{
    live_leave(&l->watch);
    buf_done(&l->pane);
    mem_free(l);
}

static void look_gone(struct waiter *w)
{
    look_end(CONTAINER_OF(w, struct look, waiter));
}

/* The last n lines, without blank ones at the end. */
static struct str last_lines(struct str text, int64_t n, int64_t *ret_count)
{
    size_t from;

    while (text.n > 0 && text.p[text.n - 1] == '\n')
        text.n--;
    *ret_count = text.n > 0;
    for (from = text.n; from > 0; from--)
        if (text.p[from - 1] == '\n' && ++*ret_count > n) {
            --*ret_count;
            break;
        }
    return str_skip(text, from);
}

static void screen_ready(struct live_watch *watch)
{
    struct look *l = CONTAINER_OF(watch, struct look, watch);
    struct request *r = waiter_end(&l->waiter);
    AUTO(buf_done) struct buf text = {0}, json = {0};
    struct jw w = {.to = &json};
    int64_t lines;
    struct str shown;

    screen_put_text(live_screen(watch), true, &text);
    shown = last_lines(buf_str(&text), l->lines, &lines);
    jw_object(&w);
    jw_kstr(&w, "pane_id", buf_str(&l->pane));
    jw_kstr(&w, "content", shown);
    jw_kint(&w, "lines", lines);
    jw_object_end(&w);
    fluid_reply(r, 200, buf_str(&json));
    look_end(l);
}

static void screen_failed(struct live_watch *watch, const struct err *e)
{
    struct look *l = CONTAINER_OF(watch, struct look, watch);

    fluid_refuse(waiter_end(&l->waiter), e);
    look_end(l);
}

void fluid_tmux_read(struct request *r)
{
    const struct read_in *in = r->in;
    struct exec *x = find_pane(r, in->pane_id, 404);
    struct exec_info i;
    struct look *l;

    if (!x)
        return;
    exec_info(x, &i);
    request_audit(r, "request.read", arena_printf(xchg_arena(r->x), "sandbox/%s", i.sandbox), 200);
    l = xzalloc(sizeof *l);
    buf_add_str(&l->pane, in->pane_id);
    l->lines = in->last_n_lines > 0 && in->last_n_lines < READ_MAX ? in->last_n_lines : READ_MAX;
    l->waiter.gone = look_gone;
    l->watch.changed = screen_ready;
    l->watch.failed = screen_failed;
    request_wait(r, &l->waiter);
    live_watch(r->api->screens, x, INT64_MAX, &l->watch);
}

/* --- kill, release --- */

static void session_killed(void *arg, struct exec *x, const struct err *e)
{
    AUTO(tmux_free) struct tmux_job *j = arg;
    struct request *r = waiter_end(&j->waiter);

    (void)x;
    if (r && e->code != ERR_NONE)
        fluid_refuse(r, e);
    else if (r)
        fluid_reply(r, 200, buf_str(&j->reply));
}

static void kill_session(struct request *r, struct exec *x, const char *key, struct str value,
                         bool credentials)
{
    struct tmux_job *j = xzalloc(sizeof *j);
    struct jw w = {.to = &j->reply};

    jw_object(&w);
    jw_kstr(&w, key, value);
    jw_kbool(&w, "killed", true);
    if (credentials)
        jw_kbool(&w, "credentials_cleaned", true);
    jw_object_end(&w);
    request_wait(r, &j->waiter);
    exec_cancel(x, session_killed, j);
}

void fluid_tmux_pane_kill(struct request *r)
{
    struct exec *x = find_pane(r, r->params.v[0], 404);

    if (x)
        kill_session(r, x, "pane_id", r->params.v[0], false);
}

void fluid_tmux_session_kill(struct request *r)
{
    struct exec *x = find_pane(r, r->params.v[0], 404);

    if (x)
        kill_session(r, x, "session_name", r->params.v[0], false);
}

/* Clients hold nothing between requests: there is nothing to release. */
void fluid_tmux_release(struct request *r)
{
    AUTO(buf_done) struct buf json = {0};
    struct exec *x = find_pane(r, r->params.v[0], 404);
    struct jw w = {.to = &json};
    struct exec_info i;

    if (!x)
        return;
    exec_info(x, &i);
    jw_object(&w);
    jw_kstr(&w, "session_name", i.name);
    jw_kbool(&w, "success", true);
    jw_object_end(&w);
    fluid_reply(r, 200, buf_str(&json));
}

/* --- terminals of sandboxes --- */

#define TTL_PRESET 5
#define TTL_MAX 10
#define MINUTE_MS (60 * 1000)

struct terminal_in {
    struct str sandbox_id, session_name;
    int64_t ttl_minutes;
};
static const struct fluid_field terminal_fields[] = {
    {"sandbox_id", FLUID_STR, offsetof(struct terminal_in, sandbox_id), true},
    {"session_name", FLUID_STR, offsetof(struct terminal_in, session_name), false},
    {"ttl_minutes", FLUID_INT, offsetof(struct terminal_in, ttl_minutes), false},
};
const struct fluid_form fluid_terminal_form = {FLUID_FORM(terminal_fields, struct terminal_in),
                                               .lenient = true};

static void write_terminal(struct jw *w, const struct exec_info *i)
{
    int64_t until = i->created_ms + i->timeout_ms;

    jw_kc(w, "vm_ip_address", FLUID_ADDRESS);
    jw_kc(w, "username", "root");
    fluid_seconds(w, "valid_until", until);
    jw_kint(w, "ttl_seconds", i64_max(until - clock_wall_ms(), 0) / 1000);
}

/* A session that ends by itself; it needs no certificate. */
void fluid_terminal_create(struct request *r)
{
    const struct terminal_in *in = r->in;
    struct sandbox *s = fluid_find_named(r, in->sandbox_id);
    int64_t minutes = in->ttl_minutes > 0 ? in->ttl_minutes : TTL_PRESET;
    struct str name = in->session_name;
    struct tmux_job *j;

    if (!s)
        return;
    if (name.n == 0)
        name = str_of(arena_printf(xchg_arena(r->x), "sandbox_" STR_FMT, STR_ARG(in->sandbox_id)));
    if (!name_is_valid(name)) {
        fluid_error(r, 400, "session_name has 1 to %d characters of [A-Za-z0-9_-]", NAME_MAX_LEN);
        return;
    }
    j = xzalloc(sizeof *j);
    j->what = TMUX_SANDBOX;
    j->ttl_ms = i64_min(minutes, TTL_MAX) * MINUTE_MS;
    begin_session(r, s, name, STR(""), j);
}

static void write_terminal_row(struct jw *w, struct exec *x, const struct exec_info *i)
{
    struct sandbox_info box;

    sandbox_info(exec_sandbox(x), &box);
    jw_object(w);
    write_number(w, "session_id", '$', i);
    jw_kstr(w, "session_name", i->name);
    jw_kstr(w, "sandbox_id", fluid_sandbox_id(&box));
    write_terminal(w, i);
    jw_kbool(w, "is_expired", false);
    jw_object_end(w);
}

/* Those with a lifetime: others are sessions of other interfaces. */
static void write_terminal_of(void *arg, struct exec *x, const struct exec_info *i)
{
    struct writing *t = arg;

    if (i->timeout_ms > 0 && i->timeout_ms <= TTL_MAX * MINUTE_MS) {
        write_terminal_row(&t->w, x, i);
        t->count++;
    }
}

void fluid_terminals(struct request *r)
{
    struct writing t = {.r = r};

    t.w.to = &t.to;
    jw_object(&t.w);
    jw_key(&t.w, "sessions");
    jw_array(&t.w);
    each_session(r, write_terminal_of, &t);
    jw_array_end(&t.w);
    jw_kint(&t.w, "total", t.count);
    jw_object_end(&t.w);
    fluid_reply(r, 200, buf_str(&t.to));
    buf_done(&t.to);
}

void fluid_terminal(struct request *r)
{
    struct exec *x = find_pane(r, r->params.v[0], 404);
    AUTO(buf_done) struct buf json = {0};
    struct jw w = {.to = &json};
    struct exec_info i;

    if (!x)
        return;
    exec_info(x, &i);
    write_terminal_row(&w, x, &i);
    fluid_reply(r, 200, buf_str(&json));
}

void fluid_terminal_kill(struct request *r)
{
    struct exec *x = find_pane(r, r->params.v[0], 404);

    if (x)
        kill_session(r, x, "session_name", r->params.v[0], true);
}
