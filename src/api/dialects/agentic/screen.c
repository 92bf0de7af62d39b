/* screen: the screen of a session: in one reply, or live over a WebSocket. */
#include "api/dialects/agentic/agentic.h"

#include "api/share/revocable_stream.h"
#include "base/mem.h"
#include "core/exec/console.h"
#include "core/exec/feed.h"
#include "core/session/live.h"
#include "core/session/prompt.h"
#include "net/ws.h"

#include <signal.h>

#define SETTLE_MS 100 /* an update comes this long after the first change */
#define TAIL_LINES 50
#define PROMPT_TOLD 80 /* the least score that is told */

/* --- as JSON --- */

static void write_tail(struct jw *w, const struct screen *s)
{
    int n = screen_look(s).history;
    AUTO(buf_done) struct buf text = {0};

    for (int i = n > TAIL_LINES ? n - TAIL_LINES : 0; i < n; i++) {
        buf_add_str(&text, screen_history_line(s, i));
        buf_add_char(&text, '\n');
    }
    jw_kstr(w, "scrollback_tail", buf_str(&text));
}

static void write_text(struct jw *w, const struct screen *s)
{
    AUTO(buf_done) struct buf text = {0};
    struct str t;

    screen_put_text(s, false, &text);
    t = buf_str(&text);
    while (t.n > 0 && t.p[t.n - 1] == '\n')
        t.n--;
    jw_kstr(w, "text", t);
}

/* The members "prompt_detected" and "prompt_text"; returns its score. */
static int write_prompt(struct jw *w, const struct screen *s)
{
    AUTO(arena_done) struct arena a = {0};
    struct prompt p = {0};
    bool found = prompt_in_screen(s, false, &a, &p);

    jw_kbool(w, "prompt_detected", found);
    if (found)
        jw_kstr(w, "prompt_text", p.text);
    else
        jw_kc(w, "prompt_text", NULL);
    return found ? p.score : 0;
}

/* --- in one reply --- */

struct look {
    struct waiter waiter;
    struct live_watch watch;
    char id[ID_SIZE];
};

static void look_end(struct look *l)
{
    live_leave(&l->watch);
    mem_free(l);
}

static void client_gone(struct waiter *w)
{
    look_end(CONTAINER_OF(w, struct look, waiter));
}

static void screen_ready(struct live_watch *watch)
{
    struct look *l = CONTAINER_OF(watch, struct look, watch);
    struct request *r = waiter_end(&l->waiter);
    const struct screen *s = live_screen(watch);
    struct screen_view v = screen_look(s);
    struct jw w = request_json(r);

    jw_object(&w);
    jw_kc(&w, "session_id", l->id);
    jw_kint(&w, "rows", v.size.rows);
    jw_kint(&w, "cols", v.size.cols);
    write_text(&w, s);
    jw_key(&w, "cursor");
    jw_object(&w);
    jw_kint(&w, "row", v.cursor_row);
    jw_kint(&w, "col", v.cursor_col);
    jw_object_end(&w);
    write_tail(&w, s);
    (void)write_prompt(&w, s);
    jw_object_end(&w);
    request_send_json(r, 200);
    look_end(l);
}

static void screen_failed(struct live_watch *watch, const struct err *e)
{
    struct look *l = CONTAINER_OF(watch, struct look, watch);

    agentic_fail(waiter_end(&l->waiter), err_table[e->code].http, e);
    look_end(l);
}

void agentic_session_screen(struct request *r)
{
    struct exec *x = agentic_session(r, r->params.v[0]);
    struct exec_info i;
    struct look *l;

    if (!x) {
        agentic_error(r, 404, "session '" STR_FMT "' not tracked",
                      (int)size_min(r->params.v[0].n, 64), r->params.v[0].p);
        return;
    }
    exec_info(x, &i);
    request_audit(r, "request.read", arena_printf(xchg_arena(r->x), "sandbox/%s", i.sandbox), 200);
    l = xzalloc(sizeof *l);
    (void)snprintf(l->id, sizeof l->id, "%s", i.id);
    l->waiter.gone = client_gone;
    l->watch.changed = screen_ready;
    l->watch.failed = screen_failed;
    request_wait(r, &l->waiter);
    live_watch(r->api->screens, x, INT64_MAX, &l->watch);
}

/* --- live --- */

struct orchestra { /* one client; freed when its socket is closed */
    struct request *r;
    struct ws *ws;
    struct exec *x;
    char id[ID_SIZE];
    bool writes, over;
    struct live_watch watch;
    struct timer due;
    struct revocable_stream life;
    struct exec_wait *end;
};

static void tell(struct orchestra *o, const struct buf *json)
{
    if (o->ws)
        (void)!ws_send(o->ws, WS_TEXT, buf_str(json));
}

static void tell_error(struct orchestra *o, const char *text)
{
    AUTO(buf_done) struct buf json = {0};
    struct jw w = {.to = &json};

    jw_object(&w);
    jw_kc(&w, "type", "error");
    jw_kc(&w, "message", text);
    jw_object_end(&w);
    tell(o, &json);
}

static void tell_prompt(struct orchestra *o, const struct screen *s)
{
    AUTO(arena_done) struct arena a = {0};
    AUTO(buf_done) struct buf json = {0};
    struct jw w = {.to = &json};
    struct prompt p = {0};

    if (!prompt_in_screen(s, false, &a, &p) || p.score < PROMPT_TOLD)
        return;
    jw_object(&w);
    jw_kc(&w, "type", "prompt_detected");
    jw_kc(&w, "session_id", o->id);
    jw_kstr(&w, "prompt_text", p.text);
    jw_key(&w, "confidence");
    jw_double(&w, p.score / 100.0);
    jw_object_end(&w);
    tell(o, &json);
}

static void tell_screen(struct orchestra *o, const struct screen *s)
{
    AUTO(buf_done) struct buf json = {0};
    struct screen_view v = screen_look(s);
    struct jw w = {.to = &json};

    jw_object(&w);
    jw_kc(&w, "type", "screen_update");
    jw_kc(&w, "session_id", o->id);
    jw_kint(&w, "timestamp", clock_wall_ms());
    jw_key(&w, "screen");
    jw_object(&w);
    jw_kint(&w, "rows", v.size.rows);
    jw_kint(&w, "cols", v.size.cols);
    write_text(&w, s);
    jw_kint(&w, "cursor_row", v.cursor_row);
    jw_kint(&w, "cursor_col", v.cursor_col);
    write_tail(&w, s);
    jw_object_end(&w);
    (void)write_prompt(&w, s);
    jw_object_end(&w);
    tell(o, &json);
}

static void update_due(struct timer *t)
{
    struct orchestra *o = CONTAINER_OF(t, struct orchestra, due);
    const struct screen *s = o->watch.live ? live_screen(&o->watch) : NULL;

    if (!s)
        return;
    tell_prompt(o, s);
    tell_screen(o, s);
}

static void screen_changed(struct live_watch *w)
{
    struct orchestra *o = CONTAINER_OF(w, struct orchestra, watch);

    if (!timer_is_set(&o->due))
        timer_set(lives_timers(o->r->api->screens), &o->due, clock_mono_ms() + SETTLE_MS,
                  update_due);
}

static void screen_lost(struct live_watch *w, const struct err *e)
{
    struct orchestra *o = CONTAINER_OF(w, struct orchestra, watch);

    live_leave(w);
    tell_error(o, e->msg);
}

static void session_ended(void *arg, struct exec *x, const struct err *e)
{
    struct orchestra *o = arg;
    AUTO(buf_done) struct buf json = {0};
    struct jw w = {.to = &json};
    struct exec_info i;

    (void)e;
    o->end = NULL;
    update_due(&o->due);
    jw_object(&w);
    jw_kc(&w, "type", "session_end");
    jw_kc(&w, "session_id", o->id);
    if (x) {
        exec_info(x, &i);
        jw_kint_if(&w, "exit_code", i.exit_code >= 0, i.exit_code);
    }
    jw_object_end(&w);
    tell(o, &json);
    if (o->ws)
        ws_close(o->ws, WS_NORMAL, "the session has ended");
}

/* --- from the client --- */

static void signal_sent(void *arg, struct exec *x, const struct err *e)
{
    (void)arg, (void)x, (void)e; /* the session may just have ended: that is told */
}

static const char *take_resize(struct orchestra *o, const json_t *m)
{
    json_int_t rows = json_integer_value(json_object_get(m, "rows"));
    json_int_t cols = json_integer_value(json_object_get(m, "cols"));

    if (rows < 1 || rows > 1000 || cols < 1 || cols > 1000)
        return "rows and cols must be from 1 to 1000";
    exec_resize(o->x, (int)rows, (int)cols, signal_sent, NULL);
    return NULL;
}

static const char *take_signal(struct orchestra *o, const json_t *m)
{
    static const struct {
        const char *name;
        int number;
    } signals[] = {{"SIGINT", SIGINT}, {"SIGTERM", SIGTERM}, {"SIGKILL", SIGKILL}};

    for (size_t i = 0; i < ARRAY_LEN(signals); i++)
        if (str_eq_c(agentic_member(m, "signal"), signals[i].name)) {
            exec_signal(o->x, signals[i].number, signal_sent, NULL);
            return NULL;
        }
    return "unsupported signal; supported: SIGINT, SIGTERM, SIGKILL";
}

/* Returns the error; NULL: none. */
static const char *take_message(struct orchestra *o, const json_t *m)
{
    struct str type = agentic_member(m, "type");
    struct err e = {0};

    if (!str_eq_c(type, "write") && !str_eq_c(type, "resize") && !str_eq_c(type, "signal"))
        return "invalid orchestrator input";
    if (!o->writes || request_authorise(o->r, PERM_SANDBOX_WRITE, &e) < 0)
        return "observers cannot write, resize or signal; connect with ?role=controller";
    if (str_eq_c(type, "resize"))
        return take_resize(o, m);
    if (str_eq_c(type, "signal"))
        return take_signal(o, m);
    feed_start(o->r->api->consoles, o->x, agentic_member(m, "text"), false);
    return NULL;
}

static void on_message(struct ws *ws, enum ws_kind kind, struct str data)
{
    struct orchestra *o = ws_arg(ws);
    AUTO(json_decref) json_t *m = NULL;
    struct err e = {0};
    const char *wrong = "invalid orchestrator input";

    if (kind == WS_TEXT && json_read(data, &m, &e) == 0)
        wrong = take_message(o, m);
    if (wrong)
        tell_error(o, wrong);
}

static void on_drained(struct ws *ws)
{
    (void)ws; /* an update is whole: what was missed is in the next */
}

static void on_closed(struct ws *ws, int code, struct str reason)
{
    struct orchestra *o = ws_arg(ws);

    (void)code, (void)reason;
    o->ws = NULL;
    timer_stop(&o->due);
    live_leave(&o->watch);
    exec_wait_cancel(o->end);
    revocable_stream_end(&o->life);
    exec_unref(o->x);
    mem_free(o);
}

static void life_ended(struct revocable_stream *l, int ws_code, const char *why)
{
    struct orchestra *o = CONTAINER_OF(l, struct orchestra, life);

    if (o->ws)
        ws_close(o->ws, ws_code, why);
}

static void tell_start(struct orchestra *o)
{
    AUTO(buf_done) struct buf json = {0};
    struct jw w = {.to = &json};

    jw_object(&w);
    jw_kc(&w, "type", "session_start");
    jw_kc(&w, "session_id", o->id);
    jw_kc(&w, "role", o->writes ? "controller" : "observer");
    jw_kbool(&w, "can_write", o->writes);
    jw_object_end(&w);
    tell(o, &json);
}

static void orchestra_begin(struct request *r, struct exec *x, bool writes)
{
    static const struct ws_ops ops = {on_message, on_drained, on_closed};
    struct orchestra *o = xzalloc(sizeof *o);
    struct exec_info i;

    exec_info(x, &i);
    o->r = r;
    o->writes = writes;
    (void)snprintf(o->id, sizeof o->id, "%s", i.id);
    o->ws = ws_accept(r->x, NULL, &ops, o);
    if (!o->ws) {
        mem_free(o);
        return;
    }
    request_count(r, 101);
    request_audit(r, "request.read", arena_printf(xchg_arena(r->x), "sandbox/%s", i.sandbox), 200);
    o->x = exec_ref(x);
    o->life.acts = writes;
    revocable_stream_begin(&o->life, r, life_ended);
    tell_start(o);
    o->watch.changed = screen_changed;
    o->watch.failed = screen_lost;
    live_watch(r->api->screens, x, INT64_MAX, &o->watch);
    o->end = exec_wait(x, session_ended, o);
}

void agentic_orchestrate(struct request *r)
{
    struct exec *x = agentic_session(r, r->params.v[0]);
    struct str role = agentic_query(r, "role");
    bool writes = str_eq_c(role, "controller");

    if (!x)
        agentic_error(r, 404, "session '" STR_FMT "' not tracked",
                      (int)size_min(r->params.v[0].n, 64), r->params.v[0].p);
    else if (role.n > 0 && !writes && !str_eq_c(role, "observer"))
        agentic_error(r, 400, "role must be 'observer' or 'controller'");
    else if (writes && !request_may(r, PERM_SANDBOX_WRITE))
        agentic_error(r, 403, "the caller may only observe");
    else if (!ws_is_handshake(r->x))
        agentic_error(r, 400, "this is a WebSocket");
    else
        orchestra_begin(r, x, writes);
}
