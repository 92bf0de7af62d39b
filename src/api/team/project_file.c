/* project_file: uploads and downloads of project files. */
#include "api/team/project_file.h"

#include "api/team/team_job.h"
#include "base/fd.h"
#include "base/mem.h"
#include "core/blob.h"
#include "net/static.h"

/* --- upload --- */

static void upload_free(struct file_upload *u)
{
    if (u->r || u->in || u->storing)
        return;
    arena_done(&u->arena);
    u->ops->free(u);
}

static void finish(struct file_upload *u, const struct err *e)
{
    if (u->over)
        return;
    u->over = true;
    if (u->in)
        blob_in_abort(TAKE(u->in));
    if (!u->r)
        return;
    if (team_is_refusal(e))
        request_audit(u->r, "request.refused", NULL, err_table[e->code].http);
    if (e->code == ERR_NONE)
        u->ops->reply(u->r, &u->f);
    else
        request_fail(u->r, e);
}

static void consume(struct file_upload *u)
{
    if (u->pending == 0 && u->r)
        xchg_consume(u->r->x, u->owed);
    if (u->pending == 0)
        u->owed = 0;
}

static void on_consumed(void *arg, size_t n)
{
    struct file_upload *u = arg;

    u->pending -= n;
    consume(u);
}

static int put_work(struct store_tx *tx, void *arg, struct err *e)
{
    struct file_upload *u = arg;

    team_enter(&u->t, tx);
    return file_put(&u->t, &u->f, e);
}

static void put_done(void *arg, const struct err *e)
{
    struct file_upload *u = arg;

    if (e->code == ERR_NONE) /* before the release, which keeps a blob that the new row names */
        team_settle(u->api, &u->t);
    blob_release(u->api->c.blobs, u->hash, e->code == ERR_NONE);
    finish(u, e);
    u->storing = false;
    upload_free(u);
}

static void on_stored(void *arg, const struct blob *b, const struct err *e)
{
    struct file_upload *u = arg;

    u->in = NULL;
    u->pending = 0;
    u->storing = true; /* until this function ends: the reply may close the exchange */
    if (e->code != ERR_NONE) {
        finish(u, e);
        consume(u);
        u->storing = false;
        upload_free(u);
        return;
    }
    memcpy(u->hash, b->name, sizeof u->hash);
    u->f.hash = str_of(u->hash);
    u->f.size = b->size;
    store_write(u->api->c.store, STORE_DURABLE, put_work, put_done, u);
}

void file_upload_write(struct file_upload *u, struct str bytes)
{
    if (!u->in)
        return;
    u->pending += bytes.n;
    blob_in_write(u->in, bytes);
}

void file_upload_whole(struct file_upload *u)
{
    struct err e = {0};

    if (!u->in)
        return;
    if (request_still_may(u->r, &e) < 0)
        finish(u, &e);
    else
        blob_in_end(u->in);
}

static void on_body(struct xchg *x, struct str part)
{
    struct file_upload *u = xchg_arg(x);
    struct err e = {0};

    u->owed += part.n;
    if (u->in && u->ops->body(u, part, &e) < 0)
        finish(u, &e);
    if (!u->in)
        u->pending = 0;
    consume(u);
}

static void on_body_end(struct xchg *x)
{
    struct file_upload *u = xchg_arg(x);
    struct err e = {0};

    if (!u->in)
        return;
    if (!u->ops->body_end)
        file_upload_whole(u);
    else if (u->ops->body_end(u, &e) < 0)
        finish(u, &e);
}

static void on_closed(struct xchg *x, bool done)
{
    struct file_upload *u = xchg_arg(x);
    struct request *r = TAKE(u->r);

    if (u->in)
        blob_in_abort(TAKE(u->in));
    upload_free(u);
    request_end(r, done);
}

void file_upload_start(struct file_upload *u, struct request *r, struct str project)
{
    static const struct blob_in_ops blob_ops = {.consumed = on_consumed, .done = on_stored};
    static const struct xchg_ops ops = {
        .body = on_body, .body_end = on_body_end, .closed = on_closed};
    const struct config *conf = r->api->c.conf;
    struct err e = {0};

    u->r = r;
    u->api = r->api;
    u->f.project = arena_str(&u->arena, project);
    xchg_limit_body(r->x, 0); /* its parts have limits of their own */
    xchg_handle(r->x, &ops, u);
    if (team_of(r, &u->arena, &u->t, &e) < 0 ||
        blob_in_new(r->api->c.blobs, conf->file_bytes, &blob_ops, u, &u->in, &e) < 0)
        finish(u, &e);
    else if (xchg_req(r->x)->content_length == 0)
        on_body_end(r->x);
}

/* --- download --- */

struct download {
    struct waiter waiter;
    struct api *api;
    struct arena arena;
    struct team t;
    struct board_file f; /* the request, then the result */
};

static void download_free(struct download *d)
{
    arena_done(&d->arena);
    mem_free(d);
}

static void file_sent(void *arg, bool done)
{
    request_end(arg, done);
}

static void send_file(struct request *r, const struct board_file *f, int fd)
{
    struct arena *a = xchg_arena(r->x);
    struct str name = f->name;

    for (ptrdiff_t at; (at = str_index(name, '/')) >= 0;)
        name = str_skip(name, (size_t)at + 1);
    /* A browser must download the bytes and not run them. */
    xchg_add_header(r->x, "content-disposition",
                    str_of(arena_printf(a, "attachment; filename=\"" STR_FMT "\"", STR_ARG(name))));
    xchg_add_header(r->x, "x-content-type-options", STR("nosniff"));
    xchg_add_header(r->x, "x-checksum-sha256", arena_str(a, f->hash));
    xchg_add_header(r->x, "x-holt-version", str_of(arena_printf(a, "%lld", (long long)f->version)));
    r->status = 200;
    request_audit(r, "request.read", NULL, 200);
    static_fd(r->x, fd,
              &(struct static_info){.type = "application/octet-stream",
                                    .cache = "no-cache",
                                    .etag = arena_printf(a, "\"" STR_FMT "\"", STR_ARG(f->hash)),
                                    .ended = file_sent,
                                    .arg = r});
}

static void blob_opened(void *arg, int fd, const struct err *e)
{
    struct download *d = arg;
    struct request *r = waiter_end(&d->waiter);
    struct err why = *e;

    if (r && fd >= 0) {
        send_file(r, &d->f, fd);
    } else if (r) {
        if (e->code == ERR_NOT_FOUND) {
            err_set(&why, ERR_NOT_FOUND, 0,
                    "the content of file '" STR_FMT "' is missing on this server",
                    STR_ARG(d->f.name));
            err_object(&why, "file", arena_cstr(&d->arena, d->f.name));
            err_hint(&why,
                     "it is on the node that received it, or was lost from the state directory");
        }
        request_fail(r, &why);
    } else {
        fd_close(fd);
    }
    download_free(d);
}

static int file_find(struct store_tx *tx, void *arg, struct err *e)
{
    struct download *d = arg;

    team_enter(&d->t, tx);
    return file_need(&d->t, d->f.project, d->f.name, d->f.version, &d->f, e);
}

static void file_found(void *arg, const struct err *e)
{
    struct download *d = arg;
    struct request *r;

    if (e->code == ERR_NONE && d->waiter.r) {
        blob_open(d->api->c.blobs, d->f.hash, blob_opened, d);
        return;
    }
    r = waiter_end(&d->waiter);
    if (r)
        request_fail(r, e);
    download_free(d);
}

void file_download(struct request *r, struct str project, struct str name, int64_t version)
{
    struct download *d = xzalloc(sizeof *d);
    struct err e = {0};

    d->api = r->api;
    if (team_of(r, &d->arena, &d->t, &e) < 0) {
        request_refuse(r, &e);
        download_free(d);
        return;
    }
    d->f = (struct board_file){.project = arena_str(&d->arena, project),
                               .name = arena_str(&d->arena, name),
                               .version = version};
    request_wait(r, &d->waiter);
    store_read(r->api->c.store, file_find, file_found, d);
}
