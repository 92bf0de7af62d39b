/* collect: collects a command's output for one reply. */
#include "api/share/collect.h"

#include "api/share/sandbox.h"
#include "base/enc.h"
#include "base/log.h"

/* A cut in the middle of a character is moved to its border. */
static struct str whole_characters(struct str s, bool cut)
{
    for (size_t back = 0; cut && back < 4 && back < s.n; back++) {
        struct str shorter = {s.p, s.n - back};

        if (str_is_utf8(shorter))
            return shorter;
    }
    return s;
}

/* A stream longer than the limit becomes its beginning, a line about the omitted bytes, and its
 * end. */
struct collected {
    struct buf *to;
    int64_t *omitted;
    int64_t end;  /* of the stream when reading began */
    size_t head;  /* wanted bytes of its beginning */
    int64_t tail; /* its end is wanted from this offset on */
};

static struct collected part_of(struct collect *c, enum exec_which stream)
{
    bool err = stream == EXEC_STDERR;
    struct exec_info i;
    struct collected p = {.to = &c->streams[err], .omitted = &c->omitted[err]};

    exec_info(c->x, &i);
    p.end = err ? i.err_end : i.out_end;
    p.head = p.end > (int64_t)c->max ? c->max / 2 : c->max;
    p.tail = p.end > (int64_t)c->max ? p.end - (int64_t)(c->max - p.head) : 0;
    return p;
}

static void leave_out(struct collected *p, int64_t until)
{
    int64_t from = (int64_t)buf_len(p->to);
    struct str whole = whole_characters(buf_str(p->to), true);

    buf_truncate(p->to, whole.n);
    *p->omitted = until - from;
    if (*p->omitted > 0)
        buf_printf(p->to, "\n[%lld bytes are left out here]\n", (long long)*p->omitted);
}

static int on_bytes(void *arg, enum exec_which stream, int64_t offset, int64_t time_us,
                    struct str bytes)
{
    struct collect *c = arg;
    struct collected p = part_of(c, stream);
    size_t skip;

    (void)time_us;
    if (p.tail == 0) {
        buf_add(p.to, bytes.p, size_min(bytes.n, c->max - buf_len(p.to)));
        return 0;
    }
    c->truncated = true;
    if (*p.omitted == 0 && buf_len(p.to) < p.head && offset == (int64_t)buf_len(p.to))
        buf_add(p.to, bytes.p, size_min(bytes.n, p.head - buf_len(p.to)));
    if (offset + (int64_t)bytes.n <= p.tail)
        return 0;
    skip = offset < p.tail ? (size_t)(p.tail - offset) : 0;
    if (*p.omitted == 0) {
        for (size_t k = 0; k < 3 && skip < bytes.n && (bytes.p[skip] & 0xc0) == 0x80; k++)
            skip++; /* the rest of a character */
        leave_out(&p, offset + (int64_t)skip);
    }
    buf_add_str(p.to, str_skip(bytes, skip));
    return 0;
}

/* The oldest output was dropped: keep some of what follows as the beginning. */
static int on_gap(void *arg, enum exec_which stream, int64_t from, int64_t to)
{
    struct collect *c = arg;
    struct collected p = part_of(c, stream);
    struct err e;

    c->truncated = true;
    if (from == 0 && exec_beginning(c->x, stream == EXEC_STDERR, p.head, p.to, &e) < 0)
        log_warn("the beginning of an output log cannot be read", LOG_E(&e));
    if (p.tail <= to && *p.omitted == 0)
        leave_out(&p, to);
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

static void write_stream(struct jw *w, const struct buf *b, const char *text, const char *base64)
{
    AUTO(buf_done) struct buf encoded = {0};
    struct str s = buf_str(b);
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

static void write_members(struct jw *w, const struct exec *x, const struct collect *c)
{
    exec_write_members(w, x);
    if (c) {
        write_stream(w, &c->streams[0], "stdout", "stdout_base64");
        write_stream(w, &c->streams[1], "stderr", "stderr_base64");
    } else {
        jw_kc(w, "stdout", NULL);
        jw_kc(w, "stdout_base64", NULL);
        jw_kc(w, "stderr", NULL);
        jw_kc(w, "stderr_base64", NULL);
    }
    jw_kbool(w, "truncated", c && c->truncated);
    jw_kint(w, "stdout_omitted", c ? c->omitted[0] : 0);
    jw_kint(w, "stderr_omitted", c ? c->omitted[1] : 0);
}

void collect_write(struct jw *w, const struct exec *x, const struct collect *c)
{
    jw_object(w);
    write_members(w, x, c);
    jw_object_end(w);
}

void collect_write_run(struct jw *w, const struct exec *x, const struct collect *c)
{
    jw_object(w);
    write_members(w, x, c);
    sandbox_write_warnings(w, exec_sandbox(x));
    jw_object_end(w);
}
