/* work: sandboxctl's commands that are more than one request: tasks, files, events, probes. */
#include "cli/dialects/agentic/sandboxctl.h"

#include "base/clock.h"
#include "base/enc.h"
#include "base/fd.h"
#include "proto/sse.h"

#include <poll.h>
#include <regex.h>
#include <unistd.h>

#define FILE_MAX (64 << 20)
#define EVENT_MAX (4 << 20)
#define SILENCE_MS 90000
#define POLL_FIRST_MS 500
#define POLL_MAX_MS 5000
#define WAIT_MS (60 * 60 * 1000)

static int read_file(const struct ctl_call *k, struct buf *to, struct err *e)
{
    const char *path = ctl_text(k, "file");
    int r;

    if (!path)
        return err_set(e, ERR_INVALID, 0, "-f FILE is missing");
    r = strcmp(path, "-") == 0 ? fd_read_all(STDIN_FILENO, FILE_MAX, to)
                               : file_read(path, FILE_MAX, to);
    return r < 0 ? err_set(e, err_code_from_errno(-r), -r, "read '%.200s'", path) : 0;
}

/* --- tasks --- */

static bool ends_with(const char *s, const char *end)
{
    return str_ends(str_of(s), str_of(end));
}

/* As the original: YAML by the name of its file, else JSON; from standard input by its text. */
static int manifest_of(const struct ctl_call *k, json_t **ret, struct err *e)
{
    const char *path = ctl_text(k, "file");
    AUTO(buf_done) struct buf text = {0};
    json_t *manifest = NULL;

    if (read_file(k, &text, e) < 0)
        return -1;
    if (ends_with(path, ".yaml") || ends_with(path, ".yml") ||
        (strcmp(path, "-") == 0 && (buf_len(&text) == 0 || buf_data(&text)[0] != '{'))) {
        *ret = json_pack("{s:o}", "manifest_yaml", json_stringn(buf_cstr(&text), buf_len(&text)));
        return *ret ? 0 : err_set(e, ERR_INVALID, 0, "'%.200s' is no text", path);
    }
    if (json_read(buf_str(&text), &manifest, e) < 0)
        return err_wrap(e, "'%.100s'", path);
    *ret = json_pack("{s:o}", "manifest", manifest);
    return 0;
}

static bool is_one_of(const char *word, const char *list)
{
    struct str rest = str_of(list);

    while (word && rest.n > 0)
        if (str_eq_c(str_cut(rest, ',', &rest), word))
            return true;
    return false;
}

static int wait_task(struct ctl *x, const char *id, struct err *e)
{
    int64_t until = clock_mono_ms() + WAIT_MS, pause = POLL_FIRST_MS;
    AUTO(buf_done) struct buf target = {0};

    buf_add_c(&target, "/api/v1/tasks/");
    enc_percent(&target, str_of(id));
    while (clock_mono_ms() < until) {
        AUTO(json_decref) json_t *task = NULL;
        const char *state;

        if (ctl_get(x, buf_cstr(&target), &task, e) < 0)
            return -1;
        state = args_str(task, "state");
        if (is_one_of(state, "completed,failed,failed_preserved,cancelled")) {
            ctl_show(x, &(struct ctl_verb){0}, task);
            x->c->status = strcmp(state, "completed") != 0;
            return 0;
        }
        (void)poll(NULL, 0, (int)pause);
        pause = i64_min(pause * 2, POLL_MAX_MS);
    }
    return err_set(e, ERR_TIMEOUT, 0, "task '%.64s' has not ended", id);
}

int ctl_task_submit(struct ctl *x, const struct ctl_call *k, struct err *e)
{
    AUTO(json_decref) json_t *body = NULL;
    AUTO(json_decref) json_t *reply = NULL;
    const char *id;

    if (manifest_of(k, &body, e) < 0 ||
        ctl_ask(x, &(struct ctl_request){.method = "POST", .target = "/api/v1/tasks", .body = body},
                &reply, e) < 0)
        return -1;
    id = args_str(reply, "task_id");
    if (ctl_is(k, "wait") && id)
        return wait_task(x, id, e);
    ctl_show(x, k->v, reply);
    return 0;
}

/* --- streams --- */

struct follow {
    struct ctl *x;
    struct sse_reader in;
    regex_t *filter;
    bool over;
    int status;
};

static int task_part(void *arg, struct str bytes)
{
    struct follow *f = arg;
    struct sse_event ev;
    int r;

    while ((r = sse_reader_next(&f->in, &bytes, &ev)) > 0) {
        if (str_eq_c(ev.event, "completed") || str_eq_c(ev.event, "error")) {
            f->over = true;
            return 1;
        }
        ctl_print(STR_FMT, STR_ARG(ev.data));
    }
    return r < 0;
}

int ctl_task_logs(struct ctl *x, const struct ctl_call *k, struct err *e)
{
    struct follow f = {.x = x, .in = {.limit = EVENT_MAX}};
    AUTO(buf_done) struct buf target = {0};
    json_t *none = NULL;
    int r;

    buf_add_c(&target, "/api/v1/tasks/");
    enc_percent(&target, str_of(k->words[0]));
    buf_printf(&target, "/logs?follow=%s", ctl_is(k, "follow") ? "true" : "false");
    x->c->timeout_ms = SILENCE_MS;
    r = ctl_ask(x,
                &(struct ctl_request){.method = "GET",
                                      .target = buf_cstr(&target),
                                      .accept = "text/event-stream",
                                      .part = task_part,
                                      .arg = &f},
                &none, e);
    sse_reader_done(&f.in);
    return r > 0 && !f.over ? err_set(e, ERR_TOO_LARGE, 0, "an event is over 4 MiB")
           : r < 0          ? -1
                            : 0;
}

/* --- events --- */

static int put_since(const char *since, struct buf *to, struct err *e)
{
    char text[CLOCK_TEXT];
    int64_t ms;

    if (clock_parse(str_of(since), &ms) < 0) {
        if (str_parse_duration_ms(str_of(since), &ms) < 0)
            return err_set(e, ERR_INVALID, 0, "--since '%.40s': write 1h, or a time (RFC 3339)",
                           since);
        ms = clock_wall_ms() - ms;
    }
    buf_add_c(to, "&since=");
    enc_percent(to, str_of(clock_text(ms, text)));
    return 0;
}

static int event_target(const struct ctl_call *k, bool follow, struct buf *to, struct err *e)
{
    const char *source = ctl_text(k, "source"), *type = ctl_text(k, "event-type");
    const json_t *limit = json_object_get(k->flags, "limit");
    const char *since = ctl_text(k, "since");

    buf_printf(to, "/api/v1/events?follow=%s", follow ? "true" : "false");
    if (source) {
        buf_add_c(to, "&source=");
        enc_percent(to, str_of(source));
    }
    if (type) {
        buf_add_c(to, "&event_type=");
        enc_percent(to, str_of(type));
    }
    if (limit)
        buf_printf(to, "&limit=%d", (int)json_integer_value(limit));
    return since ? put_since(since, to, e) : 0;
}

int ctl_event_list(struct ctl *x, const struct ctl_call *k, struct err *e)
{
    AUTO(json_decref) json_t *reply = NULL;
    AUTO(buf_done) struct buf target = {0};

    if (event_target(k, false, &target, e) < 0 || ctl_get(x, buf_cstr(&target), &reply, e) < 0)
        return -1;
    ctl_show(x, k->v, reply);
    return 0;
}

static void show_event(const struct follow *f, const struct sse_event *ev)
{
    AUTO(json_decref) json_t *o = NULL;
    AUTO(buf_done) struct buf line = {0};
    static const char *const keys[] = {"timestamp", "event_type", "vm_name", "agent_id"};
    struct err ignored;

    if (json_read_lax(ev->data, &o, &ignored) < 0)
        return;
    for (size_t i = 0; i < ARRAY_LEN(keys); i++)
        buf_printf(&line, "%s%s", i ? "  " : "", args_str(o, keys[i]) ? args_str(o, keys[i]) : "-");
    if (f->filter && regexec(f->filter, buf_cstr(&line), 0, NULL, 0) != 0)
        return;
    if (f->x->json)
        ctl_print(STR_FMT, STR_ARG(ev->data));
    else
        ctl_print("%s", buf_cstr(&line));
}

static int event_part(void *arg, struct str bytes)
{
    struct follow *f = arg;
    struct sse_event ev;
    int r;

    while ((r = sse_reader_next(&f->in, &bytes, &ev)) > 0)
        show_event(f, &ev);
    return r < 0;
}

int ctl_event_tail(struct ctl *x, const struct ctl_call *k, struct err *e)
{
    struct follow f = {.x = x, .in = {.limit = EVENT_MAX}};
    const char *filter = ctl_text(k, "filter");
    AUTO(buf_done) struct buf target = {0};
    json_t *none = NULL;
    regex_t regex;
    int r = event_target(k, true, &target, e);

    if (r < 0)
        return -1;
    if (filter && regcomp(&regex, filter, REG_EXTENDED | REG_NOSUB) != 0)
        return err_set(e, ERR_INVALID, 0, "--filter '%.40s' is no regular expression", filter);
    f.filter = filter ? &regex : NULL;
    x->c->timeout_ms = SILENCE_MS;
    r = ctl_ask(x,
                &(struct ctl_request){.method = "GET",
                                      .target = buf_cstr(&target),
                                      .accept = "text/event-stream",
                                      .part = event_part,
                                      .arg = &f},
                &none, e);
    sse_reader_done(&f.in);
    if (f.filter)
        regfree(f.filter);
    return r > 0 ? err_set(e, ERR_TOO_LARGE, 0, "an event is over 4 MiB") : r;
}

/* --- files --- */

int ctl_push(struct ctl *x, const struct ctl_call *k, struct err *e)
{
    AUTO(buf_done) struct buf content = {0}, target = {0};
    AUTO(reply_done) struct reply reply = {0};
    AUTO(json_decref) json_t *shown = NULL;

    if (!ctl_text(k, "path"))
        return err_set(e, ERR_INVALID, 0, "--path PATH is missing");
    if (read_file(k, &content, e) < 0)
        return -1;
    ctl_target(k, &target);
    if (ctl_ask(x,
                &(struct ctl_request){.method = "POST",
                                      .target = buf_cstr(&target),
                                      .bytes = buf_str(&content),
                                      .type = "application/octet-stream"},
                &shown, e) < 0)
        return -1;
    ctl_show(x, k->v, shown);
    return 0;
}

/* --- health --- */

int ctl_health(struct ctl *x, const struct ctl_call *k, struct err *e)
{
    static const struct {
        const char *name, *path;
    } probes[] = {{"liveness", "/healthz"},
                  {"http", "/healthz/http"},
                  {"readiness", "/readyz"},
                  {"api", "/api/v1/health"}};
    AUTO(json_decref) json_t *shown = json_pack("{s:[]}", "probes");

    for (size_t i = 0; i < ARRAY_LEN(probes); i++) {
        json_t *reply = NULL;
        struct err why = {0};
        bool good = ctl_get(x, probes[i].path, &reply, &why) == 0;

        json_array_append_new(json_object_get(shown, "probes"),
                              json_pack("{s:s, s:s, s:s}", "probe", probes[i].name, "path",
                                        probes[i].path, "status", good ? "ok" : why.msg));
        json_decref(reply);
        if (!good)
            x->c->status = 1;
    }
    (void)e;
    ctl_show(x, k->v, shown);
    return 0;
}

int ctl_ops_wait(struct ctl *x, const struct ctl_call *k, struct err *e)
{
    int64_t limit;

    if (str_parse_duration_ms(str_of(ctl_text(k, "timeout")), &limit) < 0)
        return err_set(e, ERR_INVALID, 0, "--timeout '%.40s': write 5m", ctl_text(k, "timeout"));
    return ctl_wait(x, k->words[0], limit, e);
}

/* --- completion: the words of all commands --- */

static void add_words(struct buf *to)
{
    for (size_t i = 0; i < ctl_verb_count; i++)
        buf_printf(to, "%s'%s'", i ? " " : "", ctl_verbs[i].path);
}

int ctl_completions(struct ctl *x, const struct ctl_call *k, struct err *e)
{
    AUTO(buf_done) struct buf out = {0};

    (void)x;
    if (strcmp(k->words[0], "fish") == 0) {
        for (size_t i = 0; i < ctl_verb_count; i++)
            buf_printf(&out, "complete -c sandboxctl -f -a \"%s\" -d \"%s\"\n", ctl_verbs[i].path,
                       ctl_verbs[i].text);
    } else if (is_one_of(k->words[0], "bash,zsh")) {
        if (strcmp(k->words[0], "zsh") == 0)
            buf_add_c(&out, "autoload -U +X bashcompinit && bashcompinit\n");
        buf_add_c(&out, "_sandboxctl() {\n    local all=(");
        add_words(&out);
        buf_add_c(&out, ") one line=\"${COMP_WORDS[*]:1:COMP_CWORD-1}\"\n"
                        "    COMPREPLY=()\n"
                        "    for one in \"${all[@]}\"; do\n"
                        "        [[ \"$one \" == \"${line:+$line }\"* ]] || continue\n"
                        "        one=\"${one#\"$line\"}\"\n"
                        "        one=\"${one# }\"\n"
                        "        [[ $one == \"${COMP_WORDS[COMP_CWORD]}\"* ]] && "
                        "COMPREPLY+=(\"${one%% *}\")\n"
                        "    done\n"
                        "}\n"
                        "complete -F _sandboxctl sandboxctl agentic-sandbox\n");
    } else {
        return err_set(e, ERR_INVALID, 0, "there is completion for bash, zsh and fish");
    }
    cli_write(buf_str(&out));
    return 0;
}
