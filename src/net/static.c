/* static: replies with the content of a file: ETag, ranges, conditions. */
#include "net/static.h"

#include "base/mem.h"
#include "net/server.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#define PIECE (64 * 1024)

/* stat ──▶ head ──▶ (read ──▶ write ──▶ maybe wait for drained)* ──▶ end
 * At most one file operation runs at a time; the job outlives the exchange until it has
 * returned. */
struct job {
    struct xchg *x; /* NULL: the exchange has ended */
    struct static_info info;
    int fd;
    uv_loop_t *loop;
    uv_fs_t fs;
    bool busy; /* a file operation is in progress */
    char *piece;
    int64_t at, left;
    char etag[64];
};

static void go_on(struct job *j);

static void on_fd_closed(uv_fs_t *fs)
{
    struct job *j = fs->data;

    uv_fs_req_cleanup(fs);
    free(j);
}

static void job_free(struct job *j)
{
    free(j->piece);
    if (j->fd < 0) {
        free(j);
        return;
    }
    if (uv_fs_close(j->loop, &j->fs, j->fd, on_fd_closed) < 0)
        free(j);
}

static void on_closed(struct xchg *x, bool done)
{
    struct job *j = xchg_arg(x);

    if (j->info.ended)
        j->info.ended(j->info.arg, done);
    j->x = NULL;
    if (!j->busy)
        job_free(j);
}

static void on_drained(struct xchg *x)
{
    struct job *j = xchg_arg(x);

    if (!j->busy)
        go_on(j);
}

static const struct xchg_ops job_ops = {.drained = on_drained, .closed = on_closed};

static struct job *job_new(struct xchg *x, const struct static_info *i)
{
    struct job *j = xzalloc(sizeof *j);

    j->x = x;
    j->info = *i;
    j->fd = -1;
    j->loop = server_loop(xchg_server(x));
    j->fs.data = j;
    xchg_handle(x, &job_ops, j);
    return j;
}

/* RFC 9110 section 13.1.2: weak comparison with each tag of a list. */
bool static_etag_matches(struct str list, struct str etag)
{
    struct str opaque = str_starts(etag, STR("W/")) ? str_skip(etag, 2) : etag;

    while (list.n > 0) {
        struct str rest, one = str_trim(str_cut(list, ',', &rest));

        if (str_starts(one, STR("W/")))
            one = str_skip(one, 2);
        if (str_eq_c(one, "*") || str_eq(one, opaque))
            return true;
        list = rest;
    }
    return false;
}

enum static_range static_parse_range(struct str value, int64_t size, int64_t *ret_start,
                                     int64_t *ret_length)
{
    struct str first, last;
    uint64_t a = 0, b = 0;
    int ra, rb;

    if (!str_starts(value, STR("bytes=")) || str_index(value, ',') >= 0)
        return RANGE_NONE;
    value = str_skip(value, 6);
    first = str_cut(value, '-', &last);
    ra = first.n > 0 ? str_parse_u64(first, &a) : 0;
    rb = last.n > 0 ? str_parse_u64(last, &b) : 0;
    if (!last.p || ra == -EINVAL || rb == -EINVAL || (first.n == 0 && last.n == 0) ||
        (first.n > 0 && last.n > 0 && ra == 0 && rb == 0 && a > b))
        return RANGE_NONE;
    if (rb == -ERANGE || b > INT64_MAX)
        b = INT64_MAX;
    if (first.n == 0) { /* the last b bytes */
        if (b == 0 || size == 0)
            return RANGE_BAD;
        *ret_length = i64_min((int64_t)b, size);
        *ret_start = size - *ret_length;
        return RANGE_OK;
    }
    if (ra == -ERANGE || a >= (uint64_t)size)
        return RANGE_BAD;
    *ret_start = (int64_t)a;
    *ret_length = last.n > 0 ? i64_min((int64_t)b, size - 1) - (int64_t)a + 1 : size - (int64_t)a;
    return RANGE_OK;
}

/* Returns the status of the reply and sets the part to send. */
static int choose_part(struct job *j, int64_t size)
{
    const struct http_req *r = xchg_req(j->x);
    struct str if_none = http_req_header(r, "if-none-match");
    struct str range = http_req_header(r, "range"), if_range = http_req_header(r, "if-range");
    struct str etag = str_of(j->info.etag);
    enum static_range kind = RANGE_NONE;

    j->at = 0;
    j->left = size;
    if (if_none.p && etag.p && static_etag_matches(if_none, etag))
        return 304;
    /* If-Range needs a strong tag; a date is not one (section 13.1.5). */
    if (range.p && str_eq_c(r->method, "GET") &&
        (!if_range.p || (etag.p && !str_starts(etag, STR("W/")) && str_eq(if_range, etag))))
        kind = static_parse_range(range, size, &j->at, &j->left);
    if (kind == RANGE_BAD)
        return 416;
    return kind == RANGE_OK ? 206 : 200;
}

static void refuse_range(struct job *j, int64_t size)
{
    char text[48];
    struct err e;

    (void)snprintf(text, sizeof text, "bytes */%lld", (long long)size);
    xchg_add_header(j->x, "content-range", str_of(text));
    (void)err_set(&e, ERR_RANGE, 0, "the object has %lld bytes", (long long)size);
    xchg_fail(j->x, &e);
}

static void send_head(struct job *j, int64_t size)
{
    struct arena *a = xchg_arena(j->x);
    struct http_header h[6];
    size_t n = 0;
    int status = choose_part(j, size);

    if (status == 416) {
        refuse_range(j, size);
        return;
    }
    if (j->info.etag)
        h[n++] = (struct http_header){STR("etag"), str_of(j->info.etag)};
    if (j->info.cache)
        h[n++] = (struct http_header){STR("cache-control"), str_of(j->info.cache)};
    if (status != 304) {
        h[n++] = (struct http_header){STR("content-type"), str_of(j->info.type)};
        h[n++] = (struct http_header){STR("accept-ranges"), STR("bytes")};
        h[n++] = (struct http_header){STR("content-length"),
                                      str_of(arena_printf(a, "%lld", (long long)j->left))};
    }
    if (status == 206)
        h[n++] = (struct http_header){
            STR("content-range"),
            str_of(arena_printf(a, "bytes %lld-%lld/%lld", (long long)j->at,
                                (long long)(j->at + j->left - 1), (long long)size))};
    xchg_head(j->x, status, h, n);
    if (status == 304 || str_eq_c(xchg_req(j->x)->method, "HEAD"))
        j->left = 0;
    go_on(j);
}

static void on_read(uv_fs_t *fs)
{
    struct job *j = fs->data;
    ssize_t n = fs->result;

    uv_fs_req_cleanup(fs);
    j->busy = false;
    if (!j->x) {
        job_free(j);
        return;
    }
    if (n <= 0) { /* an error, or the file has become shorter */
        xchg_abort(j->x);
        return;
    }
    j->at += n;
    j->left -= n;
    if (xchg_write(j->x, j->piece, (size_t)n) == 0 || j->left == 0)
        go_on(j);
}

static void read_piece(struct job *j)
{
    uv_buf_t b;

    if (!j->piece)
        j->piece = xmalloc(PIECE);
    b = uv_buf_init(j->piece, (unsigned)i64_min(PIECE, j->left));
    j->busy = uv_fs_read(j->loop, &j->fs, j->fd, &b, 1, j->at, on_read) == 0;
    if (!j->busy)
        xchg_abort(j->x);
}

static void go_on(struct job *j)
{
    if (j->left == 0)
        xchg_end(j->x, NULL, 0);
    else
        read_piece(j);
}

static bool refuse_method(struct xchg *x)
{
    struct str m = xchg_req(x)->method;
    struct err e;

    if (str_eq_c(m, "GET") || str_eq_c(m, "HEAD"))
        return false;
    xchg_add_header(x, "allow", STR("GET, HEAD"));
    (void)err_set(&e, ERR_METHOD, 0, "only GET and HEAD work here");
    xchg_fail(x, &e);
    return true;
}

static void fail_file(struct job *j, int uv_error)
{
    struct err e;

    (void)err_set(&e, err_code_from_errno(-uv_error), 0, "the file cannot be read: %s",
                  uv_strerror(uv_error));
    xchg_fail(j->x, &e);
}

static void on_stat(uv_fs_t *fs)
{
    struct job *j = fs->data;
    uv_stat_t st = fs->statbuf;
    int r = (int)fs->result;

    uv_fs_req_cleanup(fs);
    j->busy = false;
    if (!j->x) {
        job_free(j);
    } else if (r < 0 || !S_ISREG(st.st_mode)) {
        fail_file(j, r < 0 ? r : UV_ENOENT);
    } else {
        if (!j->info.etag) {
            (void)snprintf(j->etag, sizeof j->etag, "\"%llx-%llx-%llx\"",
                           (unsigned long long)st.st_size, (unsigned long long)st.st_mtim.tv_sec,
                           (unsigned long long)st.st_mtim.tv_nsec);
            j->info.etag = j->etag;
        }
        send_head(j, (int64_t)st.st_size);
    }
}

static void stat_file(struct job *j)
{
    int r = uv_fs_fstat(j->loop, &j->fs, j->fd, on_stat);

    j->busy = r == 0;
    if (r < 0)
        fail_file(j, r);
}

void static_fd(struct xchg *x, int fd, const struct static_info *i)
{
    struct job *j;

    if (refuse_method(x)) {
        (void)close(fd);
        return;
    }
    j = job_new(x, i);
    j->fd = fd;
    stat_file(j);
}
