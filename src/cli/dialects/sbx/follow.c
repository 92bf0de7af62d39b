/* follow: follows the events of an sbx command. */
#include "cli/dialects/sbx/sbx.h"

#include "base/enc.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "cli/request.h"
#include "net/ws_client.h"
#include "proto/json.h"

#include <inttypes.h>
#include <unistd.h>

#define MESSAGE_MAX (4 * 1024 * 1024)
#define PING_MS 15000
#define RETRIES 30
#define RETRY_MS 500

struct follow {
    bool raw, exited, closed;
    int status;
    int64_t seen; /* seq of the last event */
    struct err e;
    int http;
};

static void write_all(int fd, struct str s)
{
    while (s.n > 0) {
        ssize_t n = write(fd, s.p, s.n);

        if (n <= 0)
            return;
        s = str_skip(s, (size_t)n);
    }
}

/* Writes the exact bytes if the text is not exact. */
static void write_raw(const json_t *event)
{
    const char *stream = json_string_value(json_object_get(event, "stream"));
    const json_t *data = json_object_get(event, "data");
    const char *exact = json_string_value(json_object_get(event, "data_base64"));
    AUTO(buf_done) struct buf bytes = {0};

    if (exact && dec_base64(&bytes, str_of(exact)) < 0)
        return;
    if (!exact && json_is_string(data))
        buf_add(&bytes, json_string_value(data), json_string_length(data));
    if (stream && strcmp(stream, "stderr") == 0)
        write_all(STDERR_FILENO, buf_str(&bytes));
    else
        cli_write(buf_str(&bytes));
}

/* An exit that was not the command's own: prints the message, the only explanation there is. */
static void say_why(const json_t *event)
{
    const char *why = json_string_value(json_object_get(event, "data"));
    AUTO(buf_done) struct buf line = {0};

    if (!why || str_starts(str_of(why), STR("command terminated with exit code ")))
        return;
    print_safe(&line, str_of(why));
    (void)fprintf(stderr, "%s\n", buf_cstr(&line));
}

/* Events of sidecars inside are shown but not trusted. */
static bool is_ours(const json_t *event)
{
    return !json_object_get(event, "source");
}

static void show(const struct follow *f, const char *type, const json_t *event, struct str text)
{
    if (!f->raw) {
        AUTO(buf_done) struct buf line = {0};

        utf8_escape(&line, text);
        buf_add_char(&line, '\n');
        cli_write(buf_str(&line));
        return;
    }
    if (json_is_true(json_object_get(event, "gap")))
        (void)fprintf(stderr, "sbx: output is missing here: the log did not keep it\n");
    if (strcmp(type, "output") == 0)
        write_raw(event);
    else if (strcmp(type, "exit") == 0)
        say_why(event);
}

static void on_message(struct ws_client *w, enum ws_op kind, struct str data)
{
    struct follow *f = ws_client_arg(w);
    AUTO(json_decref) json_t *event = NULL;
    struct err e = {0};
    const char *type;

    (void)kind;
    if (f->exited || json_read_lax(data, &event, &e) < 0)
        return;
    type = json_string_value(json_object_get(event, "type"));
    f->seen = json_integer_value(json_object_get(event, "seq"));
    if (!type || (f->raw && !is_ours(event)))
        return;
    show(f, type, event, data);
    if (strcmp(type, "exit") != 0 || !is_ours(event))
        return;
    f->exited = true;
    f->status = (int)json_integer_value(json_object_get(event, "exit_code"));
    ws_client_close(w, WS_NORMAL, "");
}

static void on_closed(struct ws_client *w, const struct ws_client_end *end)
{
    struct follow *f = ws_client_arg(w);

    f->e = end->e;
    f->http = end->status;
    f->closed = true;
}

/* One connection, continuing after the last event. */
static int connect_once(const struct target *t, const char *path, struct follow *f, struct err *e)
{
    static const struct ws_client_ops ops = {.message = on_message, .closed = on_closed};
    AUTO(client_url_done) struct client_url url = {0};
    AUTO(dial_tls_free) struct dial_tls *tls = NULL;
    AUTO(request_headers_done) struct request_headers h = {0};
    AUTO(buf_done) struct buf target = {0};
    struct ws_client *w;
    uv_loop_t *loop;
    int r;

    if (client_url_parse(t->server, &url, e) < 0 ||
        (url.tls && dial_tls_new(t->cacert, &tls, e) < 0))
        return -1;
    loop = request_loop(e);
    if (!loop)
        return -1;
    buf_printf(&target, "%s&since=%" PRId64, path, f->seen);
    request_headers_make(t, &h);
    f->closed = false;
    r = ws_client_start(&(struct ws_client_request){.loop = loop,
                                                    .url = &url,
                                                    .tls = tls,
                                                    .target = buf_cstr(&target),
                                                    .headers = h.v,
                                                    .header_count = h.n,
                                                    .message_max = MESSAGE_MAX,
                                                    .connect_ms = REQUEST_CONNECT_MS,
                                                    .ping_ms = PING_MS,
                                                    .ops = &ops,
                                                    .arg = f},
                        &w, e);
    while (r == 0 && !f->closed)
        (void)uv_run(loop, UV_RUN_ONCE);
    (void)uv_run(loop, UV_RUN_NOWAIT);
    request_loop_end(loop);
    return r;
}

int sbx_follow(const struct target *t, const char *id, const char *exec_id, bool raw,
               int *ret_status, struct err *e)
{
    struct follow f = {.raw = raw};
    AUTO(buf_done) struct buf path = {0};

    buf_add_c(&path, "/sandboxes/");
    enc_percent(&path, str_of(id));
    buf_add_c(&path, "/stream?exec_id=");
    enc_percent(&path, str_of(exec_id));
    for (int tries = 0; !f.exited; tries++) {
        if (connect_once(t, buf_cstr(&path), &f, e) < 0)
            return -1;
        if (f.exited)
            break;
        if (f.http >= 400 || tries == RETRIES) {
            if (f.e.code == ERR_NONE)
                return err_set(e, ERR_UNAVAILABLE, 0, "the stream of '%s' ended before the command",
                               exec_id);
            *e = f.e;
            return err_wrap(e, "the stream of '%s'", exec_id);
        }
        (void)usleep(RETRY_MS * 1000); /* holtd may be restarting: no event is lost */
    }
    *ret_status = f.status;
    return 0;
}
