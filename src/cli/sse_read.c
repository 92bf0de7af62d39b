#include "cli/sse_read.h"

void sse_read_done(struct sse_read *s)
{
    buf_done(&s->line);
    buf_done(&s->data);
}

static void copy_field(char to[64], struct str value)
{
    if (value.n >= 64) /* no id or type of ours is that long */
        value.n = 63;
    memcpy(to, value.n ? value.p : "", value.n);
    to[value.n] = '\0';
}

static int dispatch(struct sse_read *s)
{
    int r = 0;

    if (s->has_data) {
        buf_truncate(&s->data, buf_len(&s->data) - 1); /* the last line's break */
        r = s->each(s->arg, s->id, s->event, buf_str(&s->data));
    }
    buf_clear(&s->data);
    s->event[0] = '\0';
    s->has_data = false;
    return r != 0;
}

static int take_line(struct sse_read *s, struct err *e)
{
    struct str line = buf_str(&s->line), value, name;

    if (line.n == 0)
        return dispatch(s);
    name = str_cut(line, ':', &value);
    if (value.n > 0 && value.p[0] == ' ')
        value = str_skip(value, 1);
    if (str_eq_c(name, "data")) {
        if (buf_len(&s->data) + value.n + 1 > SSE_EVENT_MAX)
            return err_set(e, ERR_TOO_LARGE, 0, "an event of the stream is over 4 MiB");
        buf_add_str(&s->data, value);
        buf_add_char(&s->data, '\n');
        s->has_data = true;
    } else if (str_eq_c(name, "event")) {
        copy_field(s->event, value);
    } else if (str_eq_c(name, "id") && (value.n == 0 || !memchr(value.p, '\0', value.n))) {
        copy_field(s->id, value);
    }
    return 0;
}

int sse_read_feed(struct sse_read *s, struct str bytes, struct err *e)
{
    for (size_t i = 0; i < bytes.n; i++) {
        char b = bytes.p[i];
        bool after_cr = s->cr;
        int r;

        s->cr = b == '\r';
        if (b == '\n' && after_cr)
            continue;
        if (b != '\n' && b != '\r') {
            if (buf_len(&s->line) >= SSE_EVENT_MAX)
                return err_set(e, ERR_TOO_LARGE, 0, "a line of the event stream is over 4 MiB");
            buf_add_char(&s->line, b);
            continue;
        }
        r = take_line(s, e);
        buf_clear(&s->line);
        if (r != 0)
            return r;
    }
    return 0;
}
