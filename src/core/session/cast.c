/* cast: output as an asciicast, version 2. */
#include "core/session/cast.h"

#include "base/utf8.h"
#include "proto/json.h"

#include <stdio.h>

void cast_put_head(const struct cast_head *h, struct buf *to)
{
    AUTO(buf_done) struct buf command = {0};
    struct jw w = {.to = to};

    for (size_t i = 0; i < h->argc; i++) {
        buf_add_c(&command, i ? " " : "");
        buf_add_str(&command, h->argv[i]);
    }
    jw_object(&w);
    jw_kint(&w, "version", 2);
    jw_kint(&w, "width", h->cols);
    jw_kint(&w, "height", h->rows);
    jw_kint(&w, "timestamp", h->start_ms / 1000);
    jw_kstr(&w, "command", buf_str(&command));
    jw_kstr(&w, "title", h->title);
    jw_key(&w, "env");
    jw_object(&w);
    jw_kc(&w, "TERM", "xterm-256color");
    jw_object_end(&w);
    jw_object_end(&w);
    buf_add_char(to, '\n');
}

/* Moves its clock on to this time. */
static void pass_time(struct cast *c, int64_t time_us)
{
    int64_t pause = c->last_us > 0 ? time_us - c->last_us : 0;

    if (pause < 0)
        pause = 0;
    if (c->idle_us > 0 && pause > c->idle_us)
        pause = c->idle_us;
    c->shown_us += pause;
    c->last_us = time_us;
}

static void put_event(const struct cast *c, const char *kind, struct str data, struct buf *to)
{
    struct jw w = {.to = to};
    char at[40];

    (void)snprintf(at, sizeof at, "%lld.%06lld", (long long)(c->shown_us / 1000000),
                   (long long)(c->shown_us % 1000000));
    jw_array(&w);
    jw_raw(&w, str_of(at));
    jw_c(&w, kind);
    jw_str(&w, data);
    jw_array_end(&w);
    buf_add_char(to, '\n');
}

static void put_held(struct cast *c, bool last, struct buf *to)
{
    AUTO(buf_done) struct buf text = {0};

    buf_take(&c->held, utf8_replace(&text, buf_str(&c->held), last));
    if (buf_len(&text) > 0)
        put_event(c, "o", buf_str(&text), to);
}

void cast_put_output(struct cast *c, int64_t time_us, struct str bytes, struct buf *to)
{
    pass_time(c, time_us);
    buf_add_str(&c->held, bytes);
    put_held(c, false, to);
}

void cast_put_size(struct cast *c, int64_t time_us, int rows, int cols, struct buf *to)
{
    char size[32];

    pass_time(c, time_us);
    (void)snprintf(size, sizeof size, "%dx%d", cols, rows);
    put_event(c, "r", str_of(size), to);
}

void cast_put_end(struct cast *c, struct buf *to)
{
    put_held(c, true, to);
}

void cast_done(struct cast *c)
{
    buf_done(&c->held);
}
