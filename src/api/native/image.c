/* image: images: list, get, pull, import, remove. */
#include "ops/image.h"
#include "api/native/handlers.h"
#include "api/native/image_remote.h"
#include "api/native/write.h"
#include "api/reply_list.h"
#include "base/mem.h"
#include "core/image/image.h"

/* The host image as it appears in lists: it always exists, with nothing to pull. */
static const struct image_info host_image = {
    .id = "host",
    .name = {"host", 4},
    .source = {"builtin", 7},
    .os = {"linux", 5},
    .state = IMAGE_READY,
};

static void write_image(struct jw *w, const struct image_info *i)
{
    bool host = i->id == host_image.id;

    jw_object(w);
    jw_kc(w, "id", i->id);
    jw_kstr(w, "name", i->name);
    jw_ktext(w, "owner", i->owner);
    jw_ktext(w, "tenant", i->tenant);
    jw_kc(w, "state", image_state_name(i->state));
    jw_kstr(w, "source", i->source);
    jw_ktext(w, "digest", i->digest);
    jw_kstr(w, "os", i->os);
    jw_kstr(w, "arch", host ? str_of(oci_arch_of_host()) : i->arch);
    jw_kint(w, "layers", (int64_t)i->layer_count);
    jw_kint(w, "size_bytes", i->size_bytes);
    jw_ktime(w, "created_at", i->created_ms);
    jw_key(w, "defaults");
    jw_raw(w, i->defaults.n > 0 ? i->defaults : STR("{}"));
    jw_ktext(w, "phase", i->phase);
    jw_kint(w, "done_bytes", i->done_bytes);
    jw_kint(w, "total_bytes", i->total_bytes);
    jw_ktext(w, "failure", i->failure);
    jw_object_end(w);
}

void image_send(struct request *r, const struct image *i, int status)
{
    struct image_info info;
    struct jw w = request_json(r);

    image_info(i, &info);
    write_image(&w, &info);
    request_send_json(r, status);
}

/* --- list, get --- */

void image_list_run(struct request *r)
{
    const struct image_list_in *in = r->in;
    struct images *all = r->api->c.images;
    struct jw w = request_json(r);
    struct image_info info;
    struct reply_list l;

    reply_list_begin(&l, &w, "images", STR(""), in->limit);
    if (in->cursor.n == 0 && reply_list_take(&l, STR("host")))
        write_image(&w, &host_image);
    for (struct image *i = image_next(all, &r->who, in->cursor, in->all); i && !l.more;
         i = image_next(all, &r->who, str_of(info.id), in->all)) {
        image_info(i, &info);
        if (!in->all && str_eq_c(info.source, IMAGE_SOURCE_CACHE))
            continue;
        if (reply_list_take(&l, str_of(info.id)))
            write_image(&w, &info);
    }
    reply_list_end(&l);
    request_send_json(r, 0);
}

void image_get_run(struct request *r)
{
    const struct image_id_in *in = r->in;
    struct image *i = NULL;
    struct str id;
    struct err e = {0};

    if (str_eq_c(in->id, "host")) {
        struct jw w = request_json(r);

        write_image(&w, &host_image);
        request_send_json(r, 0);
        return;
    }
    if (request_decode(r, in->id, &id, &e) == 0)
        i = image_find(r->api->c.images, &r->who, IMAGE_SEE, id, &e);
    if (i)
        image_send(r, i, 0);
    else
        request_fail(r, &e);
}

/* --- pull --- */

struct image_wait {
    struct waiter waiter;
};

static void image_made(void *arg, struct image *i, const struct err *e)
{
    struct image_wait *j = arg;
    struct request *r = waiter_end(&j->waiter);

    mem_free(j);
    if (r && e->code == ERR_NONE)
        image_send(r, i, 0);
    else if (r)
        request_fail(r, e);
}

static void nobody_waits(void *arg, struct image *i, const struct err *e)
{
    (void)arg, (void)i, (void)e;
}

void image_pull_run(struct request *r)
{
    const struct image_pull_in *in = r->in;
    const struct image_pull_spec spec = {
        .ref = in->ref, .name = in->name, .remote = &image_remote, .remote_arg = r->api};
    struct image_wait *j = in->wait ? xzalloc(sizeof *j) : NULL;
    struct image *i;
    struct err e = {0};

    if (image_pull(r->api->c.images, &spec, &r->who, j ? image_made : nobody_waits, j, &i, &e) <
        0) {
        mem_free(j);
        request_fail(r, &e);
    } else if (j) {
        request_wait(r, &j->waiter);
    } else {
        image_send(r, i, 202);
    }
}

/* --- import: the body streams into core --- */

struct upload {
    struct request *r;      /* NULL: the client disconnected */
    struct image_import *m; /* NULL: it has ended */
    struct image *i;
    bool wait, replied, arrived;
};

static void upload_free(struct upload *u)
{
    if (!u->r && !u->m)
        mem_free(u);
}

static void on_consumed(void *arg, size_t n)
{
    struct upload *u = arg;

    if (u->r)
        xchg_consume(u->r->x, n);
}

static void import_done(void *arg, struct image *i, const struct err *e)
{
    struct upload *u = arg;

    u->m = NULL;
    if (u->r && !u->replied) {
        u->replied = true;
        if (e->code == ERR_NONE)
            image_send(u->r, i, 0);
        else
            request_fail(u->r, e);
    }
    upload_free(u);
}

static void on_body(struct xchg *x, struct str part)
{
    struct upload *u = xchg_arg(x);

    if (u->m)
        image_import_write(u->m, part);
    else
        xchg_consume(x, part.n);
}

static void on_body_end(struct xchg *x)
{
    struct upload *u = xchg_arg(x);

    if (u->arrived || !u->m)
        return;
    u->arrived = true;
    if (!u->wait && !u->replied) {
        u->replied = true;
        image_send(u->r, u->i, 202);
    }
    image_import_end(u->m);
}

static void on_closed(struct xchg *x, bool done)
{
    struct upload *u = xchg_arg(x);
    struct request *r = u->r;

    u->r = NULL;
    if (u->m && !u->arrived)
        image_import_abort(u->m); /* import_done frees u, now or later */
    else
        upload_free(u);
    request_end(r, done);
}

void image_import_run(struct request *r)
{
    static const struct xchg_ops ops = {
        .body = on_body, .body_end = on_body_end, .closed = on_closed};
    const struct image_import_in *in = r->in;
    int64_t length = xchg_req(r->x)->content_length;
    const struct image_import_spec spec = {.name = in->name,
                                           .tag = in->tag,
                                           .format = (enum image_format)in->format,
                                           .size = length > 0 ? length : 0,
                                           .consumed = on_consumed};
    struct upload *u = xzalloc(sizeof *u);
    struct err e = {0};

    u->wait = in->wait;
    if (image_import_begin(r->api->c.images, &spec, &r->who, import_done, u, &u->m, &u->i, &e) <
        0) {
        mem_free(u);
        request_fail(r, &e);
        return;
    }
    u->r = r;
    xchg_limit_body(r->x, 0);
    xchg_handle(r->x, &ops, u);
    if (length == 0)
        on_body_end(r->x);
}

/* --- remove --- */

void image_remove_run(struct request *r)
{
    const struct image_id_in *in = r->in;
    struct str id;
    struct err e = {0};

    if (request_decode(r, in->id, &id, &e) < 0) {
        request_fail(r, &e);
        return;
    }
    image_remove(r->api->c.images, id, &r->who, request_ended, request_wait_end(r));
}
