/* verb_session: attaches to sessions, shows their screens, records and replays them. */
#include "cli/verbs.h"

#include "base/mem.h"
#include "cli/session.h"
#include "cli/term.h"
#include "cli/verb_op.h"
#include "proto/json.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

int session_create_verb_run(struct cli *c, const struct cmd *cmd, const json_t *args, struct err *e)
{
    struct print_spec spec = op_print_spec(c, cmd->op);
    AUTO(reply_done) struct reply reply = {0};
    AUTO(json_decref) json_t *made = NULL;
    AUTO(buf_done) struct buf line = {0};

    if (op_request(c, cmd->op, args, &reply, e) < 0 || reply_json(&reply, &made, e) < 0)
        return -1;
    if (c->format_set)
        return cli_print(c, made, &spec, e);
    print_safe(&line, str_of(args_str(made, "id")));
    buf_add_char(&line, '\n');
    cli_write(buf_str(&line));
    return 0;
}

int session_screen_verb_run(struct cli *c, const struct cmd *cmd, const json_t *args, struct err *e)
{
    AUTO(json_decref) json_t *all = json_deep_copy(args);
    AUTO(reply_done) struct reply reply = {0};

    if (c->format_set)
        return op_verb_run(c, cmd, args, e);
    if (!json_object_get(all, "format") || strcmp(args_str(all, "format"), "json") == 0)
        json_object_set_new(all, "format", json_string("text"));
    if (op_send(c, cmd->op, all, &(struct request){.accept = "text/plain"}, &reply, e) < 0)
        return -1;
    cli_write(buf_str(&reply.body));
    return 0;
}

/* --- attach, watch --- */

static void say_left(const json_t *args)
{
    AUTO(buf_done) struct buf line = {0};

    buf_add_c(&line, "\r\nholt: left; it goes on. Come back with: holt session attach ");
    print_safe(&line, str_of(args_str(args, "id")));
    buf_add_char(&line, ' ');
    print_safe(&line, str_of(args_str(args, "session")));
    buf_add_char(&line, '\n');
    (void)!write(STDERR_FILENO, buf_data(&line), buf_len(&line));
}

static int attach(struct cli *c, const struct cmd *cmd, const json_t *args, bool write,
                  struct err *e)
{
    AUTO(json_decref) json_t *query = json_deep_copy(args);
    AUTO(session_end) struct session_end end = {0};
    AUTO(target_done) struct target t = {0};
    AUTO(buf_done) struct buf target = {0};
    const char *keys = args_str(args, "detach_keys");
    struct session_spec spec = {.input = true, .tty = true, .observes = !write};

    if (detach_parse(keys ? keys : DETACH_KEYS, &spec.detach, e) < 0 || target_choose(c, &t, e) < 0)
        return -1;
    json_object_set_new(query, "role", json_string(write ? "controller" : "observer"));
    json_object_set_new(query, "take", json_boolean(write));
    json_object_set_new(query, "repaint", json_true());
    op_target(cmd->op, query, &target);
    spec.target = buf_cstr(&target);
    if (session_run(&t, &spec, &end, e) < 0)
        return -1;
    if (end.how == SESSION_DETACHED)
        say_left(args);
    c->status = end.how == SESSION_EXITED && end.status < 0 ? 1 : end.status;
    return 0;
}

int session_attach_verb_run(struct cli *c, const struct cmd *cmd, const json_t *args, struct err *e)
{
    return attach(c, cmd, args, args_bool(args, "write"), e);
}

int session_watch_verb_run(struct cli *c, const struct cmd *cmd, const json_t *args, struct err *e)
{
    return attach(c, cmd, args, false, e);
}

/* --- record, export --- */

struct recorder {
    int fd;
    int error; /* errno of a failed write */
};

static int record_part(void *arg, struct str bytes)
{
    struct recorder *r = arg;

    while (bytes.n > 0) {
        ssize_t n = write(r->fd, bytes.p, bytes.n);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            r->error = errno;
            return 1;
        }
        bytes = str_skip(bytes, (size_t)n);
    }
    return 0;
}

/* Into the file, which must be new; - is standard output. */
static int record(struct cli *c, const struct cmd *cmd, const json_t *args, bool follow,
                  struct err *e)
{
    AUTO(json_decref) json_t *all = json_deep_copy(args);
    AUTO(reply_done) struct reply reply = {0};
    const char *path = args_str(args, "file");
    bool out = strcmp(path, "-") == 0;
    struct recorder r = {.fd = out ? STDOUT_FILENO
                                   : open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600)};
    int done;

    if (r.fd < 0) {
        err_set(e, err_code_from_errno(errno), errno, "make '%.200s'", path);
        return errno == EEXIST ? err_hint(e, "choose a name that is not taken") : -1;
    }
    json_object_set_new(all, "follow", json_boolean(follow));
    done = op_send(
        c, cmd->op, all,
        &(struct request){.accept = "application/x-asciicast", .part = record_part, .arg = &r},
        &reply, e);
    if (!out && close(r.fd) < 0 && !r.error)
        r.error = errno;
    if (r.error)
        return err_set(e, err_code_from_errno(r.error), r.error, "write '%.200s'", path);
    return done < 0 ? -1 : 0;
}

int session_record_verb_run(struct cli *c, const struct cmd *cmd, const json_t *args, struct err *e)
{
    if (!c->timeout_set)
        c->timeout_ms = 0;
    return record(c, cmd, args, true, e);
}

int session_export_verb_run(struct cli *c, const struct cmd *cmd, const json_t *args, struct err *e)
{
    return record(c, cmd, args, false, e);
}

/* --- replay --- */

static int play_line(struct str line, double speed, double *at, struct err *e)
{
    AUTO(json_decref) json_t *event = NULL;
    const json_t *data;
    const char *kind;
    double time;

    if (line.n == 0 || line.p[0] == '{')
        return 0;
    if (json_read(line, &event, e) < 0)
        return err_wrap(e, "the recording");
    data = json_array_get(event, 2);
    time = json_number_value(json_array_get(event, 0));
    if (time > *at) {
        (void)poll(NULL, 0, (int)((time - *at) * 1000 / speed));
        *at = time;
    }
    kind = json_string_value(json_array_get(event, 1));
    if (kind && strcmp(kind, "o") == 0)
        cli_write(str_make(json_string_value(data), json_string_length(data)));
    return 0;
}

int session_replay_verb_run(struct cli *c, const struct cmd *cmd, const json_t *args, struct err *e)
{
    double speed = (double)args_int(args, "speed", 100) / 100, at = 0;
    AUTO(reply_done) struct reply reply = {0};
    struct str rest;

    if (op_send(c, cmd->op, args, &(struct request){.accept = "application/x-asciicast"}, &reply,
                e) < 0)
        return -1;
    rest = buf_str(&reply.body);
    while (rest.n > 0) {
        ptrdiff_t nl = str_index(rest, '\n');
        size_t n = nl < 0 ? rest.n : (size_t)nl;

        if (play_line(str_make(rest.p, n), speed, &at, e) < 0)
            return -1;
        rest = str_skip(rest, size_min(n + 1, rest.n));
    }
    cli_write(STR("\033[0m\033[?25h\n"));
    return 0;
}
