/* sse: writes and parses text/event-stream. */
#include "proto/sse.h"

#include <errno.h>

static void add_field(struct buf *to, const char *name, struct str value)
{
    buf_add_c(to, name);
    for (size_t i = 0; i < value.n; i++)
        if (value.p[i] != '\r' && value.p[i] != '\n' && value.p[i] != '\0')
            buf_add_char(to, value.p[i]);
    buf_add_char(to, '\n');
}

/* Cuts *s after its first line break (CRLF, CR or LF); returns the line. */
static struct str cut_line(struct str *s, bool *ret_more)
{
    struct str line;
    size_t n = 0, skip;

    while (n < s->n && s->p[n] != '\r' && s->p[n] != '\n')
        n++;
    *ret_more = n < s->n;
    skip = n + (*ret_more ? 1 : 0);
    if (n + 1 < s->n && s->p[n] == '\r' && s->p[n + 1] == '\n')
        skip++;
    line = str_make(s->p, n);
    *s = str_skip(*s, skip);
    return line;
}

void sse_write(struct buf *to, struct str id, struct str event, struct str data)
{
    bool more = true;

    if (id.n > 0)
        add_field(to, "id: ", id);
    if (event.n > 0)
        add_field(to, "event: ", event);
    while (more) {
        buf_add_c(to, "data: ");
        buf_add_str(to, cut_line(&data, &more));
        buf_add_char(to, '\n');
    }
    buf_add_char(to, '\n');
}

void sse_write_comment(struct buf *to, struct str text)
{
    add_field(to, ": ", text);
    buf_add_char(to, '\n');
}

void sse_reader_done(struct sse_reader *r)
{
    buf_done(&r->line);
    buf_done(&r->data);
    buf_done(&r->event);
    buf_done(&r->id);
}

static void set(struct buf *b, struct str value)
{
    buf_clear(b);
    buf_add_str(b, value);
}

static int take_field(struct sse_reader *r, struct str line)
{
    struct str value, name;
    uint64_t ms;

    if (line.p[0] == ':')
        return 0;
    name = str_cut(line, ':', &value);
    if (value.n > 0 && value.p[0] == ' ')
        value = str_skip(value, 1);
    if (str_eq_c(name, "data")) {
        if (buf_len(&r->data) + value.n + 1 > r->limit)
            return -EMSGSIZE;
        if (r->any_data)
            buf_add_char(&r->data, '\n');
        buf_add_str(&r->data, value);
        r->any_data = true;
    } else if (str_eq_c(name, "event")) {
        set(&r->event, value);
    } else if (str_eq_c(name, "id") && str_index(value, '\0') < 0) {
        set(&r->id, value);
    } else if (str_eq_c(name, "retry") && str_parse_u64(value, &ms) == 0 && ms < INT32_MAX) {
        r->retry_ms = (int64_t)ms;
    }
    return 0;
}

/* Handles a complete line.  1: an event is complete too. */
static int end_line(struct sse_reader *r, struct sse_event *ret)
{
    struct str line = buf_str(&r->line);

    if (!r->started && str_starts(line, STR("\xef\xbb\xbf")))
        line = str_skip(line, 3);
    r->started = true;
    if (line.n > 0)
        return take_field(r, line);
    if (!r->any_data) {
        buf_clear(&r->event);
        return 0;
    }
    *ret = (struct sse_event){buf_str(&r->id), buf_str(&r->event), buf_str(&r->data)};
    if (ret->event.n == 0)
        ret->event = STR("message");
    r->any_data = false;
    r->handed_out = true;
    return 1;
}

int sse_reader_next(struct sse_reader *r, struct str *in, struct sse_event *ret)
{
    if (r->handed_out) {
        buf_clear(&r->data);
        buf_clear(&r->event);
        r->handed_out = false;
    }
    while (in->n > 0) {
        char c = in->p[0];
        int code;

        *in = str_skip(*in, 1);
        if (c == '\n' && r->after_cr) {
            r->after_cr = false;
            continue;
        }
        r->after_cr = c == '\r';
        if (c != '\r' && c != '\n') {
            if (buf_len(&r->line) >= r->limit)
                return -EMSGSIZE;
            buf_add_char(&r->line, c);
            continue;
        }
        code = end_line(r, ret);
        buf_clear(&r->line);
        if (code != 0)
            return code;
    }
    return 0;
}
