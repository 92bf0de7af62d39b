#include "cli/verbs.h"

#include "base/mem.h"
#include "cli/sse_read.h"
#include "cli/verb_op.h"
#include "proto/json.h"

#include <inttypes.h>
#include <time.h>

#define SILENCE_MS 90000 /* the server's keep-alive comments come much more often */
#define RETRY_FIRST_MS 500
#define RETRY_MAX_MS 10000

struct follow {
    struct cli *cli;
    struct sse_read in;
    struct err e;
    int64_t left; /* events still wanted; -1: all */
    bool seen;    /* this connection gave something */
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
    add_text(to, ev, "object", 30);
    buf_add_c(to, "  ");
    add_text(to, ev, "actor", 0);
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
    AUTO(mem_free) char *dumped = NULL;

    if (c->format == OUT_JSON) { /* one a line, for jq and friends */
        dumped = json_dumps(ev, JSON_COMPACT);
        buf_printf(&out, "%s\n", dumped);
    } else if (c->format == OUT_YAML) {
        buf_add_c(&out, "---\n");
        print_yaml(&out, ev);
    } else {
        add_line(&out, ev, c->color);
    }
    cli_write(buf_str(&out));
}

/* --- following --- */

static int on_event(void *arg, const char *id, const char *event, struct str data)
{
    struct follow *f = arg;
    AUTO(json_decref) json_t *ev = NULL;

    (void)id;
    (void)event;
    if (json_read(data, &ev, &f->e) < 0) {
        f->e.code = ERR_UNAVAILABLE;
        (void)err_wrap(&f->e, "an event of the stream is not JSON");
        return 1;
    }
    print_event(f->cli, ev);
    if (f->left > 0)
        f->left--;
    return f->left == 0;
}

static int on_part(void *arg, struct str bytes)
{
    struct follow *f = arg;

    f->seen = true;
    return sse_read_feed(&f->in, bytes, &f->e);
}

/* One connection until it ends.  1: all that was wanted is here; 0: it broke, *e says why. */
static int follow_once(struct follow *f, const struct cmd *cmd, const json_t *args, struct err *e)
{
    AUTO(json_decref) json_t *asked = json_copy((json_t *)(uintptr_t)args);
    AUTO(target_done) struct target t = {0};
    AUTO(buf_done) struct buf target = {0};
    AUTO(reply_done) struct reply reply = {0};
    int r;

    if (f->in.id[0])
        json_object_set_new(asked, "since", json_string(f->in.id));
    json_object_del(asked, "limit");
    op_target(cmd->op, asked, &target);
    if (target_choose(f->cli, &t, e) < 0)
        return -1;
    r = request_run(&t,
                    &(struct request){.method = "GET",
                                      .target = buf_cstr(&target),
                                      .accept = "text/event-stream",
                                      .last_event = f->in.id[0] ? f->in.id : NULL,
                                      .part = on_part,
                                      .arg = f,
                                      .timeout_ms = SILENCE_MS},
                    &reply, e);
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

    f.in.each = on_event;
    f.in.arg = &f;
    for (;;) {
        f.seen = false;
        r = follow_once(&f, cmd, args, e);
        ever = ever || f.seen;
        if (r != 0 || !ever)
            break;
        if (f.seen)
            pause = RETRY_FIRST_MS;
        (void)fprintf(stderr, "holt: %s; trying again\n", e->msg);
        wait_ms(pause);
        pause = i64_min(pause * 2, RETRY_MAX_MS);
        buf_clear(&f.in.line); /* half an event is sent again, whole */
        buf_clear(&f.in.data);
        f.in.has_data = f.in.cr = false;
    }
    sse_read_done(&f.in);
    return r > 0 ? 0 : -1;
}

int events_run(struct cli *c, const struct cmd *cmd, const json_t *args, struct err *e)
{
    if (args_bool(args, "follow"))
        return follow(c, cmd, args, e);
    return op_verb_run(c, cmd, args, e);
}
