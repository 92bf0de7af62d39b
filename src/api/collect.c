#include "api/collect.h"

#include "api/sandbox.h"
#include "base/enc.h"

static int on_bytes(void *arg, enum exec_which stream, int64_t offset, int64_t time_us,
                    struct str bytes)
{
    struct collect *c = arg;
    struct buf *to = &c->streams[stream == EXEC_STDERR];
    size_t n = size_min(bytes.n, c->max - buf_len(to));

    (void)offset, (void)time_us;
    buf_add(to, bytes.p, n);
    c->truncated = c->truncated || n < bytes.n;
    return 0; /* what is past the limit is read and dropped: the log is bounded too */
}

static int on_gap(void *arg, enum exec_which stream, int64_t from, int64_t to)
{
    struct collect *c = arg;

    (void)stream, (void)from, (void)to;
    c->truncated = true;
    return 0;
}

static void on_end(void *arg, const struct err *e)
{
    struct collect *c = arg;

    c->reader = NULL;
    c->done(c->arg, e);
}

void collect_start(struct collect *c, struct exec *x, size_t max,
                   void (*done)(void *arg, const struct err *e), void *arg)
{
    static const struct exec_reader_ops ops = {.bytes = on_bytes, .gap = on_gap, .end = on_end};

    *c = (struct collect){.x = exec_ref(x), .max = max, .done = done, .arg = arg};
    c->reader = exec_read(x, EXEC_BOTH, 0, 0, false, &ops, c);
}

void collect_done(struct collect *c)
{
    exec_reader_end(c->reader);
    c->reader = NULL;
    buf_done(&c->streams[0]);
    buf_done(&c->streams[1]);
    c->x = exec_unref(c->x);
}

/* Cut in the middle of a character, text is still text. */
static struct str whole_characters(struct str s, bool cut)
{
    for (size_t back = 0; cut && back < 4 && back < s.n; back++) {
        struct str shorter = {s.p, s.n - back};

        if (str_is_utf8(shorter))
            return shorter;
    }
    return s;
}

static void write_stream(struct jw *w, const struct buf *b, bool cut, const char *text,
                         const char *base64)
{
    AUTO(buf_done) struct buf encoded = {0};
    struct str s = whole_characters(buf_str(b), cut);
    bool is_text = str_is_utf8(s);

    jw_key(w, text);
    if (is_text)
        jw_str(w, s);
    else
        jw_null(w);
    if (!is_text)
        enc_base64(&encoded, s.p, s.n);
    jw_key(w, base64);
    if (is_text)
        jw_null(w);
    else
        jw_str(w, buf_str(&encoded));
}

void collect_write(struct jw *w, const struct exec *x, const struct collect *c)
{
    jw_object(w);
    exec_write_members(w, x);
    if (c) {
        write_stream(w, &c->streams[0], c->truncated, "stdout", "stdout_base64");
        write_stream(w, &c->streams[1], c->truncated, "stderr", "stderr_base64");
    } else {
        jw_kc(w, "stdout", NULL);
        jw_kc(w, "stdout_base64", NULL);
        jw_kc(w, "stderr", NULL);
        jw_kc(w, "stderr_base64", NULL);
    }
    jw_kbool(w, "truncated", c && c->truncated);
    jw_object_end(w);
}
