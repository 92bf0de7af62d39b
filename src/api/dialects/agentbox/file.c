/* file: reads and writes files of agentbox sessions. */
#include "api/dialects/agentbox/agentbox.h"
#include "api/share/sandbox.h"
#include "base/mem.h"
#include "link/guest.h"

#include <errno.h>

#define READABLE "/workspace:/mnt/user-data"
#define WRITABLE "/workspace:/mnt/user-data/outputs"

struct transfer { /* one WriteFile or ReadFile */
    struct waiter waiter;
    struct guest_pipe *pipe;
    struct buf bytes; /* to write, or read so far */
    struct buf path;
    struct str roots;
    size_t max;
    bool reads, binary, too_large;
};

static void transfer_free(struct transfer *t)
{
    buf_done(&t->bytes);
    buf_done(&t->path);
    mem_free(t);
}

static void asker_gone(struct waiter *w)
{
    struct transfer *t = CONTAINER_OF(w, struct transfer, waiter);

    if (t->pipe)
        guest_pipe_cancel(t->pipe);
    transfer_free(t);
}

/* --- errors in the original's words --- */

/* "/a/./b//../c" as "/a/c", without file access: for paths that do not exist, and for messages. */
static void normalise(struct str path, struct buf *to)
{
    while (path.n > 0) {
        struct str part = str_cut(path, '/', &path);

        if (part.n == 0 || str_eq_c(part, "."))
            continue;
        if (!str_eq_c(part, "..")) {
            buf_printf(to, "/" STR_FMT, STR_ARG(part));
            continue;
        }
        while (buf_len(to) > 0 && buf_data(to)[buf_len(to) - 1] != '/')
            buf_truncate(to, buf_len(to) - 1);
        if (buf_len(to) > 0)
            buf_truncate(to, buf_len(to) - 1);
    }
}

static bool seems_within(struct str path, struct str roots)
{
    while (roots.n > 0) {
        struct str root = str_cut(roots, ':', &roots);

        if (str_starts(path, root) && (path.n == root.n || path.p[root.n] == '/'))
            return true;
    }
    return false;
}

/* init returns EXDEV for a file that is outside once links are followed.  The original checks that
 * a file exists before it reads, and below a file nothing exists. */
static void explain(const struct transfer *t, const struct err *e, struct buf *to)
{
    AUTO(buf_done) struct buf plain = {0};
    bool gone = e->sys == ENOENT || (e->sys == ENOTDIR && t->reads);

    normalise(buf_str(&t->path), &plain);
    if (e->sys == EXDEV || (e->sys && !seems_within(buf_str(&plain), t->roots)))
        buf_add_c(to, AGENTBOX_NOT_ALLOWED);
    else if (gone)
        buf_add_c(to, "File not found");
    else if (e->sys)
        agentbox_say_errno(e->sys, buf_str(&plain), to);
    else
        buf_add_c(to, e->msg);
}

/* --- both directions --- */

static struct transfer *transfer_new(struct request *r, struct str path, const char *roots)
{
    struct transfer *t = xzalloc(sizeof *t);

    while (path.n > 1 && path.p[path.n - 1] == '/')
        path.n--;
    t->roots = str_of(roots);
    if (path.p[0] != '/')
        buf_add_c(&t->path, "/workspace/");
    buf_add_str(&t->path, path);
    t->waiter.gone = asker_gone;
    request_wait(r, &t->waiter);
    return t;
}

static int transfer_start(struct transfer *t, struct sandbox *s, struct guest_file_call *c,
                          const struct guest_pipe_ops *ops, struct err *e)
{
    struct guest *g = sandbox_guest(s, e);

    c->path = buf_str(&t->path);
    c->to = t->roots;
    c->flags |= GUEST_FILE_WITHIN;
    if (str_index(c->path, '\0') >= 0)
        return err_set(e, ERR_INVALID, 0, "embedded null byte");
    return g ? guest_file(g, c, ops, t, &t->pipe, e) : -1;
}

/* --- write --- */

static void answer_write(struct request *r, const char *error)
{
    const struct agentbox_write_file_response a = {
        .success = !error, .has_error = error != NULL, .error = str_of(error ? error : "")};

    if (r->rpc)
        rpc_reply(r, &a);
    else
        process_tell_write(r, &a);
}

static void write_ended(struct transfer *t, const struct err *e)
{
    struct request *r = waiter_end(&t->waiter);
    AUTO(buf_done) struct buf text = {0};

    if (e->code != ERR_NONE)
        explain(t, e, &text);
    answer_write(r, e->code != ERR_NONE ? buf_cstr(&text) : NULL);
    transfer_free(t);
}

static void write_done(struct guest_pipe *p, const struct guest_file_done *info,
                       const struct err *e)
{
    (void)info;
    write_ended(guest_pipe_arg(p), e);
}

static void write_more(struct guest_pipe *p)
{
    struct transfer *t = guest_pipe_arg(p);

    if (buf_len(&t->bytes) > 0)
        buf_take(&t->bytes, guest_pipe_write(p, buf_str(&t->bytes)));
    if (buf_len(&t->bytes) == 0)
        guest_pipe_eof(p);
}

void agentbox_write(struct request *r, struct sandbox *s,
                    const struct agentbox_write_file_request *q)
{
    static const struct guest_pipe_ops ops = {.room = write_more, .done = write_done};
    struct guest_file_call c = {.op = GUEST_FILE_WRITE,
                                .flags = GUEST_FILE_PARENTS,
                                .uid = GUEST_NO_ID,
                                .gid = GUEST_NO_ID};
    struct transfer *t;
    struct err e = {0};

    if (q->mode.n > 0 && !str_eq_c(q->mode, "w"))
        c.flags |= GUEST_FILE_APPEND;
    t = transfer_new(r, q->path, WRITABLE);
    buf_add_str(&t->bytes, q->data.n > 0 ? q->data : q->content);
    if (transfer_start(t, s, &c, &ops, &e) < 0)
        write_ended(t, &e);
    else
        write_more(t->pipe);
}

void agentbox_write_file(struct request *r, const void *in)
{
    const struct agentbox_write_file_request *q = in;
    struct sandbox *s = agentbox_session(r, q->session_id);

    if (s && q->path.n > 0)
        agentbox_write(r, s, q);
    else
        answer_write(r, s ? "Missing 'path' or 'content' field" : AGENTBOX_NO_SESSION);
}

/* --- read --- */

static void answer_read(struct request *r, const char *error, struct str bytes, bool binary)
{
    const struct agentbox_read_file_response a = {
        .success = !error,
        .has_content = !error && !binary,
        .content = binary ? (struct str){0} : bytes,
        .has_error = error != NULL,
        .error = str_of(error ? error : ""),
        .has_data = !error && binary,
        .data = binary ? bytes : (struct str){0},
    };

    if (r->rpc)
        rpc_reply(r, &a);
    else
        process_tell_read(r, &a);
}

static void read_ended(struct transfer *t, const struct err *e)
{
    struct request *r = waiter_end(&t->waiter);
    AUTO(buf_done) struct buf text = {0};

    if (t->too_large)
        buf_printf(&text, "the file is larger than %zu bytes, the most that one answer holds",
                   t->max);
    else if (e->code != ERR_NONE)
        explain(t, e, &text);
    else if (!t->binary)
        (void)agentbox_say_codec(buf_str(&t->bytes), &text);
    if (buf_len(&text) > 0)
        answer_read(r, buf_cstr(&text), (struct str){0}, false);
    else
        answer_read(r, NULL, buf_str(&t->bytes), t->binary);
    transfer_free(t);
}

static void read_done(struct guest_pipe *p, const struct guest_file_done *info, const struct err *e)
{
    (void)info;
    read_ended(guest_pipe_arg(p), e);
}

static void read_data(struct guest_pipe *p, struct str bytes)
{
    struct transfer *t = guest_pipe_arg(p);
    const struct err none = {0};

    t->too_large = bytes.n > t->max - buf_len(&t->bytes);
    if (!t->too_large) {
        buf_add_str(&t->bytes, bytes);
        guest_pipe_consume(p, bytes.n);
        return;
    }
    guest_pipe_cancel(p);
    read_ended(t, &none);
}

void agentbox_read(struct request *r, struct sandbox *s, const struct agentbox_read_file_request *q)
{
    static const struct guest_pipe_ops ops = {.data = read_data, .done = read_done};
    struct guest_file_call c = {.op = GUEST_FILE_READ, .length = GUEST_NO_LIMIT};
    struct transfer *t = transfer_new(r, q->path, READABLE);
    struct err e = {0};

    t->reads = true;
    t->binary = q->binary;
    t->max = (size_t)r->api->c.conf->grpc_message_max;
    if (transfer_start(t, s, &c, &ops, &e) < 0)
        read_ended(t, &e);
}

void agentbox_read_file(struct request *r, const void *in)
{
    const struct agentbox_read_file_request *q = in;
    struct sandbox *s = agentbox_session(r, q->session_id);

    if (s && q->path.n > 0)
        agentbox_read(r, s, q);
    else
        answer_read(r, s ? "Missing 'path' field" : AGENTBOX_NO_SESSION, (struct str){0}, false);
}
