/* session: the commands of sandboxctl on sessions of the list, attached to as natively. */
#include "cli/dialects/agentic/sandboxctl.h"

#include "base/enc.h"
#include "base/fd.h"
#include "cli/session.h"
#include "cli/term.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <unistd.h>

#define DETACH "ctrl-a,d"
#define TYPE_MAX (16 << 20)
#define TYPE_PART 32768

/* --- the list --- */

int ctl_session_list(struct ctl *x, const struct ctl_call *k, struct err *e)
{
    AUTO(json_decref) json_t *all = NULL;
    AUTO(json_decref) json_t *shown = json_array();
    const char *agent = ctl_text(k, "agent");

    if (ctl_get(x, "/api/v1/sessions", &all, e) < 0)
        return -1;
    for (size_t i = 0; i < json_array_size(all); i++) {
        json_t *one = json_array_get(all, i);
        const char *of = args_str(one, "agent_id");

        if (!agent || (of && strcmp(of, agent) == 0))
            json_array_append(shown, one);
    }
    ctl_show(x, k->v, shown);
    return 0;
}

/* The session of this id; agent: or, if it is given, of this agent and this name. */
static int find_session(struct ctl *x, const char *agent, const char *ref, json_t **ret,
                        struct err *e)
{
    AUTO(json_decref) json_t *all = NULL;

    if (ctl_get(x, "/api/v1/sessions", &all, e) < 0)
        return -1;
    for (size_t i = 0; i < json_array_size(all); i++) {
        json_t *one = json_array_get(all, i);
        const char *id = args_str(one, "session_id"), *name = args_str(one, "name");
        const char *of = args_str(one, "agent_id");
        bool same = id && strcmp(id, ref) == 0;

        if (agent)
            same = of && strcmp(of, agent) == 0 && (same || (name && strcmp(name, ref) == 0));
        if (!same)
            continue;
        *ret = json_incref(one);
        return 0;
    }
    return err_set(e, ERR_NOT_FOUND, 0, "session '%.64s' not found", ref);
}

int ctl_session_get(struct ctl *x, const struct ctl_call *k, struct err *e)
{
    AUTO(json_decref) json_t *one = NULL;

    if (find_session(x, NULL, k->words[0], &one, e) < 0)
        return -1;
    ctl_show(x, k->v, one);
    return 0;
}

static void put_path(const json_t *session, const char *what, struct buf *to)
{
    buf_add_c(to, "/holt/v1/sandboxes/");
    enc_percent(to, str_of(args_str(session, "agent_id")));
    buf_add_c(to, "/sessions/");
    enc_percent(to, str_of(args_str(session, "session_id")));
    buf_add_c(to, what);
}

static int path_of(struct ctl *x, const struct ctl_call *k, const char *what, struct buf *to,
                   struct err *e)
{
    AUTO(json_decref) json_t *one = NULL;

    if (find_session(x, NULL, k->words[0], &one, e) < 0)
        return -1;
    put_path(one, what, to);
    return 0;
}

/* --- attach, tail --- */

struct attach {
    bool tty, write;
    const json_t *from; /* an offset in the output; NULL: from the screen as it is */
};

static int attach_to(struct ctl *x, const json_t *session, const struct attach *a, struct err *e)
{
    AUTO(buf_done) struct buf target = {0};
    AUTO(session_end) struct session_end end = {0};
    struct session_spec spec = {.input = a->tty, .tty = a->tty, .observes = !a->write};

    put_path(session, "/attach", &target);
    buf_printf(&target, "?role=%s", a->write ? "controller&take=true" : "observer");
    if (json_is_integer(a->from))
        buf_printf(&target, "&stdout_offset=%" PRId64, (int64_t)json_integer_value(a->from));
    else
        buf_add_c(&target, "&repaint=true");
    spec.target = buf_cstr(&target);
    if ((a->tty && detach_parse(DETACH, &spec.detach, e) < 0) ||
        session_run(&x->t, &spec, &end, e) < 0)
        return -1;
    if (end.how == SESSION_DETACHED)
        (void)fprintf(stderr, "\r\ndetached; the session goes on\n");
    else if (a->write)
        x->c->status = end.status < 0 ? 1 : end.status;
    return 0;
}

static int attach_by_id(struct ctl *x, const struct ctl_call *k, bool tty, bool write,
                        struct err *e)
{
    AUTO(json_decref) json_t *one = NULL;

    if (find_session(x, NULL, k->words[0], &one, e) < 0)
        return -1;
    return attach_to(x, one, &(struct attach){tty, write, json_object_get(k->flags, "replay-from")},
                     e);
}

int ctl_session_attach(struct ctl *x, const struct ctl_call *k, struct err *e)
{
    return attach_by_id(x, k, true, ctl_is(k, "write"), e);
}

int ctl_session_tail(struct ctl *x, const struct ctl_call *k, struct err *e)
{
    return attach_by_id(x, k, false, false, e);
}

/* Without a session: the first one of the agent. */
int ctl_attach(struct ctl *x, const struct ctl_call *k, struct err *e)
{
    AUTO(json_decref) json_t *one = NULL;
    AUTO(json_decref) json_t *all = NULL;

    if (k->words[1]) {
        if (find_session(x, k->words[0], k->words[1], &one, e) < 0)
            return -1;
        return attach_to(x, one, &(struct attach){.tty = true, .write = true}, e);
    }
    if (ctl_get(x, "/api/v1/sessions", &all, e) < 0)
        return -1;
    for (size_t i = 0; i < json_array_size(all); i++) {
        const char *of = args_str(json_array_get(all, i), "agent_id");

        if (of && strcmp(of, k->words[0]) == 0)
            return attach_to(x, json_array_get(all, i),
                             &(struct attach){.tty = true, .write = true}, e);
    }
    return err_set(e, ERR_NOT_FOUND, 0, "agent '%.64s' has no session; `agent shell` makes one",
                   k->words[0]);
}

/* --- shell, exec --- */

static int make_session(struct ctl *x, const struct ctl_call *k, json_t **ret, struct err *e)
{
    AUTO(json_decref) json_t *body = json_object();
    AUTO(buf_done) struct buf target = {0};
    const char *command = ctl_text(k, "cmd");
    int rows, cols;

    term_size(&rows, &cols);
    json_object_set_new(body, "rows", json_integer(rows));
    json_object_set_new(body, "cols", json_integer(cols));
    if (command)
        json_object_set_new(body, "command", json_string(command));
    else
        json_object_set_new(body, "session_name", json_string("main"));
    buf_add_c(&target, "/api/v1/agents/");
    enc_percent(&target, str_of(k->words[0]));
    buf_add_c(&target, "/sessions");
    return ctl_ask(
        x, &(struct ctl_request){.method = "POST", .target = buf_cstr(&target), .body = body}, ret,
        e);
}

/* Without a command it is the session "main", which is there once. */
int ctl_shell(struct ctl *x, const struct ctl_call *k, struct err *e)
{
    AUTO(json_decref) json_t *made = NULL;
    AUTO(json_decref) json_t *session = NULL;
    int r = ctl_text(k, "cmd") ? -1 : find_session(x, k->words[0], "main", &session, e);

    if (r < 0) {
        *e = (struct err){0};
        if (make_session(x, k, &made, e) < 0)
            return -1;
        session = json_pack("{s:s, s:O}", "agent_id", k->words[0], "session_id",
                            json_object_get(made, "session_id"));
    }
    return attach_to(x, session, &(struct attach){.tty = true, .write = true}, e);
}

/* As `holt exec`, with the server and token of this command. */
int ctl_exec(struct ctl *x, const struct ctl_call *k, struct err *e)
{
    const struct cmd *cmd = cmd_set_find(&x->c->cmds, "exec");
    const json_t *seconds = json_object_get(k->flags, "timeout");
    AUTO(json_decref) json_t *args = json_pack("{s:s, s:O}", "id", k->words[0], "command", k->rest);

    if (json_is_integer(seconds))
        json_object_set_new(args, "timeout_ms", json_integer(json_integer_value(seconds) * 1000));
    x->c->server = x->t.server;
    if (x->t.token && setenv("HOLT_TOKEN", x->t.token, 1) < 0)
        return err_set(e, ERR_INTERNAL, errno, "keep the token");
    return cmd->run(x->c, cmd, args, e);
}

/* --- record, input, resize --- */

static int on_recorded(void *arg, struct str bytes)
{
    return fd_write_all(*(const int *)arg, bytes.p, bytes.n) < 0;
}

int ctl_session_record(struct ctl *x, const struct ctl_call *k, struct err *e)
{
    const char *path = ctl_text(k, "output");
    AUTO(buf_done) struct buf target = {0};
    bool out = path && strcmp(path, "-") == 0;
    json_t *none = NULL;
    int fd, r;

    if (!path)
        return err_set(e, ERR_INVALID, 0, "-o FILE is missing");
    if (json_integer_value(json_object_get(k->flags, "replay-from")) != 0)
        return err_set(e, ERR_UNSUPPORTED, 0, "a recording begins with the oldest output kept");
    if (path_of(x, k, "/recording?follow=true", &target, e) < 0)
        return -1;
    fd = out ? STDOUT_FILENO : open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        return err_set(e, err_code_from_errno(errno), errno, "make '%.200s'", path);
    x->c->timeout_ms = 0;
    r = ctl_ask(x,
                &(struct ctl_request){.method = "GET",
                                      .target = buf_cstr(&target),
                                      .accept = "application/x-asciicast",
                                      .part = on_recorded,
                                      .arg = &fd},
                &none, e);
    if (!out)
        fd_close(fd);
    if (r <= 0)
        return r;
    err_set(e, ERR_FULL, ENOSPC, "write '%.200s'", path);
    return err_hint(e, "free some space there, or name another file");
}

static int post_session(struct ctl *x, const char *target, json_t *body, struct err *e)
{
    AUTO(json_decref) json_t *reply = NULL;
    AUTO(json_decref) json_t *mine = body;

    return ctl_ask(x, &(struct ctl_request){.method = "POST", .target = target, .body = mine},
                   &reply, e);
}

/* The longest front of s that ends between characters. */
static size_t part_of(struct str s)
{
    size_t n = size_min(s.n, TYPE_PART);

    while (n > 0 && n < s.n && ((unsigned char)s.p[n] & 0xc0) == 0x80)
        n--;
    return n;
}

int ctl_session_input(struct ctl *x, const struct ctl_call *k, struct err *e)
{
    const char *path = ctl_text(k, "file");
    AUTO(buf_done) struct buf text = {0}, target = {0};
    struct str rest;
    int r;

    if (!path)
        return err_set(e, ERR_INVALID, 0, "-f FILE is missing");
    r = strcmp(path, "-") == 0 ? fd_read_all(STDIN_FILENO, TYPE_MAX, &text)
                               : file_read(path, TYPE_MAX, &text);
    if (r < 0)
        return err_set(e, err_code_from_errno(-r), -r, "read '%.200s'", path);
    rest = buf_str(&text);
    if (!str_is_utf8(rest))
        return err_set(e, ERR_INVALID, 0, "'%.200s' is no text", path);
    if (path_of(x, k, "/send", &target, e) < 0)
        return -1;
    while (rest.n > 0) {
        size_t n = part_of(rest);

        if (post_session(x, buf_cstr(&target),
                         json_pack("{s:o, s:b}", "text", json_stringn(rest.p, n), "take", 1),
                         e) < 0)
            return -1;
        rest = str_skip(rest, n);
    }
    return 0;
}

int ctl_session_resize(struct ctl *x, const struct ctl_call *k, struct err *e)
{
    json_t *rows = json_object_get(k->flags, "rows"), *cols = json_object_get(k->flags, "cols");
    AUTO(buf_done) struct buf target = {0};

    if (!rows || !cols)
        return err_set(e, ERR_INVALID, 0, "--cols N and --rows N are needed");
    if (path_of(x, k, "/resize", &target, e) < 0)
        return -1;
    return post_session(x, buf_cstr(&target), json_pack("{s:O, s:O}", "rows", rows, "cols", cols),
                        e);
}
