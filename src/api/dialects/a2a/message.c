/* message: a message becomes a task of its instance's sandbox. */
#include "api/dialects/a2a/a2a.h"

#include "api/share/sandbox.h"
#include "base/clock.h"
#include "base/enc.h"
#include "base/mem.h"
#include "proto/digest.h"

#include <stdio.h>

#define ID_MAX 256              /* bytes of a client's ids */
#define MESSAGE_MAX (96 * 1024) /* bytes of text: it is one variable of the command */
#define PARTS_MAX 64
#define WAIT_MS (30LL * 60 * 1000)

/* What a message runs: the sandbox's owner says it, in labels. */
#define LABEL_COMMAND "holt.a2a.command" /* one line for the shell */
#define LABEL_AGENT "holt.a2a.agent"     /* or a provider of tasks: claude, codex, … */
#define LABEL_TIMEOUT "holt.a2a.timeout"
/* Without them, as agentic-sandbox: the message is printed. */
#define COMMAND_DEFAULT "printf '%s\\n' \"$AIWG_A2A_MESSAGE\""

/* --- what was sent --- */

struct sending { /* outlives its request while the task is written */
    struct waiter waiter;
    struct a2a_call *c; /* as long as waiter.r is there */
    struct push *made;  /* of `push`; NULL: none */
    struct principal by;
    struct str message_id, context_id, text;
    const json_t *push; /* NULL: none */
    char id[TASK_ID_SIZE];
    bool idempotent, returns, streams;
};

static int read_parts(struct a2a_call *c, const json_t *parts, struct str *ret)
{
    AUTO(buf_done) struct buf text = {0};
    size_t texts = 0;

    if (!json_is_array(parts) || json_array_size(parts) > PARTS_MAX) {
        a2a_fail(c, A2A_BAD_PARAMS, "message.parts must be a list of at most %d parts", PARTS_MAX);
        return -1;
    }
    for (size_t i = 0; i < json_array_size(parts); i++) {
        const json_t *part = json_array_get(parts, i);

        if (!json_is_string(json_object_get(part, "text"))) {
            if (c->form == A2A_SEED)
                continue;
            a2a_fail(c, A2A_CONTENT_TYPE, "message.parts[%zu] is no text; text is taken", i);
            return -1;
        }
        if (texts++ > 0)
            buf_add_char(&text, '\n');
        buf_add_str(&text, a2a_text(part, "text"));
    }
    if (texts == 0) {
        a2a_fail(c, A2A_NO_TEXT, "the message has no part with a text");
        return -1;
    }
    if (buf_len(&text) > MESSAGE_MAX || memchr(buf_data(&text), 0, buf_len(&text))) {
        a2a_fail(c, A2A_BAD_PARAMS, "the text must have at most %d bytes, none of them 0",
                 MESSAGE_MAX);
        return -1;
    }
    *ret = arena_str(xchg_arena(c->r->x), buf_str(&text));
    return 0;
}

static int read_id(struct a2a_call *c, const json_t *m, const char *key, bool required,
                   struct str *ret)
{
    *ret = a2a_text(m, key);
    if ((!required || ret->n > 0) && ret->n <= ID_MAX && !memchr(ret->p, 0, ret->n) &&
        (!json_object_get(m, key) || json_is_string(json_object_get(m, key))))
        return 0;
    a2a_fail(c, A2A_BAD_PARAMS, "message.%s must be a text of %s%d bytes", key,
             required ? "1 to " : "at most ", ID_MAX);
    return -1;
}

static int read_message(struct sending *s)
{
    struct a2a_call *c = s->c;
    const json_t *m = json_object_get(c->params, "message");
    const json_t *configuration = json_object_get(c->params, "configuration");
    struct str role = a2a_text(m, "role");

    if (!json_is_object(m)) {
        a2a_fail(c, A2A_BAD_PARAMS, "the field 'message' must be an object");
        return -1;
    }
    if (!str_eq_c(role, c->form == A2A_SEED ? "user" : "ROLE_USER")) {
        a2a_fail(c, A2A_BAD_PARAMS, "message.role must be %s",
                 c->form == A2A_SEED ? "user" : "ROLE_USER");
        return -1;
    }
    if (read_id(c, m, "messageId", true, &s->message_id) < 0 ||
        read_id(c, m, "contextId", false, &s->context_id) < 0 ||
        read_parts(c, json_object_get(m, "parts"), &s->text) < 0)
        return -1;
    if (a2a_text(m, "taskId").n > 0) {
        c->task = a2a_text(m, "taskId");
        if (a2a_task(c, true))
            a2a_fail(c, A2A_UNSUPPORTED,
                     "a task takes one message: send the next one without a taskId");
        return -1;
    }
    s->push = json_object_get(configuration, "taskPushNotificationConfig");
    if (!s->push)
        s->push = json_object_get(configuration, "pushNotificationConfig");
    s->returns = json_is_true(json_object_get(configuration, "returnImmediately"));
    return s->push && !a2a_push_check(c, s->push) ? -1 : 0;
}

/* --- the task --- */

static struct str label_of(const struct sandbox_info *i, const char *key)
{
    for (size_t k = 0; k < i->label_count; k++)
        if (str_eq_c(i->labels[k].key, key))
            return i->labels[k].value;
    return STR("");
}

static json_t *text_of(struct str s)
{
    return json_stringn(s.p ? s.p : "", s.n);
}

static json_t *agent_of(const struct sending *s, const struct sandbox_info *i)
{
    struct str command = label_of(i, LABEL_COMMAND), provider = label_of(i, LABEL_AGENT);
    json_t *agent = json_object();

    json_object_set_new(agent, "prompt", text_of(s->text));
    if (command.n == 0 && provider.n > 0)
        json_object_set_new(agent, "provider", text_of(provider));
    else
        json_object_set_new(agent, "command",
                            text_of(command.n > 0 ? command : STR(COMMAND_DEFAULT)));
    json_object_set_new(agent, "env",
                        json_pack("{s:o,s:s,s:s,s:s}", "AIWG_A2A_MESSAGE", text_of(s->text),
                                  "AIWG_A2A_TASK_ID", s->id, "AIWG_A2A_INSTANCE_ID", i->id,
                                  "AIWG_MISSION_ID", s->id));
    return agent;
}

static json_t *manifest_of(const struct sending *s, const struct sandbox_info *i)
{
    struct str timeout = label_of(i, LABEL_TIMEOUT);
    json_t *m = json_pack(
        "{s:{s:s,s:s,s:{s:o,s:o}},s:{s:s}}", "metadata", "id", s->id, "name", "A2A message",
        "labels", "a2a.message", text_of(s->message_id), "a2a.context",
        text_of(s->context_id.n > 0 ? s->context_id : str_of(s->id)), "sandbox", "id", i->id);

    json_object_set_new(m, "agent", agent_of(s, i));
    if (timeout.n > 0)
        json_object_set_new(m, "lifecycle", json_pack("{s:o}", "timeout", text_of(timeout)));
    return m;
}

/* The same caller, instance and messageId: the same task. */
static void make_id(struct sending *s)
{
    AUTO(buf_done) struct buf text = {0};
    unsigned char hash[SHA256_SIZE];
    char hex[33];

    if (!s->idempotent) {
        id_make("tr", s->id);
        return;
    }
    buf_add_c(&text, principal_owner(&s->by));
    buf_add(&text, "", 1);
    buf_add_c(&text, s->c->instance);
    buf_add(&text, "", 1);
    buf_add_str(&text, s->message_id);
    sha256(buf_str(&text), hash);
    enc_hex(hash, 16, hex);
    (void)snprintf(s->id, sizeof s->id, "tr_%s", hex);
}

/* --- waiting for the end --- */

struct a2a_wait {
    struct list link;
    struct waiter waiter;
    struct task_watch watch;
    struct a2a_call *c;
    struct task *t;
    int64_t until_ms;
};

static void wait_free(struct a2a_wait *w)
{
    task_unwatch(&w->watch);
    list_unlink(&w->link);
    mem_free(w);
}

static void wait_gone(struct waiter *waiter)
{
    wait_free(CONTAINER_OF(waiter, struct a2a_wait, waiter));
}

static void wait_check(struct a2a_wait *w)
{
    struct a2a_call *c = w->c;
    struct task *t = w->t;
    struct task_info i;

    task_info(t, &i);
    if (!task_state_is_end(i.state) && clock_mono_ms() < w->until_ms)
        return;
    (void)waiter_end(&w->waiter);
    wait_free(w);
    a2a_task_reply(c, t, 200);
}

static void wait_changed(struct task_watch *watch)
{
    struct a2a_wait *w = CONTAINER_OF(watch, struct a2a_wait, watch);

    wait_check(w);
}

void a2a_waits_tick(struct a2a *a)
{
    LIST_EACH (&a->waits, node)
        wait_check(LIST_ENTRY(node, struct a2a_wait, link));
}

/* holtd ends: the task goes on, its client hears how it stands. */
void a2a_waits_end(struct a2a *a)
{
    LIST_EACH (&a->waits, node) {
        struct a2a_wait *w = LIST_ENTRY(node, struct a2a_wait, link);

        w->until_ms = 0;
        wait_check(w);
    }
}

static void wait_begin(struct a2a_call *c, struct task *t)
{
    struct a2a_wait *w = xzalloc(sizeof *w);

    *w = (struct a2a_wait){.c = c, .t = t, .until_ms = clock_mono_ms() + WAIT_MS};
    w->waiter.gone = wait_gone;
    w->watch.changed = wait_changed;
    list_push(&a2a_of(c->r->api)->waits, &w->link);
    task_watch(t, &w->watch);
    request_wait(c->r, &w->waiter);
    wait_check(w);
}

/* --- send --- */

static void reply(struct sending *s, struct task *t, bool replayed)
{
    struct a2a_call *c = s->c;
    struct xchg *x = c->r->x;

    if (replayed)
        xchg_add_header(x, "idempotent-replayed", STR("true"));
    if (s->streams) {
        a2a_stream_begin(c, t);
    } else if (c->form == A2A_SEED) {
        xchg_add_header(x, "location",
                        str_of(arena_printf(xchg_arena(x), "/agents/" STR_FMT "/v1/tasks/%s",
                                            STR_ARG(c->as), s->id)));
        a2a_task_reply(c, t, 202);
    } else if (s->returns) {
        a2a_task_reply(c, t, 200);
    } else {
        wait_begin(c, t);
    }
}

static void submitted(void *arg, struct task *t, const struct err *e)
{
    struct sending *s = arg;
    struct request *r = waiter_end(&s->waiter);

    if (t && s->made)
        a2a_push_begin(TAKE(s->made));
    if (r && t)
        reply(s, t, false);
    else if (r)
        a2a_err(s->c, e);
    a2a_push_drop(s->made);
    mem_free(s);
}

static void submit(struct sending *s, const struct sandbox_info *i)
{
    AUTO(json_decref) json_t *manifest = manifest_of(s, i);
    struct a2a_call *c = s->c;
    struct a2a_receiver to = a2a_receiver_of(c);
    struct task_spec spec = {.manifest = manifest};
    struct err e = {0};

    if (s->push) {
        s->made = a2a_push_new(&to, s->id, s->push, &spec.tx_hook_arg);
        spec.tx_hook = &a2a_push_hook;
    }
    request_wait(c->r, &s->waiter);
    if (task_submit(c->r->api->c.tasks, &spec, &(struct task_call){&s->by, submitted, s}, &e) == 0)
        return;
    (void)waiter_end(&s->waiter);
    a2a_push_drop(s->made);
    if (e.code == ERR_CONFLICT && s->idempotent)
        a2a_fail(c, A2A_IN_PROGRESS, "the same message is being taken: ask again");
    else
        a2a_err(c, &e);
    mem_free(s);
}

/* The task that the same message has made; false: there is none. */
static bool replay(struct sending *s)
{
    struct err e = {0};
    struct task *t = s->idempotent
                         ? task_find(s->c->r->api->c.tasks, &s->c->r->who, false, str_of(s->id), &e)
                         : NULL;

    if (!t)
        return false;
    reply(s, t, true);
    mem_free(s);
    return true;
}

static void message(struct a2a_call *c, bool streams)
{
    struct sandbox *box = a2a_sandbox(c);
    struct sending *s;
    struct sandbox_info i;

    if (!box)
        return;
    if (c->form == A2A_SEED && !a2a_activated(c, A2A_EXTENSION_RUNTIME)) {
        a2a_fail(c, A2A_NO_EXTENSION, "the header A2A-Extensions must have " A2A_EXTENSION_RUNTIME);
        return;
    }
    sandbox_info(box, &i);
    s = xzalloc(sizeof *s);
    *s = (struct sending){.c = c,
                          .by = request_who(c->r),
                          .streams = streams,
                          .idempotent = a2a_activated(c, A2A_EXTENSION_IDEMPOTENCY)};
    if (read_message(s) < 0) {
        mem_free(s);
        return;
    }
    make_id(s);
    if (s->idempotent || c->form == A2A_SEED)
        xchg_add_header(c->r->x, "a2a-extensions",
                        http_req_header(xchg_req(c->r->x), "a2a-extensions"));
    if (replay(s))
        return;
    if (i.state != SANDBOX_RUNNING || i.destroying) {
        a2a_fail(c, A2A_NOT_READY, "instance '" STR_FMT "' does not run", STR_ARG(c->as));
        mem_free(s);
        return;
    }
    submit(s, &i);
}

void a2a_message_send(struct a2a_call *c)
{
    message(c, false);
}

void a2a_message_stream(struct a2a_call *c)
{
    message(c, true);
}
