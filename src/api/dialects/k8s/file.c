/* file: files of a sandbox for the clients of the two runtimes. */
#include "api/dialects/k8s/file.h"

#include "api/share/pipe.h"
#include "base/clock.h"
#include "base/enc.h"
#include "base/mem.h"
#include "net/static.h"
#include "proto/multipart.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>

#define LIST_BYTES (16 * 1024 * 1024)
#define HEADERS_MAX 4

struct file_call { /* in the exchange's arena */
    struct pipe pipe;
    struct sandbox *s; /* with a reference */
    struct str path;   /* inside */
    struct str shown;  /* as the client named it */
    bool sandboxd, only_exists, head;
    struct buf records; /* of a listing */
    bool too_large;
    int status;
    struct http_header h[HEADERS_MAX];
    size_t header_count;
};

/* --- errors --- */

static int status_of(const struct err *e)
{
    switch (e->sys) {
    case ENOENT:
    case ENOTDIR:
        return 404;
    case EXDEV:
    case EACCES:
    case EPERM:
        return 403;
    case ENOTEMPTY:
    case EEXIST:
        return 409;
    case EISDIR:
        return 400;
    default:
        return err_table[e->code].http;
    }
}

static const char *code_of(int status)
{
    switch (status) {
    case 400:
        return "INVALID_ARGUMENT";
    case 403:
        return "PERMISSION_DENIED";
    case 404:
        return "NOT_FOUND";
    case 409:
        return "CONFLICT";
    case 502:
    case 503:
        return "UNAVAILABLE";
    default:
        return "INTERNAL";
    }
}

static void send_failure(struct request *r, bool sandboxd, int status, const char *text)
{
    json_t *o = json_object();

    if (sandboxd)
        json_object_set_new(o, "code", json_string(code_of(status)));
    json_object_set_new(o, "message", k8s_str(str_of(text)));
    k8s_send(r, status, o);
}

static void fail(struct file_call *f, const struct err *e)
{
    if (xchg_head_sent(f->pipe.r->x))
        xchg_abort(f->pipe.r->x);
    else
        send_failure(f->pipe.r, f->sandboxd, status_of(e), e->msg);
}

/* --- paths --- */

/* Below the base, without leaving it; whoever may call this may run commands in the sandbox, so
 * this is for clients that expect it, not a boundary. */
static int read_path(struct request *r, struct str raw, struct str *shown, struct str *ret,
                     struct err *e)
{
    AUTO(buf_done) struct buf path = {0};
    struct str left;

    if (request_decode(r, raw, shown, e) < 0)
        return -1;
    left = *shown;
    if (!str_starts(left, STR("/")))
        buf_add_c(&path, K8S_BASE);
    while (left.n > 0) {
        struct str part = str_cut(left, '/', &left);

        if (str_eq_c(part, ".."))
            return err_set(e, ERR_FORBIDDEN, EXDEV, "Access denied");
        if (part.n > 0 && !str_eq_c(part, "."))
            buf_printf(&path, "/" STR_FMT, STR_ARG(part));
    }
    if (!str_starts(buf_str(&path), STR(K8S_BASE)) ||
        (buf_len(&path) > strlen(K8S_BASE) && buf_data(&path)[strlen(K8S_BASE)] != '/'))
        return err_set(e, ERR_FORBIDDEN, EXDEV, "Access denied");
    *ret = arena_str(xchg_arena(r->x), buf_str(&path));
    return 0;
}

static void call_closed(struct pipe *p)
{
    struct file_call *f = CONTAINER_OF(p, struct file_call, pipe);

    buf_done(&f->records);
    f->s = sandbox_unref(f->s);
}

/* NULL: the reply is sent. */
static struct file_call *call_new(struct request *r, struct sandbox *s, struct str raw,
                                  bool sandboxd)
{
    struct file_call *f = arena_zalloc(xchg_arena(r->x), sizeof *f);
    struct err e = {0};

    f->pipe.r = r;
    f->sandboxd = sandboxd;
    if (read_path(r, raw, &f->shown, &f->path, &e) < 0) {
        fail(f, &e);
        return NULL;
    }
    f->s = s;
    return f;
}

static void audit(struct file_call *f)
{
    struct request *r = f->pipe.r;
    struct sandbox_info i;

    sandbox_info(f->s, &i);
    request_audit(r, "request.read",
                  arena_printf(xchg_arena(r->x), "sandbox/%s:" STR_FMT, i.id,
                               (int)size_min(f->path.n, EVENT_NAME_MAX / 2), f->path.p),
                  200);
}

static void start(struct file_call *f, const struct pipe_ops *ops, struct guest_file_call *c)
{
    struct err e = {0};
    struct guest *g = sandbox_guest(f->s, &e);

    f->pipe.ops = ops;
    if (!g) {
        send_failure(f->pipe.r, f->sandboxd, 502, e.msg);
        return;
    }
    c->path = f->path;
    if (c->op == GUEST_FILE_READ || c->op == GUEST_FILE_WRITE) {
        c->flags |= GUEST_FILE_WITHIN;
        c->to = STR(K8S_BASE);
    }
    if (!f->pipe.taken)
        (void)sandbox_ref(f->s);
    pipe_start(&f->pipe, g, c);
    if (!f->pipe.taken) /* it failed at once: closed is not called */
        f->s = sandbox_unref(f->s);
}

/* --- reading --- */

static void send_head(struct file_call *f)
{
    if (xchg_head_sent(f->pipe.r->x))
        return;
    f->pipe.r->status = f->status;
    xchg_head(f->pipe.r->x, f->status, f->h, f->header_count);
}

static size_t read_data(struct pipe *p, struct str bytes)
{
    send_head(CONTAINER_OF(p, struct file_call, pipe));
    return xchg_write(p->r->x, bytes.p, bytes.n) ? 0 : bytes.n;
}

static void read_done(struct pipe *p, const struct guest_file_done *info, const struct err *e)
{
    struct file_call *f = CONTAINER_OF(p, struct file_call, pipe);

    (void)info;
    if (e->code != ERR_NONE) {
        fail(f, e);
        return;
    }
    send_head(f);
    xchg_end(p->r->x, NULL, 0);
}

static const struct pipe_ops read_ops = {
    .data = read_data, .done = read_done, .closed = call_closed};

static void add_header(struct file_call *f, struct str name, struct str value)
{
    f->h[f->header_count++] = (struct http_header){name, value};
}

/* -1: the reply is sent. */
static int plan_read(struct file_call *f, const struct guest_file_done *info,
                     struct guest_file_call *c)
{
    struct arena *a = xchg_arena(f->pipe.r->x);
    int64_t size = (int64_t)info->size, from = 0, length = size;
    enum static_range range = RANGE_NONE;

    if (f->sandboxd)
        range = static_parse_range(http_req_header(xchg_req(f->pipe.r->x), "range"), size, &from,
                                   &length);
    f->status = 200;
    add_header(f, STR("content-type"), STR("application/octet-stream"));
    add_header(f, STR("x-content-type-options"), STR("nosniff"));
    if (range == RANGE_BAD) {
        send_failure(f->pipe.r, true, 416, "nothing of the range is in the file");
        return -1;
    }
    if (range == RANGE_OK) {
        f->status = 206;
        add_header(f, STR("content-range"),
                   str_of(arena_printf(a, "bytes %" PRId64 "-%" PRId64 "/%" PRId64, from,
                                       from + length - 1, size)));
    } else {
        from = 0;
        length = size;
    }
    c->offset = (uint64_t)from;
    c->length = size > 0 ? (uint64_t)length : GUEST_NO_LIMIT; /* or its length is unknown */
    if (size > 0)
        add_header(f, STR("content-length"), str_of(arena_printf(a, "%" PRId64, length)));
    return 0;
}

/* --- listing --- */

static size_t list_data(struct pipe *p, struct str bytes)
{
    struct file_call *f = CONTAINER_OF(p, struct file_call, pipe);

    f->too_large = f->too_large || buf_len(&f->records) + bytes.n > LIST_BYTES;
    if (!f->too_large)
        buf_add_str(&f->records, bytes);
    return bytes.n;
}

static json_t *entry(const struct guest_file_done *d, bool sandboxd)
{
    const char *type = d->kind == DT_DIR ? "directory" : "file";
    char time[CLOCK_TEXT];
    json_t *o = json_object();

    json_object_set_new(o, "name", k8s_str(d->name));
    json_object_set_new(o, "size", json_integer((json_int_t)d->size));
    json_object_set_new(o, "type", json_string(sandboxd && d->kind == DT_LNK ? "symlink" : type));
    if (sandboxd) {
        json_object_set_new(o, "modified_at", json_string(clock_text((int64_t)d->mtime_ms, time)));
        json_object_set_new(o, "mode", json_sprintf("%04o", d->mode & 07777));
    } else {
        json_object_set_new(o, "mod_time", json_real((double)d->mtime_ms / 1000.0));
    }
    return o;
}

static int by_name(const void *a, const void *b)
{
    const struct guest_file_done *x = a, *y = b;

    return str_cmp(x->name, y->name);
}

/* NULL: *e. */
static json_t *entries(struct file_call *f, struct err *e)
{
    struct str left = buf_str(&f->records);
    struct guest_file_done *all, one;
    size_t n = 0, count = 0;
    json_t *list;
    int r;

    while ((r = guest_record_next(&guest_file_done_layout, &left, &one, e)) > 0)
        count++;
    if (r < 0)
        return NULL;
    all = xzalloc((count + 1) * sizeof *all);
    left = buf_str(&f->records);
    while (n < count && guest_record_next(&guest_file_done_layout, &left, &all[n], e) > 0)
        n++;
    qsort(all, n, sizeof *all, by_name);
    list = json_array();
    for (size_t i = 0; i < n; i++)
        if (str_is_utf8(all[i].name))
            json_array_append_new(list, entry(&all[i], f->sandboxd));
    mem_free(all);
    return list;
}

static void list_done(struct pipe *p, const struct guest_file_done *info, const struct err *cause)
{
    struct file_call *f = CONTAINER_OF(p, struct file_call, pipe);
    struct err e = *cause;
    json_t *list = NULL;

    (void)info;
    if (e.code == ERR_NONE && f->too_large)
        err_set(&e, ERR_TOO_LARGE, 0, "the directory has too many entries to list");
    if (e.code == ERR_NONE)
        list = entries(f, &e);
    if (!list)
        fail(f, &e);
    else if (f->sandboxd)
        k8s_send(p->r, 200, json_pack("{s:o,s:o}", "path", k8s_str(f->shown), "entries", list));
    else
        k8s_send(p->r, 200, list);
}

static const struct pipe_ops list_ops = {
    .data = list_data, .done = list_done, .closed = call_closed};

void k8s_list_files(struct request *r, struct sandbox *s, struct str path)
{
    struct file_call *f = call_new(r, s, path, false);

    if (!f)
        return;
    audit(f);
    start(f, &list_ops, &(struct guest_file_call){.op = GUEST_FILE_LIST});
}

/* --- a look first --- */

static void looked_up(struct pipe *p, const struct guest_file_done *info, const struct err *e)
{
    struct file_call *f = CONTAINER_OF(p, struct file_call, pipe);
    struct guest_file_call c = {.op = GUEST_FILE_READ};

    if (f->only_exists) {
        if (e->code == ERR_NONE || status_of(e) == 404)
            k8s_send(
                p->r, 200,
                json_pack("{s:o,s:b}", "path", k8s_str(f->shown), "exists", e->code == ERR_NONE));
        else
            fail(f, e);
        return;
    }
    if (e->code != ERR_NONE) {
        fail(f, e);
        return;
    }
    if (info->kind == DT_DIR && f->sandboxd && !f->head) {
        start(f, &list_ops, &(struct guest_file_call){.op = GUEST_FILE_LIST});
        return;
    }
    if (info->kind == DT_DIR && !f->head) {
        send_failure(p->r, f->sandboxd, 404, "File not found");
        return;
    }
    if (plan_read(f, info, &c) < 0)
        return;
    if (f->head) {
        send_head(f);
        xchg_end(p->r->x, NULL, 0);
    } else {
        start(f, &read_ops, &c);
    }
}

static const struct pipe_ops look_ops = {.done = looked_up, .closed = call_closed};

static void look(struct file_call *f)
{
    start(f, &look_ops, &(struct guest_file_call){.op = GUEST_FILE_STAT});
}

void k8s_download(struct request *r, struct sandbox *s, struct str path)
{
    struct file_call *f = call_new(r, s, path, false);

    if (!f)
        return;
    audit(f);
    look(f);
}

void k8s_exists(struct request *r, struct sandbox *s, struct str path)
{
    struct file_call *f = call_new(r, s, path, false);

    if (!f)
        return;
    f->only_exists = true;
    look(f);
}

/* --- writing a file that has arrived as a whole --- */

struct write_job {
    struct waiter waiter;
    struct guest_pipe *g;
    struct buf bytes;
    bool sandboxd;
};

static void write_free(struct write_job *j)
{
    buf_done(&j->bytes);
    mem_free(j);
}

static void writer_gone(struct waiter *w)
{
    struct write_job *j = CONTAINER_OF(w, struct write_job, waiter);

    if (j->g)
        guest_pipe_cancel(j->g);
    write_free(j);
}

static void write_done(struct guest_pipe *g, const struct guest_file_done *info,
                       const struct err *e)
{
    struct write_job *j = guest_pipe_arg(g);
    struct request *r = waiter_end(&j->waiter);

    (void)info;
    if (e->code != ERR_NONE)
        send_failure(r, j->sandboxd, status_of(e), e->msg);
    else if (j->sandboxd)
        xchg_reply_with(r->x, r->status = 204, NULL, 0, STR(""));
    else
        k8s_send(r, 200, json_pack("{s:s}", "message", "File uploaded successfully."));
    write_free(j);
}

static void write_more(struct guest_pipe *g)
{
    struct write_job *j = guest_pipe_arg(g);

    if (buf_len(&j->bytes) > 0)
        buf_take(&j->bytes, guest_pipe_write(g, buf_str(&j->bytes)));
    if (buf_len(&j->bytes) == 0)
        guest_pipe_eof(g);
}

/* Takes bytes. */
static void write_file(struct file_call *f, struct buf *bytes, uint32_t mode)
{
    static const struct guest_pipe_ops ops = {.room = write_more, .done = write_done};
    struct write_job *j = xzalloc(sizeof *j);
    struct err e = {0};
    struct guest *g = sandbox_guest(f->s, &e);

    j->bytes = *bytes;
    *bytes = (struct buf){0};
    j->sandboxd = f->sandboxd;
    if (!g || guest_file(g,
                         &(struct guest_file_call){.op = GUEST_FILE_WRITE,
                                                   .flags = GUEST_FILE_PARENTS | GUEST_FILE_WITHIN,
                                                   .path = f->path,
                                                   .to = STR(K8S_BASE),
                                                   .mode = mode,
                                                   .uid = GUEST_NO_ID,
                                                   .gid = GUEST_NO_ID},
                         &ops, j, &j->g, &e) < 0) {
        send_failure(f->pipe.r, f->sandboxd, g ? status_of(&e) : 502, e.msg);
        write_free(j);
        return;
    }
    j->waiter.gone = writer_gone;
    request_wait(f->pipe.r, &j->waiter);
    write_more(j->g);
}

/* The part "file" of a form: its bytes, and its name.  -1: it has none. */
static int read_form(struct request *r, struct str body, struct buf *bytes, struct str *name,
                     struct err *e)
{
    struct multipart m = {0};
    enum multipart_event what = MULTIPART_MORE;
    bool in_file = false, found = false;
    int read = multipart_init(&m, http_req_header(xchg_req(r->x), "content-type"), e);

    if (read < 0)
        return -1;
    multipart_feed(&m, body);
    while ((read = multipart_next(&m, &what, e)) == 0 && what != MULTIPART_MORE &&
           what != MULTIPART_END) {
        if (what == MULTIPART_PART) {
            in_file = !found && str_eq_c(m.name, "file") && m.filename.p;
            if (in_file)
                *name = arena_str(xchg_arena(r->x), m.filename);
            found = found || in_file;
        } else if (what == MULTIPART_DATA && in_file) {
            buf_add_str(bytes, m.data);
        }
    }
    multipart_done(&m);
    if (read == 0 && (what != MULTIPART_END || !found))
        return err_set(e, ERR_INVALID, 0, "the form must have a part 'file' with a filename");
    return read;
}

struct upload {
    struct str path; /* as sent; empty: the part's name */
    uint32_t mode;
    bool sandboxd;
};

/* The name of a part is no part of a URL: encoded, it can be read like one. */
static struct str encoded(struct request *r, struct str name)
{
    AUTO(buf_done) struct buf b = {0};

    enc_percent(&b, name);
    return arena_str(xchg_arena(r->x), buf_str(&b));
}

static void form_arrived(struct request *r, struct str body)
{
    const struct upload *u = r->in;
    AUTO(buf_done) struct buf bytes = {0};
    struct sandbox *s = k8s_target(r, NULL); /* it may be gone by now */
    struct str name = STR("");
    struct file_call *f;
    struct err e = {0};

    if (!s)
        return;
    if (read_form(r, body, &bytes, &name, &e) < 0) {
        send_failure(r, u->sandboxd, 400, e.msg);
        return;
    }
    f = call_new(r, s, u->path.n > 0 ? u->path : encoded(r, name), u->sandboxd);
    if (f)
        write_file(f, &bytes, u->mode);
}

static void collect_form(struct request *r, const struct upload *u)
{
    struct upload *kept = arena_zalloc(xchg_arena(r->x), sizeof *kept);

    *kept = *u;
    r->in = kept;
    request_collect(r, form_arrived);
}

void k8s_upload(struct request *r)
{
    collect_form(r, &(struct upload){0});
}

/* --- sandboxd's files --- */

static void put_done(struct pipe *p, const struct guest_file_done *info, const struct err *e)
{
    struct file_call *f = CONTAINER_OF(p, struct file_call, pipe);

    (void)info;
    if (e->code != ERR_NONE)
        fail(f, e);
    else
        xchg_reply_with(p->r->x, p->r->status = 204, NULL, 0, STR(""));
}

static const struct pipe_ops put_ops = {.done = put_done, .closed = call_closed};

static bool read_mode(struct request *r, uint32_t *ret)
{
    struct str text = STR("");
    uint32_t n = 0;

    if (http_query_get(xchg_req(r->x)->query, "mode", xchg_arena(r->x), &text) < 0 || text.n > 5)
        return false;
    for (size_t i = 0; i < text.n; i++) {
        if (text.p[i] < '0' || text.p[i] > '7')
            return false;
        n = n * 8 + (uint32_t)(text.p[i] - '0');
    }
    *ret = n;
    return n <= 07777;
}

static void put_file(struct request *r, struct sandbox *s, struct str path)
{
    struct str type = http_req_header(xchg_req(r->x), "content-type");
    struct upload u = {.path = path, .sandboxd = true};
    struct file_call *f;

    if (!read_mode(r, &u.mode)) {
        send_failure(r, true, 400, "mode must be octal digits");
        return;
    }
    if (str_starts(type, STR("multipart/"))) {
        collect_form(r, &u);
        return;
    }
    f = call_new(r, s, path, true);
    if (!f)
        return;
    f->pipe.upload = f->pipe.to_disk = true;
    start(f, &put_ops,
          &(struct guest_file_call){.op = GUEST_FILE_WRITE,
                                    .flags = GUEST_FILE_PARENTS,
                                    .mode = u.mode,
                                    .uid = GUEST_NO_ID,
                                    .gid = GUEST_NO_ID});
}

static void delete_file(struct request *r, struct sandbox *s, struct str path)
{
    struct file_call *f = call_new(r, s, path, true);
    struct str recursive = STR("");

    if (!f)
        return;
    if (http_query_get(xchg_req(r->x)->query, "recursive", xchg_arena(r->x), &recursive) < 0 ||
        str_eq_c(f->path, K8S_BASE)) {
        send_failure(r, true, 400, "the base directory cannot be removed");
        return;
    }
    start(
        f, &put_ops,
        &(struct guest_file_call){.op = GUEST_FILE_REMOVE,
                                  .flags = str_eq_c(recursive, "true") ? GUEST_FILE_RECURSIVE : 0});
}

void k8s_files(struct request *r, struct sandbox *s, struct str path)
{
    struct str method = xchg_req(r->x)->method;
    bool head = str_eq_c(method, "HEAD");
    struct file_call *f;

    if (str_eq_c(method, "PUT")) {
        put_file(r, s, path);
    } else if (str_eq_c(method, "DELETE")) {
        delete_file(r, s, path);
    } else if (head || str_eq_c(method, "GET")) {
        f = call_new(r, s, path, true);
        if (!f)
            return;
        f->head = head;
        audit(f);
        look(f);
    } else {
        send_failure(r, true, 405, "GET, HEAD, PUT and DELETE are known here");
    }
}
