/* verb: sandboxctl: reads the command line, sends the request of its row, prints the reply. */
#include "cli/verbs.h"

#include "base/clock.h"
#include "base/enc.h"
#include "base/mem.h"
#include "cli/dialects/agentic/sandboxctl.h"
#include "cli/term.h"
#include "conf/conf.h"

#include <inttypes.h>
#include <poll.h>
#include <unistd.h>

#define AGAIN_MS 200
#define POLL_MS 500
#define WAIT_MS (60 * 60 * 1000)

/* --- requests --- */

/* The text of an error in any form of this interface. */
static void take_message(struct str body, struct err *e)
{
    AUTO(json_decref) json_t *v = NULL;
    const json_t *text;
    struct err ignored;

    if (json_read_lax(body, &v, &ignored) < 0)
        return;
    text = json_object_get(v, "error");
    if (json_is_object(text))
        text = json_object_get(text, "message");
    if (!text)
        text = json_object_get(v, "detail");
    if (json_is_string(text))
        (void)snprintf(e->msg, sizeof e->msg, "%s", json_string_value(text));
}

static int ask_once(struct ctl *x, const struct ctl_request *rq, struct reply *ret, struct err *e)
{
    char *text = rq->body ? json_dumps(rq->body, JSON_COMPACT) : NULL;
    int r = request_run(&x->t,
                        &(struct request){.method = rq->method,
                                          .target = rq->target,
                                          .body = text ? str_of(text) : rq->bytes,
                                          .accept = rq->accept,
                                          .type = rq->type,
                                          .part = rq->part,
                                          .arg = rq->arg,
                                          .timeout_ms = x->c->timeout_ms},
                        ret, e);

    free(text); /* allocated by jansson */
    if (ret->status >= 400) {
        *e = (struct err){.code = err_code_from_http(ret->status)};
        (void)snprintf(e->msg, sizeof e->msg, "the server answered with status %d", ret->status);
        take_message(buf_str(&ret->body), e);
        return -1;
    }
    return r;
}

int ctl_ask(struct ctl *x, const struct ctl_request *rq, json_t **ret, struct err *e)
{
    AUTO(reply_done) struct reply reply = {0};
    int r = ask_once(x, rq, &reply, e);

    if (r < 0 && reply.status >= 500 && strcmp(rq->method, "GET") == 0) {
        (void)poll(NULL, 0, AGAIN_MS);
        buf_done(&reply.body);
        *e = (struct err){0};
        r = ask_once(x, rq, &reply, e);
    }
    *ret = NULL;
    if (r < 0 || buf_len(&reply.body) == 0)
        return r;
    return reply_json(&reply, ret, e) < 0 ? -1 : r;
}

int ctl_get(struct ctl *x, const char *target, json_t **ret, struct err *e)
{
    if (ctl_ask(x, &(struct ctl_request){.method = "GET", .target = target}, ret, e) < 0)
        return -1;
    return *ret ? 0 : err_set(e, ERR_UNAVAILABLE, 0, "the reply is empty");
}

int ctl_status(const struct err *e)
{
    int http = err_table[e->code].http;

    if (e->code == ERR_NONE)
        return 0;
    if (e->code == ERR_TIMEOUT || http == 408 || http == 504)
        return 5;
    return http == 404 ? 2 : http == 409 ? 3 : http == 401 || http == 403 ? 4 : 1;
}

int ctl_wait(struct ctl *x, const char *operation, int64_t limit_ms, struct err *e)
{
    AUTO(buf_done) struct buf target = {0};
    int64_t until = clock_mono_ms() + limit_ms;

    buf_add_c(&target, "/api/v1/operations/");
    enc_percent(&target, str_of(operation));
    do {
        AUTO(json_decref) json_t *o = NULL;
        const char *status;

        if (ctl_get(x, buf_cstr(&target), &o, e) < 0)
            return -1;
        status = args_str(o, "status");
        if (status && strcmp(status, "completed") == 0) {
            ctl_show(x, &(struct ctl_verb){0}, o);
            return 0;
        }
        if (status && strcmp(status, "failed") == 0)
            return err_set(e, ERR_INTERNAL, 0, "%s",
                           args_str(o, "error") ? args_str(o, "error") : "the operation failed");
        (void)poll(NULL, 0, POLL_MS);
    } while (clock_mono_ms() < until);
    return err_set(e, ERR_TIMEOUT, 0, "operation '%s' has not ended", operation);
}

/* --- the command line --- */

const char *ctl_text(const struct ctl_call *k, const char *flag)
{
    return json_string_value(json_object_get(k->flags, flag));
}

bool ctl_is(const struct ctl_call *k, const char *flag)
{
    return json_is_true(json_object_get(k->flags, flag));
}

struct words {
    char **v;
    size_t n, at;
};

struct parse {
    struct ctl *x;
    struct ctl_call *k;
    struct words w;
    char path[64]; /* the words of the command so far */
    unsigned count;
};

/* "--x=V", "--x V", "-xV", "-x V"; NULL: the value is missing. */
static const char *take_value(struct parse *p, const char *attached)
{
    if (attached)
        return attached;
    return p->w.at < p->w.n ? p->w.v[p->w.at++] : NULL;
}

static int missing(const char *flag, struct err *e)
{
    return err_set(e, ERR_INVALID, 0, "%.40s needs a value", flag);
}

/* 1: it was one of the flags of every command. */
static int take_global(struct parse *p, struct str name, const char *value, struct err *e)
{
    const struct {
        const char *name;
        const char **text;
        bool *flag;
    } globals[] = {{"server", &p->x->server, NULL}, {"context", &p->x->context, NULL},
                   {"watch", &p->x->watch, NULL},   {"json", NULL, &p->x->json},
                   {"yes", NULL, &p->x->yes},       {"help", NULL, &p->x->help}};

    for (size_t i = 0; i < ARRAY_LEN(globals); i++) {
        if (!str_eq_c(name, globals[i].name))
            continue;
        if (globals[i].flag)
            *globals[i].flag = true;
        else if (!(*globals[i].text = take_value(p, value)))
            return missing(globals[i].name, e);
        return 1;
    }
    return 0;
}

static int set_flag(struct parse *p, const struct ctl_flag *f, const char *value, struct err *e)
{
    json_t *to = p->k->flags, *list;
    int64_t n;

    if (f->kind == CTL_BOOL) {
        json_object_set_new(to, f->name, json_boolean(!value || strcmp(value, "false") != 0));
        return 0;
    }
    value = take_value(p, value);
    if (!value)
        return missing(f->name, e);
    if (f->kind == CTL_NUMBER && str_parse_i64(str_of(value), &n) < 0)
        return err_set(e, ERR_INVALID, 0, "--%s: '%.40s' is no number", f->name, value);
    if (f->kind == CTL_LIST) {
        list = json_object_get(to, f->name);
        if (!list)
            json_object_set_new(to, f->name, list = json_array());
        json_array_append_new(list, json_string(value));
    } else {
        json_object_set_new(to, f->name,
                            f->kind == CTL_NUMBER ? json_integer(n) : json_string(value));
    }
    return 0;
}

static int take_flag(struct parse *p, const char *word, struct err *e)
{
    bool long_form = word[1] == '-';
    struct str value, name = str_cut(str_of(word + (long_form ? 2 : 1)), '=', &value);
    const char *attached = strchr(word, '=') ? value.p : NULL;
    int r;

    if (strcmp(word, "-h") == 0 || strcmp(word, "-y") == 0) {
        *(word[1] == 'h' ? &p->x->help : &p->x->yes) = true;
        return 0;
    }
    for (const struct ctl_flag *f = p->k->v ? p->k->v->flags : NULL; f && f->name; f++) {
        if (long_form ? str_eq_c(name, f->name) : f->letter && word[1] == f->letter)
            return set_flag(p, f, long_form ? attached : word[2] ? word + 2 : NULL, e);
    }
    r = long_form ? take_global(p, name, attached, e) : 0;
    if (r == 0)
        return err_set(e, ERR_INVALID, 0, "unknown flag '%.40s'", word);
    return r < 0 ? -1 : 0;
}

/* The next word of the command's own name. */
static int take_name(struct parse *p, const char *word, struct err *e)
{
    size_t n = strlen(p->path);
    bool open = false;

    (void)snprintf(p->path + n, sizeof p->path - n, "%s%.40s", n ? " " : "", word);
    n = strlen(p->path);
    for (size_t i = 0; i < ctl_verb_count; i++) {
        const char *path = ctl_verbs[i].path;

        if (strcmp(path, p->path) == 0)
            p->k->v = &ctl_verbs[i];
        open = open || (strncmp(path, p->path, n) == 0 && path[n] == ' ');
    }
    if (p->k->v || open)
        return 0;
    return err_set(e, ERR_INVALID, 0, "there is no command '%s'; --help lists them", p->path);
}

static int take_word(struct parse *p, const char *word, struct err *e)
{
    const struct ctl_verb *v = p->k->v;

    if (!v)
        return take_name(p, word, e);
    if (p->count == v->words)
        return err_set(e, ERR_INVALID, 0, "'%.40s' is one word too many", word);
    p->k->words[p->count++] = word;
    return 0;
}

static void take_rest(struct parse *p)
{
    while (p->w.at < p->w.n)
        json_array_append_new(p->k->rest, json_string(p->w.v[p->w.at++]));
}

static int read_line(struct parse *p, struct err *e)
{
    while (p->w.at < p->w.n) {
        const struct ctl_verb *v = p->k->v;
        const char *word = p->w.v[p->w.at];
        bool flag = word[0] == '-' && word[1];

        if (v && v->rest && strcmp(word, "--") == 0) {
            p->w.at++;
            take_rest(p);
        } else if (v && v->command && p->count == v->words && !flag) {
            take_rest(p);
        } else {
            p->w.at++;
            if ((flag ? take_flag(p, word, e) : take_word(p, word, e)) < 0)
                return -1;
        }
    }
    return 0;
}

static int check_line(const struct parse *p, struct err *e)
{
    const struct ctl_verb *v = p->k->v;

    if (!v)
        return err_set(e, ERR_INVALID, 0, "'%s' needs a verb; --help lists them", p->path);
    if (p->count + v->optional < v->words || (v->command && json_array_size(p->k->rest) == 0))
        return err_set(e, ERR_INVALID, 0, "usage: sandboxctl %s %s", v->path, v->usage);
    if (p->x->watch && !v->columns)
        return err_set(e, ERR_INVALID, 0, "--watch is for lists");
    for (const struct ctl_flag *f = v->flags; f && f->name; f++) {
        int64_t n = 0;

        if (!f->preset || json_object_get(p->k->flags, f->name))
            continue;
        (void)!str_parse_i64(str_of(f->preset), &n);
        json_object_set_new(p->k->flags, f->name,
                            f->kind == CTL_NUMBER ? json_integer(n) : json_string(f->preset));
    }
    return 0;
}

/* --- the request of a row --- */

static void add_query(struct buf *to, const char *key, const json_t *v, bool *any)
{
    buf_add_c(to, *any ? "&" : "?");
    *any = true;
    buf_printf(to, "%s=", key);
    if (json_is_string(v))
        enc_percent(to, str_of(json_string_value(v)));
    else if (json_is_integer(v))
        buf_printf(to, "%" PRId64, (int64_t)json_integer_value(v));
    else
        buf_add_c(to, json_is_true(v) ? "true" : "false");
}

void ctl_target(const struct ctl_call *k, struct buf *to)
{
    bool any = false;
    size_t word = 0;

    for (const char *c = k->v->target; *c; c++) {
        if (c[0] == '%' && c[1] == 's') {
            enc_percent(to, str_of(k->words[word++]));
            c++;
        } else {
            buf_add_char(to, *c);
        }
    }
    for (const struct ctl_flag *f = k->v->flags; f && f->name; f++) {
        const json_t *v = json_object_get(k->flags, f->name);

        if (f->place == CTL_QUERY && v)
            add_query(to, f->field ? f->field : f->name, v, &any);
    }
}

static json_t *body_of(const struct ctl_call *k)
{
    json_t *body = json_object();

    if (k->v->into)
        json_object_set_new(body, k->v->into, json_string(k->words[0]));
    if (k->v->rest && json_array_size(k->rest) > 0)
        json_object_set(body, k->v->rest, k->rest);
    for (const struct ctl_flag *f = k->v->flags; f && f->name; f++) {
        json_t *v = json_object_get(k->flags, f->name);

        if (f->place == CTL_BODY && v && f->value)
            json_object_set_new(body, f->field, json_string(f->value));
        else if (f->place == CTL_BODY && v)
            json_object_set(body, f->field ? f->field : f->name, v);
    }
    return body;
}

static int send_row(struct ctl *x, const struct ctl_call *k, struct err *e)
{
    AUTO(json_decref) json_t *reply = NULL;
    AUTO(json_decref) json_t *body = body_of(k);
    AUTO(buf_done) struct buf target = {0};
    const json_t *operation;

    ctl_target(k, &target);
    if (ctl_ask(x,
                &(struct ctl_request){.method = k->v->method,
                                      .target = buf_cstr(&target),
                                      .body = strcmp(k->v->method, "POST") == 0 ? body : NULL},
                &reply, e) < 0)
        return -1;
    operation = json_object_get(reply, "operation");
    if (k->v->waits && ctl_is(k, "wait") && args_str(operation, "id"))
        return ctl_wait(x, args_str(operation, "id"), WAIT_MS, e);
    if (reply)
        ctl_show(x, k->v, reply);
    return 0;
}

/* --- running --- */

static int confirm(const struct ctl *x, const struct ctl_call *k, struct err *e)
{
    char answer[16] = "";

    if (!k->v->destroys || x->yes)
        return 0;
    if (!term_is_on(STDIN_FILENO))
        return err_set(e, ERR_INTERNAL, 0, "'%s' needs --yes where nobody can be asked",
                       k->v->path);
    (void)fprintf(stderr, "%s %s? [y/N] ", k->v->path, k->words[0] ? k->words[0] : "");
    if (!fgets(answer, sizeof answer, stdin))
        answer[0] = '\0';
    answer[strcspn(answer, "\r\n")] = '\0';
    if (strcmp(answer, "y") == 0 || strcmp(answer, "yes") == 0)
        return 0;
    return err_set(e, ERR_INTERNAL, 0, "nothing was done");
}

static int run_once(struct ctl *x, const struct ctl_call *k, struct err *e)
{
    int64_t began = clock_mono_ms();
    int r;

    if (k->v->changes)
        ctl_audit(x, k, true, 0, e);
    r = k->v->run ? k->v->run(x, k, e) : send_row(x, k, e);
    if (k->v->changes)
        ctl_audit(x, k, false, clock_mono_ms() - began, e);
    return r;
}

static int run_call(struct ctl *x, const struct ctl_call *k, struct err *e)
{
    int64_t every = 0;
    int r;

    if (x->watch && (str_parse_duration_ms(str_of(x->watch), &every) < 0 || every < 100))
        return err_set(e, ERR_INVALID, 0, "--watch '%.40s': write 2s or 500ms", x->watch);
    if (confirm(x, k, e) < 0 || (!k->v->local && ctl_choose(x, e) < 0))
        return -1;
    do {
        if (every > 0 && term_is_on(STDOUT_FILENO))
            cli_write(STR("\033[H\033[2J"));
        r = run_once(x, k, e);
        if (r == 0 && every > 0)
            (void)poll(NULL, 0, (int)i64_min(every, INT32_MAX));
    } while (r == 0 && every > 0);
    return r;
}

static void say_error(const struct err *e)
{
    AUTO(buf_done) struct buf line = {0};

    buf_add_c(&line, "Error: ");
    print_safe(&line, str_of(e->msg));
    if (e->hint[0]) {
        buf_add_c(&line, "\n  ");
        print_safe(&line, str_of(e->hint));
    }
    buf_add_char(&line, '\n');
    (void)!write(STDERR_FILENO, buf_data(&line), buf_len(&line));
}

static struct words words_of(struct cli *c, const json_t *args)
{
    const json_t *list = json_object_get(args, "words");
    struct words w = {.n = json_array_size(list)};

    w.v = arena_zalloc(&c->arena, (w.n + 1) * sizeof *w.v);
    for (size_t i = 0; i < w.n; i++)
        w.v[i] = arena_cstr(&c->arena, str_of(json_string_value(json_array_get(list, i))));
    return w;
}

static int sandboxctl_run(struct cli *c, const struct cmd *cmd, const json_t *args, struct err *e)
{
    AUTO(json_decref) json_t *flags = json_object();
    AUTO(json_decref) json_t *rest = json_array();
    struct ctl x = {.c = c, .server = c->server, .context = c->context};
    struct ctl_call k = {.flags = flags, .rest = rest};
    struct parse p = {.x = &x, .k = &k, .w = words_of(c, args)};
    struct err own = {0};
    int r;

    (void)cmd, (void)e;
    if (p.w.n > 0 && strcmp(p.w.v[0], "--version") == 0) {
        ctl_print("sandboxctl %s (holt)", holt_version);
        return 0;
    }
    r = read_line(&p, &own);
    if (r == 0 && (x.help || p.w.n == 0)) {
        ctl_help(p.path[0] ? p.path : NULL);
        return 0;
    }
    if (r < 0 || check_line(&p, &own) < 0) {
        say_error(&own);
        c->status = 2;
        return 0;
    }
    if (run_call(&x, &k, &own) < 0) {
        say_error(&own);
        c->status = ctl_status(&own);
    }
    target_done(&x.t);
    return 0;
}

/* clang-format off */
static const struct cli_flag words_flags[] = {
    {{.name = "words", .type = OP_LIST, .positional = true, .example = "agent list",
      .text = "A noun, a verb and its flags; --help lists them."}, 0, true},
};
#define TEXT(name) "The commands of agentic-sandbox's operator: agents, sessions, containers, machines, tasks, questions, loadouts, files, events.\n" \
                   "A link to holt called " name " is this command (docs/sandboxctl.md)."

const struct verb sandboxctl_verb = {
    .verb = "sandboxctl", .group = "server", .own_help = true, .text = TEXT("sandboxctl"),
    .flags = words_flags, .flag_count = ARRAY_LEN(words_flags), .run = sandboxctl_run,
    .examples = (const char *const[]){"holt sandboxctl agent list", "holt sandboxctl session attach ex_01k4r8w2m9h5t7c3xqvd --write",
                                      "holt sandboxctl task submit -f task.yaml --wait", NULL},
};
const struct verb agentic_sandbox_verb = {
    .verb = "agentic-sandbox", .group = "server", .own_help = true, .text = TEXT("agentic-sandbox"),
    .flags = words_flags, .flag_count = ARRAY_LEN(words_flags), .run = sandboxctl_run,
    .examples = (const char *const[]){"holt agentic-sandbox vm list", NULL},
};
/* clang-format on */
