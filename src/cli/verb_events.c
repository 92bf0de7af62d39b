/* verb_events: lists and follows events. */
#include "cli/verbs.h"

#include "base/mem.h"
#include "cli/verb_op.h"
#include "proto/json.h"
#include "proto/sse.h"
#include "proto/yaml.h"

#include <inttypes.h>
#include <time.h>

#define SILENCE_MS 90000 /* the server's keepalive comments come much more often */
#define RETRY_FIRST_MS 500
#define RETRY_MAX_MS 10000

#define EVENT_MAX (4 * 1024 * 1024)

struct follow {
    struct cli *cli;
    struct sse_reader in;
    struct err e;
    char last_id[64];
    int64_t left; /* events still to print; -1: all */
};

/* --- printing --- */

static const char *type_color(const char *type, bool audit)
{
    const char *end = strrchr(type, '.');

    if (audit)
        return "\033[2m"; /* dim */
    if (end && (strcmp(end, ".created") == 0 || strcmp(end, ".started") == 0))
        return "\033[32m";
    if (end && (strcmp(end, ".failed") == 0 || strcmp(end, ".refused") == 0))
        return "\033[31m";
    if (end && (strcmp(end, ".revoked") == 0 || strcmp(end, ".destroyed") == 0))
        return "\033[33m";
    return "\033[36m";
}

static void add_text(struct buf *to, const json_t *ev, const char *key, size_t width)
{
    const char *text = args_str(ev, key);
    AUTO(buf_done) struct buf safe = {0};
    size_t have;

    print_safe(&safe, str_of(text ? text : "-"));
    have = print_width(buf_str(&safe));
    buf_add_str(to, buf_str(&safe));
    for (; have < width; have++)
        buf_add_char(to, ' ');
}

static void add_line(struct buf *to, const json_t *ev, bool color)
{
    const char *time = args_str(ev, "time"), *type = args_str(ev, "type");
    const json_t *data = json_object_get(ev, "data");
    AUTO(mem_free) char *dumped = NULL;

    buf_printf(to, "%6" PRId64 "  ", args_int(ev, "seq", 0));
    print_safe(to, str_of(time ? time : "-"));
    buf_add_c(to, "  ");
    if (color)
        buf_add_c(to, type_color(type ? type : "", args_bool(ev, "audit")));
    add_text(to, ev, "type", 20);
    if (color)
        buf_add_c(to, "\033[0m");
    buf_add_c(to, "  ");
    add_text(to, ev, "object", 31);
    buf_add_c(to, "  ");
    add_text(to, ev, "actor", json_object_size(data) > 0 ? 29 : 0);
    if (json_object_size(data) > 0) {
        dumped = json_dumps(data, JSON_COMPACT);
        buf_add_c(to, "  ");
        print_safe(to, str_of(dumped));
    }
    buf_add_char(to, '\n');
}

static void print_event(const struct cli *c, const json_t *ev)
{
    AUTO(buf_done) struct buf out = {0};

    if (c->format == OUT_JSON) {
        print_json_line(&out, ev);
    } else if (c->format == OUT_YAML) {
        buf_add_c(&out, "---\n");
        yaml_write(&out, ev);
    } else {
        add_line(&out, ev, c->color);
    }
    cli_write(buf_str(&out));
}

/* --- following --- */

static int take_event(struct follow *f, const struct sse_event *from)
{
    AUTO(json_decref) json_t *ev = NULL;

    if (json_read(from->data, &ev, &f->e) < 0) {
        f->e.code = ERR_UNAVAILABLE;
        (void)err_wrap(&f->e, "an event of the stream is not JSON");
        return 1;
    }
    print_event(f->cli, ev);
    (void)snprintf(f->last_id, sizeof f->last_id, STR_FMT, STR_ARG(from->id));
    if (f->left > 0)
        f->left--;
    return f->left == 0;
}

static int on_part(void *arg, struct str bytes)
{
    struct follow *f = arg;
    struct sse_event ev;
    int r;

    while ((r = sse_reader_next(&f->in, &bytes, &ev)) > 0)
        if (take_event(f, &ev) != 0)
            return 1;
    if (r < 0)
        (void)err_set(&f->e, ERR_TOO_LARGE, 0, "an event of the stream is over 4 MiB");
    return r < 0;
}

/* One connection until it ends.  1: all requested events were printed; 0: it was lost, *e has the
 * reason, and *ret_lived tells whether the server had accepted it. */
static int follow_once(struct follow *f, const struct cmd *cmd, const json_t *args, bool *ret_lived,
                       struct err *e)
{
    AUTO(json_decref) json_t *asked = json_copy((json_t *)args);
    AUTO(target_done) struct target t = {0};
    AUTO(buf_done) struct buf target = {0};
    AUTO(reply_done) struct reply reply = {0};
    int r;

    if (f->last_id[0])
        json_object_set_new(asked, "since", json_string(f->last_id));
    json_object_del(asked, "limit");
    op_target(cmd->op, asked, &target);
    if (target_choose(f->cli, &t, e) < 0)
        return -1;
    r = request_run(&t,
                    &(struct request){.method = "GET",
                                      .target = buf_cstr(&target),
                                      .accept = "text/event-stream",
                                      .last_event = f->last_id[0] ? f->last_id : NULL,
                                      .part = on_part,
                                      .arg = f,
                                      .timeout_ms = SILENCE_MS},
                    &reply, e);
    *ret_lived = reply.status == 200;
    if (r > 0 && f->e.code != ERR_NONE) {
        *e = f->e;
        return -1;
    }
    if (r == 0)
        (void)err_set(e, ERR_UNAVAILABLE, 0, "the server ended the stream");
    if (r < 0 && !err_table[e->code].retry)
        return -1;
    return r > 0;
}

static void wait_ms(int64_t ms)
{
    struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

    (void)nanosleep(&t, NULL);
}

static int follow(struct cli *c, const struct cmd *cmd, const json_t *args, struct err *e)
{
    struct follow f = {.cli = c, .left = args_int(args, "limit", -1)};
    int64_t pause = RETRY_FIRST_MS;
    bool ever = false;
    int r;

    for (;;) {
        bool lived = false;

        /* an incomplete event is sent again in full */
        f.in = (struct sse_reader){.limit = EVENT_MAX};
        r = follow_once(&f, cmd, args, &lived, e);
        sse_reader_done(&f.in);
        ever = ever || lived;
        if (r != 0 || !ever)
            break;
        if (lived)
            pause = RETRY_FIRST_MS;
        cli_note("%s; trying again", e->msg);
        wait_ms(pause);
        pause = i64_min(pause * 2, RETRY_MAX_MS);
    }
    return r > 0 ? 0 : -1;
}

/* Adds the host of an event, the member people look for most: "api.test:443". */
static void add_hosts(json_t *rows)
{
    for (size_t i = 0; i < json_array_size(rows); i++) {
        json_t *ev = json_array_get(rows, i);
        const json_t *data = json_object_get(ev, "data");
        const char *host = args_str(data, "host");
        int64_t port = args_int(data, "port", 0);

        if (host && port > 0)
            json_object_set_new(ev, "host", json_sprintf("%s:%d", host, (int)port));
        else if (host)
            json_object_set_new(ev, "host", json_string(host));
    }
}

static int print_listed(struct cli *c, const struct cmd *cmd, const json_t *args, struct err *e)
{
    struct print_spec spec = op_print_spec(c, cmd->op);
    AUTO(json_decref) json_t *list = NULL;

    if (op_list(c, cmd->op, args, &list, e) < 0)
        return -1;
    add_hosts(json_object_get(list, cmd->op->items));
    spec.columns = "seq,time,type,object,actor,host";
    return cli_print(c, list, &spec, e);
}

int events_run(struct cli *c, const struct cmd *cmd, const json_t *args, struct err *e)
{
    if (args_bool(args, "follow"))
        return follow(c, cmd, args, e);
    if (c->format == OUT_TABLE)
        return print_listed(c, cmd, args, e);
    return op_verb_run(c, cmd, args, e);
}
