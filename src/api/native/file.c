/* file: files of a sandbox: read, write, stat, list, archives. */
#include "ops/file.h"
#include "api/native/handlers.h"
#include "api/share/pipe.h"
#include "api/share/sandbox.h"
#include "base/clock.h"
#include "core/space.h"
#include "net/static.h"

#include <dirent.h>
#include <inttypes.h>

static struct pipe *pipe_new(struct request *r, const struct pipe_ops *ops)
{
    struct pipe *p = arena_zalloc(xchg_arena(r->x), sizeof *p);

    *p = (struct pipe){.r = r, .ops = ops};
    return p;
}

static uint32_t id_of(int64_t asked)
{
    return asked == OP_ABSENT ? 0 : (uint32_t)asked;
}

/* --- stat --- */

const char *file_kind(uint8_t dirent_type)
{
    static const struct {
        uint8_t type;
        int kind; /* in op_file_kinds */
    } kinds[] = {{DT_REG, 0},  {DT_DIR, 1}, {DT_LNK, 2}, {DT_FIFO, 3},
                 {DT_SOCK, 4}, {DT_CHR, 5}, {DT_BLK, 6}};

    for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
        if (kinds[i].type == dirent_type)
            return op_file_kinds[kinds[i].kind];
    return op_file_kinds[7];
}

static struct str decimal(struct request *r, int64_t v)
{
    return str_of(arena_printf(xchg_arena(r->x), "%" PRId64, v));
}

#define STAT_HEADERS 8
static size_t stat_headers(struct request *r, const struct guest_file_done *i,
                           struct http_header *h)
{
    char *text = arena_alloc(xchg_arena(r->x), CLOCK_TEXT);
    size_t n = 0;

    h[n++] = (struct http_header){STR("x-holt-kind"), str_of(file_kind(i->kind))};
    h[n++] = (struct http_header){STR("x-holt-mode"),
                                  str_of(arena_printf(xchg_arena(r->x), "%04o", i->mode & 07777))};
    h[n++] = (struct http_header){STR("x-holt-uid"), decimal(r, i->uid)};
    h[n++] = (struct http_header){STR("x-holt-gid"), decimal(r, i->gid)};
    h[n++] = (struct http_header){STR("x-holt-modified"),
                                  str_of(clock_text((int64_t)i->mtime_ms, text))};
    h[n++] = (struct http_header){
        STR("etag"), str_of(arena_printf(xchg_arena(r->x), "\"%" PRIx64 "-%" PRIx64 "\"",
                                         i->mtime_ms, i->size))};
    return n;
}

static void stat_done(struct pipe *p, const struct guest_file_done *info, const struct err *e)
{
    struct http_header h[STAT_HEADERS];
    size_t n;

    if (e->code != ERR_NONE) {
        pipe_fail(p, e);
        return;
    }
    n = stat_headers(p->r, info, h);
    h[n++] = (struct http_header){STR("content-length"), decimal(p->r, (int64_t)info->size)};
    p->r->status = 200;
    xchg_head(p->r->x, 200, h, n);
    xchg_end(p->r->x, NULL, 0);
}

void file_stat_run(struct request *r)
{
    static const struct pipe_ops ops = {.done = stat_done};
    const struct file_path_in *in = r->in;
    struct guest *g = request_guest(r, in->id);

    if (g)
        pipe_start(pipe_new(r, &ops), g,
                   &(struct guest_file_call){.op = GUEST_FILE_STAT, .path = in->path});
}

/* --- reading: stat first, for the length and the range --- */

struct download {
    struct pipe pipe;
    struct http_header h[STAT_HEADERS + 8];
    size_t header_count;
    int status;
};

static void send_head(struct download *d)
{
    if (xchg_head_sent(d->pipe.r->x))
        return;
    d->pipe.r->status = d->status;
    xchg_head(d->pipe.r->x, d->status, d->h, d->header_count);
}

static size_t download_data(struct pipe *p, struct str bytes)
{
    send_head(CONTAINER_OF(p, struct download, pipe));
    return xchg_write(p->r->x, bytes.p, bytes.n) ? 0 : bytes.n;
}

static void download_done(struct pipe *p, const struct guest_file_done *info, const struct err *e)
{
    (void)info;
    if (e->code != ERR_NONE) {
        pipe_fail(p, e);
        return;
    }
    send_head(CONTAINER_OF(p, struct download, pipe));
    xchg_end(p->r->x, NULL, 0);
}

static const struct pipe_ops download_ops = {.data = download_data, .done = download_done};

/* Whatever the content, a browser must download it and not run it. */
static void add_attachment(struct download *d, struct str path, const char *suffix,
                           const char *type)
{
    struct request *r = d->pipe.r;
    struct str name = path;
    char *text;

    while (name.n > 1 && name.p[name.n - 1] == '/')
        name.n--;
    for (ptrdiff_t at; (at = str_index(name, '/')) >= 0 && name.n > 1;)
        name = str_skip(name, (size_t)at + 1);
    text = arena_printf(xchg_arena(r->x), "attachment; filename=\"" STR_FMT "%s\"",
                        (int)size_min(name.n, 200), name.p, suffix);
    for (char *c = text + strlen("attachment; filename=\""); c[1]; c++)
        if (*c < ' ' || *c > '~' || *c == '"' || *c == '\\')
            *c = '_';
    d->h[d->header_count++] = (struct http_header){STR("content-disposition"), str_of(text)};
    d->h[d->header_count++] = (struct http_header){STR("content-type"), str_of(type)};
    d->h[d->header_count++] = (struct http_header){STR("x-content-type-options"), STR("nosniff")};
}

/* Decides status, length and range.  -1: the reply is sent. */
static int plan(struct download *d, const struct guest_file_done *info, struct guest_file_call *c)
{
    struct request *r = d->pipe.r;
    int64_t size = (int64_t)info->size, start = 0, length = size;
    enum static_range range =
        static_parse_range(http_req_header(xchg_req(r->x), "range"), size, &start, &length);
    struct err e = {0};

    d->status = 200;
    if (range == RANGE_BAD) {
        xchg_add_header(r->x, "content-range",
                        str_of(arena_printf(xchg_arena(r->x), "bytes */%" PRId64, size)));
        err_set(&e, ERR_RANGE, 0, "'" STR_FMT "' has %" PRId64 " bytes: nothing of the range",
                (int)size_min(c->path.n, 100), c->path.p, size);
        request_fail(r, &e);
        return -1;
    }
    if (range == RANGE_OK) {
        d->status = 206;
        d->h[d->header_count++] = (struct http_header){
            STR("content-range"),
            str_of(arena_printf(xchg_arena(r->x), "bytes %" PRId64 "-%" PRId64 "/%" PRId64, start,
                                start + length - 1, size))};
    } else {
        start = 0;
        length = size;
    }
    c->offset = (uint64_t)start;
    c->length = GUEST_NO_LIMIT;
    if (size == 0)
        return 0; /* or its length is unknown */
    c->length = (uint64_t)length;
    d->h[d->header_count++] = (struct http_header){STR("content-length"), decimal(r, length)};
    return 0;
}

static void path_looked_up(struct pipe *p, const struct guest_file_done *info, const struct err *e)
{
    struct download *d = CONTAINER_OF(p, struct download, pipe);
    const struct file_path_in *in = p->r->in;
    struct guest_file_call c = {.op = GUEST_FILE_READ, .path = in->path};
    struct err wrong = {0};
    struct guest *g;

    if (e->code != ERR_NONE) {
        pipe_fail(p, e);
        return;
    }
    if (info->kind != DT_REG) {
        err_set(&wrong, ERR_INVALID, 0, "'" STR_FMT "' is not a file but a %s",
                (int)size_min(in->path.n, 100), in->path.p, file_kind(info->kind));
        err_hint(&wrong, "read a directory with the archive or files/list operation");
        pipe_fail(p, &wrong);
        return;
    }
    d->header_count = stat_headers(p->r, info, d->h);
    d->h[d->header_count++] = (struct http_header){STR("accept-ranges"), STR("bytes")};
    add_attachment(d, in->path, "", "application/octet-stream");
    if (plan(d, info, &c) < 0)
        return;
    g = request_guest(p->r, in->id);
    if (!g)
        return;
    p->ops = &download_ops;
    pipe_start(p, g, &c);
}

static struct download *download_new(struct request *r, const struct pipe_ops *ops)
{
    struct download *d = arena_zalloc(xchg_arena(r->x), sizeof *d);

    d->pipe = (struct pipe){.r = r, .ops = ops};
    return d;
}

void file_read_run(struct request *r)
{
    static const struct pipe_ops ops = {.done = path_looked_up};
    const struct file_path_in *in = r->in;
    struct guest *g = request_guest(r, in->id);

    if (g)
        pipe_start(&download_new(r, &ops)->pipe, g,
                   &(struct guest_file_call){.op = GUEST_FILE_STAT, .path = in->path});
}

void archive_read_run(struct request *r)
{
    const struct file_path_in *in = r->in;
    struct guest *g = request_guest(r, in->id);
    struct download *d;

    if (!g)
        return;
    d = download_new(r, &download_ops);
    d->status = 200;
    add_attachment(d, in->path, ".tar", "application/x-tar");
    pipe_start(&d->pipe, g, &(struct guest_file_call){.op = GUEST_FILE_TAR_OUT, .path = in->path});
}

/* --- changing --- */

static const struct pipe_ops plain_ops = {0}; /* 204, or the failure */

/* Octal, at most 07777. */
static int mode_parse(struct str text, uint32_t *ret, struct err *e)
{
    uint32_t mode = 0;

    for (size_t i = 0; i < text.n; i++) {
        if (text.p[i] < '0' || text.p[i] > '7')
            return err_set(e, ERR_INVALID, 0, "field 'mode' must be octal digits, such as 0644");
        mode = mode * 8 + (uint32_t)(text.p[i] - '0');
    }
    if (mode > 07777)
        return err_set(e, ERR_INVALID, 0, "field 'mode' must be at most 7777");
    *ret = mode;
    return 0;
}

static uint32_t flag(bool on, enum guest_file_flag f)
{
    return on ? (uint32_t)f : 0;
}

/* Files of an upper on disk share the state directory's filesystem; those in memory do not. */
static void upload(struct request *r, struct str id, struct guest *g,
                   const struct guest_file_call *c)
{
    const struct sandbox *s;
    struct sandbox_info i;
    struct pipe *p;
    struct err e = {0};

    s = sandbox_find(r->api->c.sandboxes, &r->who, id, &e);
    sandbox_info(s, &i);
    if (!i.traits.memory_upper && space_ask(r->api->c.space, 0, &e) < 0) {
        request_fail(r, &e);
        return;
    }
    p = pipe_new(r, &plain_ops);
    p->upload = true;
    p->to_disk = !i.traits.memory_upper;
    pipe_start(p, g, c);
}

void file_write_run(struct request *r)
{
    const struct file_write_in *in = r->in;
    struct guest_file_call c = {
        .op = GUEST_FILE_WRITE,
        .path = in->path,
        .flags = flag(in->append, GUEST_FILE_APPEND) | flag(in->exclusive, GUEST_FILE_EXCLUSIVE) |
                 flag(in->parents, GUEST_FILE_PARENTS),
        .length = GUEST_NO_LIMIT,
        .uid = id_of(in->uid),
        .gid = id_of(in->gid),
    };
    struct guest *g;
    struct err e = {0};

    if (mode_parse(in->mode, &c.mode, &e) < 0) {
        request_fail(r, &e);
        return;
    }
    g = request_guest(r, in->id);
    if (g)
        upload(r, in->id, g, &c);
}

void archive_write_run(struct request *r)
{
    const struct archive_write_in *in = r->in;
    struct guest *g = request_guest(r, in->id);

    if (g)
        upload(r, in->id, g,
               &(struct guest_file_call){.op = GUEST_FILE_TAR_IN,
                                         .path = in->path,
                                         .flags = flag(in->parents, GUEST_FILE_PARENTS),
                                         .uid = GUEST_NO_ID,
                                         .gid = GUEST_NO_ID});
}

void file_remove_run(struct request *r)
{
    const struct file_remove_in *in = r->in;
    struct guest *g = request_guest(r, in->id);

    if (g)
        pipe_start(pipe_new(r, &plain_ops), g,
                   &(struct guest_file_call){.op = GUEST_FILE_REMOVE,
                                             .path = in->path,
                                             .flags = flag(in->recursive, GUEST_FILE_RECURSIVE)});
}

void file_mkdir_run(struct request *r)
{
    const struct file_mkdir_in *in = r->in;
    struct guest_file_call c = {
        .op = GUEST_FILE_MKDIR, .path = in->path, .flags = flag(in->parents, GUEST_FILE_PARENTS)};
    struct guest *g;
    struct err e = {0};

    if (mode_parse(in->mode, &c.mode, &e) < 0) {
        request_fail(r, &e);
        return;
    }
    g = request_guest(r, in->id);
    if (g)
        pipe_start(pipe_new(r, &plain_ops), g, &c);
}

void file_move_run(struct request *r)
{
    const struct file_move_in *in = r->in;
    struct guest *g = request_guest(r, in->id);

    if (g)
        pipe_start(
            pipe_new(r, &plain_ops), g,
            &(struct guest_file_call){.op = GUEST_FILE_RENAME, .path = in->from, .to = in->to});
}
