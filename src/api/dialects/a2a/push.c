/* push: tells receivers of clients about a task's states, signed. */
#include "api/dialects/a2a/a2a.h"

#include "api/team/webhooks.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "core/store.h"
#include "core/task/manifest.h"
#include "net/client.h"

#include <stdio.h>

#define PER_TASK 8
#define ALL_MAX 10000
#define OPEN_MAX 32 /* requests at a time */
#define ATTEMPTS 8  /* with pauses of 1, 2, 4 … 64 s */
#define PAUSE_MS 1000
#define TEXT_MAX 2048

/* A row of task_pushes remembers the last state that was delivered or given up, so that none is
 * lost by a restart and nothing waits in memory; states that pass quickly may be left out, the last
 * one never is. */
struct push {
    struct list link;
    struct a2a *all; /* NULL: removed, and freed with its request */
    char id[TASK_ID_SIZE], task[TASK_ID_SIZE], instance[ID_SIZE]; /* id: unique in its task */
    char *url, *token, *scheme, *credentials;
    char *told;   /* the state that was delivered last */
    char *trying; /* the one under way */
    int form;     /* enum a2a_form */
    int attempts, status;
    int64_t at_ms; /* of the next attempt, clock_mono_ms */
    struct client *client;
};

static void push_free(struct push *p)
{
    char *const owned[] = {p->url, p->token, p->scheme, p->credentials, p->told, p->trying};

    for (size_t i = 0; i < ARRAY_LEN(owned); i++)
        mem_free(owned[i]);
    mem_free(p);
}

static void push_end(struct push *p)
{
    list_unlink(&p->link);
    p->all->push_count--;
    p->all = NULL;
    if (p->client)
        client_cancel(p->client); /* closed frees it */
    else
        push_free(p);
}

/* --- rows --- */

enum change { ADD, TELL, REMOVE };
struct change_job { /* a copy for the store's thread */
    enum change what;
    char id[TASK_ID_SIZE], task[TASK_ID_SIZE], instance[ID_SIZE]; /* id: unique in its task */
    char *url, *token, *scheme, *credentials, *told;
    int form;
};

static int change_work(struct store_tx *tx, void *arg, struct err *e)
{
    const struct change_job *j = arg;
    int64_t r;

    if (j->what == ADD)
        r = tx_run(
            tx,
            "INSERT INTO task_pushes (id, task, instance, form, url, token, scheme, "
            "credentials, told) VALUES (:id, :task, :instance, :form, :url, :token, "
            ":scheme, :credentials, '') ON CONFLICT (task, id) DO UPDATE SET url = :url, token = "
            ":token, scheme = :scheme, credentials = :credentials, told = ''",
            PARAMS(P_C("id", j->id), P_C("task", j->task), P_C("instance", j->instance),
                   P_INT("form", j->form), P_C("url", j->url), P_C("token", j->token),
                   P_C("scheme", j->scheme), P_C("credentials", j->credentials)),
            e);
    else if (j->what == TELL)
        r = tx_run(tx, "UPDATE task_pushes SET told = :told WHERE task = :task AND id = :id",
                   PARAMS(P_C("task", j->task), P_C("id", j->id), P_C("told", j->told)), e);
    else
        r = tx_run(tx, "DELETE FROM task_pushes WHERE task = :task AND id = :id",
                   PARAMS(P_C("task", j->task), P_C("id", j->id)), e);
    return r < 0 ? -1 : 0;
}

static void change_free(struct change_job *j)
{
    char *const owned[] = {j->url, j->token, j->scheme, j->credentials, j->told};

    for (size_t i = 0; i < ARRAY_LEN(owned); i++)
        mem_free(owned[i]);
    mem_free(j);
}

static void changed(void *arg, const struct err *e)
{
    struct change_job *j = arg;

    if (e->code != ERR_NONE)
        log_warn("a push configuration was not stored", LOG_C("id", j->id), LOG_E(e));
    change_free(j);
}

static struct change_job *change_of(const struct push *p, enum change what)
{
    struct change_job *j = xzalloc(sizeof *j);

    *j = (struct change_job){.what = what,
                             .url = xstrdup(p->url),
                             .token = xstrdup(p->token),
                             .scheme = xstrdup(p->scheme),
                             .credentials = xstrdup(p->credentials),
                             .told = xstrdup(p->told),
                             .form = p->form};
    memcpy(j->id, p->id, sizeof j->id);
    memcpy(j->task, p->task, sizeof j->task);
    memcpy(j->instance, p->instance, sizeof j->instance);
    return j;
}

static void store_change(const struct push *p, enum change what)
{
    store_write(p->all->api->c.store, what == TELL ? STORE_RELAXED : STORE_DURABLE, change_work,
                changed, change_of(p, what));
}

static char *text_at(const struct store_rows *rows, int column)
{
    return str_dup(rows_text(rows, column));
}

static int load_work(struct store_tx *tx, void *arg, struct err *e)
{
    struct a2a *a = arg;
    struct store_rows *rows;
    int r;

    if (tx_query(tx,
                 "SELECT id, task, instance, form, url, token, scheme, credentials, told FROM "
                 "task_pushes ORDER BY task, id",
                 NO_PARAMS, &rows, e) < 0)
        return -1;
    while ((r = rows_step(rows, e)) > 0) {
        struct push *p = xzalloc(sizeof *p);

        p->all = a;
        (void)snprintf(p->id, sizeof p->id, STR_FMT, STR_ARG(rows_text(rows, 0)));
        (void)snprintf(p->task, sizeof p->task, STR_FMT, STR_ARG(rows_text(rows, 1)));
        (void)snprintf(p->instance, sizeof p->instance, STR_FMT, STR_ARG(rows_text(rows, 2)));
        p->form = rows_int(rows, 3) == A2A_SEED ? A2A_SEED : A2A_REST;
        p->url = text_at(rows, 4);
        p->token = text_at(rows, 5);
        p->scheme = text_at(rows, 6);
        p->credentials = text_at(rows, 7);
        p->told = text_at(rows, 8);
        p->trying = xstrdup("");
        list_push(&a->pushes, &p->link);
        a->push_count++;
    }
    rows_end(rows);
    return r;
}

void a2a_push_open(struct a2a *a)
{
    struct err e = {0};

    if (store_now(a->api->c.store, load_work, a, &e) < 0)
        log_error("push configurations could not be read", LOG_E(&e));
}

void a2a_push_close(struct a2a *a)
{
    LIST_EACH (&a->pushes, node)
        push_end(LIST_ENTRY(node, struct push, link));
}

/* --- deliveries --- */

static void set(char **text, const char *to)
{
    mem_free(*text);
    *text = xstrdup(to);
}

static void attempt_ended(struct push *p, bool ok, const char *why)
{
    bool dead = !ok && p->attempts >= ATTEMPTS;

    if (!ok && !dead) {
        p->at_ms = clock_mono_ms() + (PAUSE_MS << (p->attempts - 1));
        return;
    }
    if (dead)
        log_warn("a push notification was given up", LOG_C("task", p->task), LOG_C("error", why));
    set(&p->told, p->trying);
    p->attempts = 0;
    p->at_ms = 0;
    store_change(p, TELL);
}

static void on_head(struct client *c, int status, const struct http_header *h, size_t count)
{
    (void)h, (void)count;
    ((struct push *)client_arg(c))->status = status;
}

static void on_body(struct client *c, struct str part)
{
    client_consume(c, part.n); /* what a receiver says does not matter */
}

static void on_closed(struct client *c, const struct err *e)
{
    struct push *p = client_arg(c);
    char why[64];

    p->client = NULL;
    if (!p->all) {
        push_free(p);
        return;
    }
    (void)snprintf(why, sizeof why, "the receiver replied %d", p->status);
    attempt_ended(p, p->status >= 200 && p->status < 300, p->status ? why : e->msg);
}

static void body_of(const struct push *p, const struct task *t, struct buf *to)
{
    struct a2a_call c = {.form = (enum a2a_form)p->form};
    struct jw w = {.to = to};

    memcpy(c.instance, p->instance, sizeof c.instance);
    if (c.form != A2A_SEED) {
        jw_object(&w);
        jw_key(&w, "task");
    }
    a2a_write_task(&w, &c, t, NULL);
    if (c.form != A2A_SEED)
        jw_object_end(&w);
}

static void attempt(struct push *p, const struct task *t)
{
    static const struct client_ops ops = {.head = on_head, .body = on_body, .closed = on_closed};
    AUTO(buf_done) struct buf body = {0}, signature = {0}, authorization = {0};
    struct http_header h[6];
    size_t n = 0;
    struct err e = {0};

    body_of(p, t, &body);
    p->attempts++;
    p->status = 0;
    if (a2a_sign(p->all, buf_str(&body), &signature, &e) < 0) {
        attempt_ended(p, false, e.msg);
        return;
    }
    h[n++] = (struct http_header){STR("content-type"), STR("application/json")};
    h[n++] = (struct http_header){STR("user-agent"), STR("holt-push")};
    h[n++] = (struct http_header){STR("a2a-signature"), buf_str(&signature)};
    if (p->token[0])
        h[n++] = (struct http_header){STR("x-a2a-notification-token"), str_of(p->token)};
    if (p->scheme[0]) {
        buf_printf(&authorization, "%s %s", p->scheme, p->credentials);
        h[n++] = (struct http_header){STR("authorization"), buf_str(&authorization)};
    }
    if (webhooks_post(p->all->api,
                      &(struct webhook_post){.url = str_of(p->url),
                                             .headers = h,
                                             .header_count = n,
                                             .body = buf_str(&body),
                                             .ops = &ops,
                                             .arg = p},
                      &p->client, &e) < 0)
        attempt_ended(p, false, e.msg);
}

/* A task's receiver has the rights of its owner: none, once the token was revoked. */
static bool is_revoked(const struct a2a *a, struct str owner)
{
    return str_starts(owner, STR("token/")) &&
           !identity_get(a->api->c.identity, str_skip(owner, strlen("token/")));
}

static void consider(struct a2a *a, struct push *p, size_t *open)
{
    const struct a2a_call seed = {.form = A2A_SEED};
    struct err e = {0};
    struct task *t = task_find(a->api->c.tasks, &principal_system, false, str_of(p->task), &e);
    struct task_info i;
    const char *state;

    if (t)
        task_info(t, &i);
    if (!t || is_revoked(a, i.owner)) {
        store_change(p, REMOVE);
        push_end(p);
        return;
    }
    state = a2a_state(&seed, i.state);
    if (p->client) {
        (*open)++;
        return;
    }
    if (strcmp(p->told, state) == 0 || *open >= OPEN_MAX)
        return;
    if (strcmp(p->trying, state) != 0) {
        set(&p->trying, state);
        p->attempts = 0;
        p->at_ms = 0;
    }
    if (p->at_ms > clock_mono_ms())
        return;
    (*open)++;
    attempt(p, t);
}

void a2a_push_tick(struct a2a *a)
{
    size_t open = 0;

    LIST_EACH (&a->pushes, node)
        consider(a, LIST_ENTRY(node, struct push, link), &open);
}

/* --- configurations --- */

/* agentic-sandbox's form may wrap it, as version 0.3 did. */
static const json_t *unwrap(const json_t *o)
{
    const json_t *inner = json_object_get(o, "pushNotificationConfig");

    return json_is_object(inner) ? inner : o;
}

static bool is_header_text(struct str s)
{
    for (size_t i = 0; i < s.n; i++)
        if ((unsigned char)s.p[i] < 0x20 || (unsigned char)s.p[i] >= 0x7f)
            return false;
    return s.n <= TEXT_MAX;
}

bool a2a_push_check(struct a2a_call *c, const json_t *config)
{
    const json_t *o = unwrap(config), *how = json_object_get(o, "authentication");
    struct str url = a2a_text(o, "url"), id = a2a_text(o, "id");
    struct err e = {0};

    if (url.n == 0 || !is_header_text(url) || !is_header_text(a2a_text(o, "token")) ||
        !is_header_text(a2a_text(how, "scheme")) || !is_header_text(a2a_text(how, "credentials")) ||
        (id.n > 0 && !manifest_id_fits(id))) {
        a2a_fail(c, A2A_BAD_PARAMS,
                 "a push configuration has 'url', and may have 'token' and 'authentication' with "
                 "'scheme' and 'credentials'");
        return false;
    }
    if (a2a_of(c->r->api)->push_count >= ALL_MAX) {
        (void)err_set(&e, ERR_LIMIT, 0, "there are %d push configurations already", ALL_MAX);
        (void)err_limit_fixed(&e, ALL_MAX, "remove those that are not needed any more");
        a2a_err(c, &e);
        return false;
    }
    if (webhooks_check_url(c->r->api, url, &e) == 0)
        return true;
    a2a_err(c, &e);
    return false;
}

static struct push *find(struct a2a *a, const char *task, struct str id, size_t *ret_count)
{
    struct push *found = NULL;

    *ret_count = 0;
    LIST_EACH (&a->pushes, node) {
        struct push *p = LIST_ENTRY(node, struct push, link);

        if (strcmp(p->task, task) != 0)
            continue;
        (*ret_count)++;
        if (str_eq_c(id, p->id))
            found = p;
    }
    return found;
}

struct a2a_receiver a2a_receiver_of(const struct a2a_call *c)
{
    struct a2a_receiver to = {.all = a2a_of(c->r->api), .form = c->form};

    memcpy(to.instance, c->instance, sizeof to.instance);
    return to;
}

static struct push *push_new(const struct a2a_receiver *to, const char *task, const json_t *config)
{
    const json_t *o = unwrap(config), *how = json_object_get(o, "authentication");
    struct push *p = xzalloc(sizeof *p);
    struct str id = a2a_text(o, "id");
    char made[ID_SIZE];

    p->all = to->all;
    id_make("pn", made);
    (void)snprintf(p->id, sizeof p->id, STR_FMT, STR_ARG(id.n > 0 ? id : str_of(made)));
    (void)snprintf(p->task, sizeof p->task, "%s", task);
    memcpy(p->instance, to->instance, sizeof p->instance);
    p->form = to->form == A2A_SEED ? A2A_SEED : A2A_REST;
    p->url = str_dup(a2a_text(o, "url"));
    p->token = str_dup(a2a_text(o, "token"));
    p->scheme = str_dup(a2a_text(how, "scheme"));
    p->credentials = str_dup(a2a_text(how, "credentials"));
    p->told = xstrdup("");
    p->trying = xstrdup("");
    return p;
}

/* Instead of an earlier one of this id. */
void a2a_push_begin(struct push *p)
{
    size_t n;
    struct push *old = find(p->all, p->task, str_of(p->id), &n);

    if (old)
        push_end(old);
    list_push(&p->all->pushes, &p->link);
    p->all->push_count++;
}

void a2a_push_drop(struct push *p)
{
    if (p)
        push_free(p);
}

static void hook_ready(void *arg, const void *object)
{
    (void)arg, (void)object;
}

static void hook_free(void *arg)
{
    change_free(arg);
}

const struct tx_hook a2a_push_hook = {.ready = hook_ready, .write = change_work, .free = hook_free};

struct push *a2a_push_new(const struct a2a_receiver *to, const char *task, const json_t *config,
                          void **ret_hook_arg)
{
    struct push *p = push_new(to, task, config);

    *ret_hook_arg = change_of(p, ADD);
    return p;
}

static void write_push(struct jw *w, const struct push *p)
{
    jw_object(w);
    jw_kc(w, "id", p->id);
    jw_kc(w, "taskId", p->task);
    jw_kc(w, "url", p->url);
    if (p->token[0])
        jw_kc(w, "token", p->token);
    if (p->scheme[0]) {
        jw_key(w, "authentication");
        jw_object(w);
        jw_kc(w, "scheme", p->scheme);
        jw_object_end(w);
    }
    jw_object_end(w);
}

/* --- calls --- */

struct push_job {
    struct waiter waiter;
    struct a2a_call *c;
    struct change_job *row;
};

static int push_work(struct store_tx *tx, void *arg, struct err *e)
{
    const struct push_job *j = arg;

    return change_work(tx, j->row, e);
}

static void push_stored(void *arg, const struct err *e)
{
    struct push_job *j = arg;
    struct request *r = waiter_end(&j->waiter);
    struct a2a_call *c = j->c;
    struct jw w;
    size_t n;

    if (r && e->code != ERR_NONE) {
        a2a_err(c, e);
    } else if (r && j->row->what == ADD) {
        struct push *p = find(a2a_of(r->api), j->row->task, str_of(j->row->id), &n);

        w = a2a_open(c);
        if (p)
            write_push(&w, p);
        else
            jw_null(&w);
        a2a_send(c, &w, c->form == A2A_SEED ? 201 : 200);
    } else if (r && c->form == A2A_SEED) {
        request_send(r, 204, NULL, STR(""));
    } else if (r) {
        w = a2a_open(c);
        jw_raw(&w, STR("{}"));
        a2a_send(c, &w, 200);
    }
    change_free(j->row);
    mem_free(j);
}

static void store_push(struct a2a_call *c, const struct push *p, enum change what)
{
    struct push_job *j = xzalloc(sizeof *j);

    j->c = c;
    j->row = change_of(p, what);
    request_wait(c->r, &j->waiter);
    store_write(c->r->api->c.store, STORE_DURABLE, push_work, push_stored, j);
}

void a2a_push_create(struct a2a_call *c)
{
    struct task *t = a2a_task(c, true);
    struct a2a_receiver to = a2a_receiver_of(c);
    struct task_info i;
    struct push *p;
    size_t count;

    if (!t || !a2a_push_check(c, c->params))
        return;
    task_info(t, &i);
    if (!find(a2a_of(c->r->api), i.id, a2a_text(unwrap(c->params), "id"), &count) &&
        count >= PER_TASK) {
        a2a_fail(c, A2A_BAD_PARAMS, "task '%s' has %d push configurations already", i.id, PER_TASK);
        return;
    }
    p = push_new(&to, i.id, c->params);
    a2a_push_begin(p);
    store_push(c, p, ADD);
}

/* The configuration of the call; NULL: the reply is sent. */
static struct push *push_of(struct a2a_call *c)
{
    struct task *t = a2a_task(c, true);
    struct task_info i;
    struct push *p;
    size_t n;

    if (!t)
        return NULL;
    task_info(t, &i);
    p = find(a2a_of(c->r->api), i.id, c->item, &n);
    if (!p)
        a2a_fail(c, A2A_PUSH_NOT_FOUND, "task '%s' has no push configuration '" STR_FMT "'", i.id,
                 (int)size_min(c->item.n, 64), c->item.n > 0 ? c->item.p : "");
    return p;
}

void a2a_push_get(struct a2a_call *c)
{
    const struct push *p = push_of(c);
    struct jw w;

    if (!p)
        return;
    w = a2a_open(c);
    write_push(&w, p);
    a2a_send(c, &w, 200);
}

void a2a_push_list(struct a2a_call *c)
{
    struct task *t = a2a_task(c, true);
    struct task_info i;
    struct jw w;

    if (!t)
        return;
    task_info(t, &i);
    w = a2a_open(c);
    jw_object(&w);
    jw_key(&w, "configs");
    jw_array(&w);
    LIST_EACH (&a2a_of(c->r->api)->pushes, node) {
        const struct push *p = LIST_ENTRY(node, struct push, link);

        if (strcmp(p->task, i.id) == 0)
            write_push(&w, p);
    }
    jw_array_end(&w);
    jw_object_end(&w);
    a2a_send(c, &w, 200);
}

void a2a_push_delete(struct a2a_call *c)
{
    struct push *p = push_of(c);

    if (!p)
        return;
    store_push(c, p, REMOVE);
    push_end(p);
}
