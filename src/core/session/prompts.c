/* prompts: watches sessions, asks people about their prompts, and types the answers. */
#include "core/session/prompts.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/thread.h"
#include "core/session/prompts_internal.h"

#define QUIET_MS 400          /* without output: the program waits, or thinks */
#define BUSY_MS 3000          /* a program that never is quiet is looked at this often … */
#define BUSY_BYTES (64 << 10) /* … unless it writes more than an animation does */
#define TYPED_MS 2000         /* an answer that changes nothing on the screen counts as typed */
#define CONTEXT_ROWS 20
#define GONE "the prompt is gone"
#define ENDED "its session ended"

/*  CALM ── a prompt ──> ASKING ── stored ──> PENDING ── answered ──> OWED ── typed ──> TYPED
 *    ^                                          │ gone: closed        │ gone             │
 *    └──────────────────────────────────────────┴─────────────────────┴── screen changed ┘ */
enum watch_state { CALM, ASKING, PENDING, OWED, TYPING, TYPED };

struct watch { /* of one session; in the map by its command's id */
    struct prompts *all;
    char id[ID_SIZE];
    struct exec *x;
    struct exec_reader *reader;
    struct live_watch look;
    struct timer due;
    int64_t last_ms, first_ms; /* of the output since the last look */
    int64_t bytes, offset;     /* of that output; of all output */
    struct buf tail;
    bool drawn, busy; /* the output moves the cursor; this look is not in a quiet moment */
    uint64_t busy_mark;
    enum watch_state state;
    char approval[ID_SIZE];
    uint64_t mark; /* of the prompt that is pending; 0: a caller asked it */
    bool asked;
    struct buf answer;
    int64_t typed_at; /* offset of the output when it was typed */
    struct typist typist;
};

struct prompts {
    struct prompts_config c;
    int refs; /* of the owner, and of work in the store */
    struct map watches;
    struct subscription *sub;
    bool stuck, closed;
};

static struct prompts *prompts_drop(struct prompts *p)
{
    assert(p->refs > 0);
    if (--p->refs > 0)
        return NULL;
    map_done(&p->watches);
    mem_free(p);
    return NULL;
}

static void look_soon(struct watch *w, int64_t ms);

/* --- work on the store's thread --- */

struct job {
    struct prompts *all;
    struct arena arena;
    struct team t;
    char exec[ID_SIZE];
    struct approval a;
    struct approval_list open;
    const char *reason;
    prompts_asked done;
    void *arg;
};

static struct job *job_new(struct prompts *p, const char *exec)
{
    struct job *j = xzalloc(sizeof *j);

    j->all = p;
    assert(p->refs > 0 && thread_is_loop());
    p->refs++;
    (void)snprintf(j->exec, sizeof j->exec, "%s", exec);
    j->t = (struct team){.arena = &j->arena, .who = {.actor = "system"}, .now_ms = clock_wall_ms()};
    return j;
}

static void job_free(struct job *j)
{
    prompts_drop(j->all);
    arena_done(&j->arena);
    mem_free(j);
}

static struct watch *job_watch(const struct job *j) /* NULL: it has ended */
{
    return map_get(&j->all->watches, str_of(j->exec));
}

static int ask_work(struct store_tx *tx, void *arg, struct err *e)
{
    struct job *j = arg;

    j->t.tx = tx;
    return prompt_ask(&j->t, &j->a, e);
}

static int close_work(struct store_tx *tx, void *arg, struct err *e)
{
    struct job *j = arg;

    j->t.tx = tx;
    return prompt_close(&j->t, str_of(j->exec), j->reason, e);
}

static int typed_work(struct store_tx *tx, void *arg, struct err *e)
{
    struct job *j = arg;

    j->t.tx = tx;
    return prompt_typed(&j->t, j->a.id, e);
}

static int open_work(struct store_tx *tx, void *arg, struct err *e)
{
    struct job *j = arg;

    j->t.tx = tx;
    return prompt_open(&j->t, &j->open, e);
}

static void job_done(void *arg, const struct err *e)
{
    struct job *j = arg;

    if (e->code != ERR_NONE)
        log_warn("a prompt could not be stored", LOG_C("exec", j->exec), LOG_E(e));
    job_free(j);
}

static void close_prompt(struct prompts *p, const char *exec, const char *reason)
{
    struct job *j = job_new(p, exec);

    j->reason = reason;
    store_write(p->c.store, STORE_DURABLE, close_work, job_done, j);
}

/* --- asking --- */

static void prompt_asked(void *arg, const struct err *e)
{
    struct job *j = arg;
    struct watch *w = job_watch(j);

    if (w && w->state == ASKING) {
        w->state = e->code == ERR_NONE ? PENDING : CALM;
        (void)snprintf(w->approval, sizeof w->approval, STR_FMT, STR_ARG(j->a.id));
        look_soon(w, QUIET_MS); /* it may be gone already */
    } else if (!w && e->code == ERR_NONE && !j->all->closed) {
        close_prompt(j->all, j->exec, ENDED);
    }
    if (j->done)
        j->done(j->arg, j->a.id, e);
    else if (e->code != ERR_NONE && e->code != ERR_LIMIT && e->code != ERR_CONFLICT)
        log_warn("a prompt could not be stored", LOG_C("exec", j->exec), LOG_E(e));
    job_free(j);
}

static struct job *ask_job(struct watch *w, struct str question, struct str note)
{
    struct job *j = job_new(w->all, w->id);
    struct sandbox_info s;

    sandbox_info(exec_sandbox(w->x), &s);
    j->a = (struct approval){.sandbox = arena_str(&j->arena, str_of(s.id)),
                             .tenant = arena_str(&j->arena, s.tenant),
                             .agent = arena_str(&j->arena, s.agent),
                             .exec = str_of(j->exec),
                             .question = arena_str(&j->arena, question),
                             .urgency = 1,
                             .move = {.note = arena_str(&j->arena, note)}};
    w->state = ASKING;
    w->approval[0] = '\0';
    return j;
}

/* The option that a plain yes (1) or no (-1) takes; NULL: none. */
static const struct str *plain_option(const struct prompt *p, int which)
{
    for (size_t i = 0; i < p->option_count; i++)
        if (prompt_is_yes(p->options[i]) == which)
            return &p->options[i];
    return NULL;
}

static void put_plain(struct jw *w, const struct prompt *p, const char *key, int which)
{
    const struct str *option = plain_option(p, which);

    if (option)
        jw_kstr(w, key, *option);
    else if (p->way == PROMPT_KEY && which > 0)
        jw_kc(w, key, "");
}

static struct str put_details(const struct prompt *p, struct arena *a)
{
    AUTO(buf_done) struct buf text = {0};
    struct jw w = {.to = &text};

    jw_object(&w);
    jw_kc(&w, "pattern", p->pattern);
    jw_kint(&w, "score", p->score);
    put_plain(&w, p, "yes", 1);
    put_plain(&w, p, "no", -1);
    jw_object_end(&w);
    return arena_str(a, buf_str(&text));
}

static struct str put_alternatives(const struct prompt *p, struct arena *a)
{
    AUTO(buf_done) struct buf text = {0};
    struct jw w = {.to = &text};

    jw_array(&w);
    for (size_t i = 0; i < p->option_count; i++)
        jw_str(&w, p->options[i]);
    jw_array_end(&w);
    return arena_str(a, buf_str(&text));
}

static uint64_t prompt_mark(const struct prompt *p)
{
    uint64_t h = map_hash(p->text);

    for (size_t i = 0; i < p->option_count; i++)
        h = h * 31 + map_hash(p->options[i]);
    return h ? h : 1;
}

static void ask_person(struct watch *w, const struct prompt *p, const struct screen *s)
{
    AUTO(buf_done) struct buf context = {0};
    struct job *j;

    prompt_context(s, CONTEXT_ROWS, &context);
    j = ask_job(w, p->text, buf_str(&context));
    j->a.way = str_of(prompt_ways[p->way]);
    j->a.alternatives = put_alternatives(p, &j->arena);
    j->a.arguments = put_details(p, &j->arena);
    w->mark = prompt_mark(p);
    w->asked = false;
    store_write(w->all->c.store, STORE_DURABLE, ask_work, prompt_asked, j);
}

void prompts_ask(struct prompts *p, struct exec *x, struct str question, struct str context,
                 prompts_asked done, void *arg)
{
    struct exec_info i;
    struct watch *w;
    struct job *j;
    struct err e = {0};

    exec_info(x, &i);
    w = map_get(&p->watches, str_of(i.id));
    if (!w || w->state != CALM) {
        if (w)
            err_set(&e, ERR_CONFLICT, 0, "a pending request for session '%s' already exists", i.id);
        else
            err_set(&e, ERR_CONFLICT, 0, "session '%s' has ended, or prompts are switched off",
                    i.id);
        done(arg, STR(""), &e);
        return;
    }
    j = ask_job(w, question, context);
    j->a.way = str_of(prompt_ways[PROMPT_LINE]);
    j->a.arguments = STR("{\"asked\":true}");
    j->done = done;
    j->arg = arg;
    w->asked = true;
    w->mark = 0;
    store_write(p->c.store, STORE_DURABLE, ask_work, prompt_asked, j);
}

/* --- answering --- */

static void answer_done(struct watch *w)
{
    struct job *j = job_new(w->all, w->id);

    j->a.id = arena_str(&j->arena, str_of(w->approval));
    w->state = CALM;
    w->approval[0] = '\0';
    buf_wipe(&w->answer);
    store_write(w->all->c.store, STORE_DURABLE, typed_work, job_done, j);
}

static void answer_typed(struct typist *t)
{
    struct watch *w = CONTAINER_OF(t, struct watch, typist);

    type_stop(t);
    w->state = TYPED;
    look_soon(w, TYPED_MS);
}

static void answer_now(struct watch *w, const struct prompt *p, const struct screen *s)
{
    w->state = TYPING;
    w->typed_at = w->offset;
    type_answer(&w->typist, p, w->drawn, screen_look(s).application_keys, buf_str(&w->answer));
}

/* --- looking --- */

/* What the screen says, in a quiet moment. */
static void judge(struct watch *w, const struct screen *s)
{
    AUTO(arena_done) struct arena a = {0};
    struct prompt p;
    bool found = prompt_in_screen(s, w->drawn, &a, &p) && p.score >= PROMPT_SURE;
    uint64_t mark = found ? prompt_mark(&p) : 0;
    bool same = w->asked || (found && mark == w->mark);

    switch (w->state) {
    case CALM:
        if (found && !(mark == w->mark && w->offset == w->typed_at))
            ask_person(w, &p, s);
        break;
    case PENDING:
        if (same)
            break;
        close_prompt(w->all, w->id, GONE);
        w->state = CALM;
        if (found)
            look_soon(w, TIMER_SOON);
        break;
    case OWED:
        if (same)
            answer_now(w, found ? &p : NULL, s);
        else
            answer_done(w);
        break;
    case TYPED:
        answer_done(w);
        look_soon(w, QUIET_MS);
        break;
    case ASKING:
    case TYPING:
        break;
    }
}

/* A program that draws all the time: only a menu that stays counts. */
static void judge_busy(struct watch *w, const struct screen *s)
{
    AUTO(arena_done) struct arena a = {0};
    struct prompt p;
    uint64_t mark = 0;

    if (prompt_in_screen(s, w->drawn, &a, &p) && p.score >= PROMPT_SURE && p.way == PROMPT_MENU)
        mark = prompt_mark(&p);
    if (mark == w->busy_mark && (mark || w->state != CALM))
        judge(w, s);
    w->busy_mark = mark;
}

static void look_ready(struct live_watch *l)
{
    struct watch *w = CONTAINER_OF(l, struct watch, look);
    const struct screen *s = live_screen(l);

    if (!s || (live_offset(l) < w->offset && !w->busy))
        return;
    live_leave(l);
    if (w->busy)
        judge_busy(w, s);
    else
        judge(w, s);
}

static void look_failed(struct live_watch *l, const struct err *e)
{
    (void)e; /* without its log there is nothing to see */
    live_leave(l);
}

static void look_at(struct watch *w)
{
    w->first_ms = 0;
    w->bytes = 0;
    if (w->look.live)
        return;
    w->look.changed = look_ready;
    w->look.failed = look_failed;
    live_watch(w->all->c.lives, w->x, INT64_MAX, &w->look);
}

/* Whether the screen is worth a look: it costs more than the last bytes. */
static bool is_worth(struct watch *w)
{
    AUTO(arena_done) struct arena a = {0};
    struct prompt p;

    w->drawn = prompt_is_drawn(buf_str(&w->tail));
    if (w->state != CALM || w->drawn)
        return true;
    return prompt_in_tail(buf_str(&w->tail), &a, &p) && p.score >= PROMPT_SURE;
}

static void look_due(struct timer *t)
{
    struct watch *w = CONTAINER_OF(t, struct watch, due);
    int64_t now = clock_mono_ms(), quiet_at = w->last_ms + QUIET_MS;
    bool busy = now < quiet_at;

    if (!*w->all->c.on && w->state == CALM)
        return;
    if (busy && (w->first_ms == 0 || now < w->first_ms + BUSY_MS)) {
        look_soon(w, quiet_at - now);
        return;
    }
    w->busy = busy;
    if (busy)
        look_soon(w, quiet_at - now);
    if (busy && w->bytes > BUSY_BYTES) {
        w->first_ms = now;
        w->bytes = 0;
        return;
    }
    if (is_worth(w))
        look_at(w);
}

static void look_soon(struct watch *w, int64_t ms)
{
    int64_t at = ms == TIMER_SOON ? TIMER_SOON : clock_mono_ms() + ms;

    if (!timer_is_set(&w->due) || at < w->due.at_ms)
        timer_set(lives_timers(w->all->c.lives), &w->due, at, look_due);
}

/* --- output --- */

static void keep_tail(struct watch *w, struct str bytes)
{
    if (bytes.n > PROMPT_TAIL)
        bytes = str_skip(bytes, bytes.n - PROMPT_TAIL);
    buf_add_str(&w->tail, bytes);
    if (buf_len(&w->tail) > (size_t)2 * PROMPT_TAIL)
        buf_take(&w->tail, buf_len(&w->tail) - PROMPT_TAIL);
}

static int on_bytes(void *arg, enum exec_which stream, int64_t offset, int64_t time_us,
                    struct str bytes)
{
    struct watch *w = arg;

    (void)stream, (void)time_us;
    w->last_ms = clock_mono_ms();
    if (w->first_ms == 0)
        w->first_ms = w->last_ms;
    w->bytes += (int64_t)bytes.n;
    w->offset = offset + (int64_t)bytes.n;
    keep_tail(w, bytes);
    look_soon(w, QUIET_MS);
    return 0;
}

static void watch_free(struct watch *w)
{
    (void)map_remove(&w->all->watches, str_of(w->id));
    live_leave(&w->look);
    timer_stop(&w->due);
    type_stop(&w->typist);
    exec_reader_end(w->reader);
    exec_unref(w->x);
    buf_done(&w->tail);
    buf_wipe(&w->answer);
    mem_free(w);
}

static void on_end(void *arg, const struct err *e)
{
    struct watch *w = arg;

    (void)e;
    w->reader = NULL;
    if (w->state != CALM && !w->all->closed)
        close_prompt(w->all, w->id, ENDED);
    watch_free(w);
}

static const struct exec_reader_ops reads = {.bytes = on_bytes, .end = on_end};

/* --- sessions --- */

static struct watch *watch_new(struct prompts *p, struct exec *x)
{
    struct watch *w;
    struct exec_info i;

    exec_info(x, &i);
    if (i.name.n == 0 || !i.pty || i.ended_ms > 0 || map_get(&p->watches, str_of(i.id)))
        return map_get(&p->watches, str_of(i.id));
    w = xzalloc(sizeof *w);
    w->all = p;
    (void)snprintf(w->id, sizeof w->id, "%s", i.id);
    w->x = exec_ref(x);
    w->offset = i.out_end;
    w->typed_at = -1;
    w->typist = (struct typist){.timers = lives_timers(p->c.lives),
                                .consoles = p->c.consoles,
                                .x = x,
                                .done = answer_typed};
    (void)map_set(&p->watches, str_of(w->id), w);
    /* its last page tells what it waits for now */
    w->reader = exec_read(x, EXEC_STDOUT, i64_max(i.out_end - PROMPT_TAIL, 0), 0, true, &reads, w);
    return w;
}

static struct exec *find_exec(const struct prompts *p, struct str sandbox, struct str id)
{
    struct err e = {0};
    struct sandbox *s = sandbox_find(p->c.sandboxes, &principal_system, sandbox, &e);

    return s ? exec_find(s, id, &e) : NULL;
}

static struct str member(const json_t *o, const char *key)
{
    const json_t *v = json_object_get(o, key);

    return str_make(json_string_value(v), json_string_length(v));
}

static void on_started(struct prompts *p, const json_t *o)
{
    struct exec *x = find_exec(p, member(o, "sandbox"), member(o, "id"));

    if (x)
        (void)watch_new(p, x);
}

static void take_answer(struct watch *w, const struct approval *a)
{
    (void)snprintf(w->approval, sizeof w->approval, STR_FMT, STR_ARG(a->id));
    buf_wipe(&w->answer);
    buf_add_str(&w->answer, a->choice);
    w->state = OWED;
    look_soon(w, TIMER_SOON);
}

static void answer_read(void *arg, const struct err *e)
{
    struct job *j = arg;
    struct watch *w = job_watch(j);

    if (e->code != ERR_NONE)
        log_warn("the answer to a prompt could not be read", LOG_C("exec", j->exec), LOG_E(e));
    for (size_t i = 0; i < j->open.n; i++)
        if (w && j->open.v[i].owed && str_eq_c(j->open.v[i].exec, w->id) &&
            (w->state == PENDING || w->state == ASKING))
            take_answer(w, &j->open.v[i]);
    job_free(j);
}

static void on_decided(struct prompts *p, const struct event *ev, const json_t *o)
{
    struct watch *w = map_get(&p->watches, member(o, "exec"));

    if (!w || !str_eq_c(member(o, "kind"), APPROVAL_PROMPT) ||
        (!str_eq_c(ev->type, "approval.approved") && !str_eq_c(ev->type, "approval.rejected")))
        return;
    store_read(p->c.store, open_work, answer_read, job_new(p, w->id));
}

static int on_event(void *arg, const struct event *ev)
{
    bool started = str_eq_c(ev->type, "exec.started");
    AUTO(json_decref) json_t *o = NULL;
    struct err e;

    if ((!started && !str_starts(ev->type, STR("approval."))) || json_read(ev->data, &o, &e) < 0)
        return 0;
    if (started)
        on_started(arg, o);
    else
        on_decided(arg, ev, o);
    return 0;
}

static void on_stuck(void *arg, const struct err *e)
{
    struct prompts *p = arg;

    log_warn("the log of decisions cannot be read", LOG_E(e));
    p->stuck = true;
}

void prompts_tick(struct prompts *p)
{
    if (p && p->stuck && !p->closed) {
        p->stuck = false;
        subscription_resume(p->sub);
    }
}

/* --- life --- */

static void watch_all(struct prompts *p)
{
    struct sandbox_info s;

    for (struct sandbox *b = sandbox_next(p->c.sandboxes, &principal_system, STR("")); b;
         b = sandbox_next(p->c.sandboxes, &principal_system, str_of(s.id))) {
        struct exec_info i;

        sandbox_info(b, &s);
        for (struct exec *x = exec_next(b, STR("")); x; x = exec_next(b, str_of(i.id))) {
            exec_info(x, &i);
            (void)watch_new(p, x);
        }
    }
}

/* As prompt_mark, of a prompt from before the restart. */
static uint64_t row_mark(const struct approval *a, bool asked)
{
    struct prompt p = {.text = a->question};
    AUTO(json_decref) json_t *all = NULL;
    struct err e = {0};

    if (asked || json_read(a->alternatives, &all, &e) < 0)
        return 0;
    for (size_t i = 0; i < json_array_size(all) && i < PROMPT_OPTIONS; i++)
        p.options[p.option_count++] = str_of(json_string_value(json_array_get(all, i)));
    return prompt_mark(&p);
}

static void take_open(struct prompts *p, const struct approval *a)
{
    struct watch *w = map_get(&p->watches, a->exec);
    AUTO(json_decref) json_t *o = NULL;
    char id[ID_SIZE];
    struct err e = {0};

    if (!w) {
        (void)snprintf(id, sizeof id, STR_FMT, STR_ARG(a->exec));
        close_prompt(p, id, ENDED);
        return;
    }
    if (json_read(a->arguments, &o, &e) == 0)
        w->asked = json_is_true(json_object_get(o, "asked"));
    w->mark = row_mark(a, w->asked);
    w->state = PENDING;
    (void)snprintf(w->approval, sizeof w->approval, STR_FMT, STR_ARG(a->id));
    if (a->owed)
        take_answer(w, a);
}

int prompts_open(const struct prompts_config *c, struct prompts **ret, struct err *e)
{
    struct prompts *p = xzalloc(sizeof *p);
    struct job *j;

    p->refs = 1;
    p->c = *c;
    j = job_new(p, "");
    if (store_now(c->store, open_work, j, e) < 0) {
        job_free(j);
        prompts_drop(p);
        return err_wrap(e, "read the prompts of sessions");
    }
    p->sub = events_subscribe(c->events,
                              &(struct event_filter){.since_seq = events_head(c->events, NULL)},
                              on_event, on_stuck, p);
    watch_all(p);
    for (size_t i = 0; i < j->open.n; i++)
        take_open(p, &j->open.v[i]);
    job_free(j);
    *ret = p;
    return 0;
}

void prompts_close(struct prompts *p)
{
    size_t at = 0;
    struct str key;
    void *w;

    if (!p || p->closed)
        return;
    p->closed = true;
    subscription_end(TAKE(p->sub));
    while (map_next(&p->watches, &at, &key, &w)) {
        watch_free(w);
        at = 0;
    }
}

struct prompts *prompts_unref(struct prompts *p)
{
    if (p)
        prompts_drop(p);
    return NULL;
}
