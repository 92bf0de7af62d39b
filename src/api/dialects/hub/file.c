/* file: the hub's uploads (multipart) and downloads. */
#include "api/dialects/hub/hub.h"
#include "api/team/project_file.h"
#include "base/mem.h"
#include "core/blob.h"
#include "proto/multipart.h"

#define FIELD_MAX 1024 /* bytes of a field that is not the file */

/* The hub's clients know these errors by their texts; a missing target of an upload is a bad
 * request. */
static void fail(struct request *r, int status, const struct err *e, bool upload)
{
    struct err told = *e;
    bool project = e->code == ERR_NOT_FOUND && str_starts(str_of(e->object), STR("project/"));

    if (project || (e->code == ERR_NOT_FOUND && str_starts(str_of(e->object), STR("file/")))) {
        (void)snprintf(told.msg, sizeof told.msg, "%s not found", project ? "Project" : "File");
        told.object[0] = '\0';
        status = upload ? 400 : 404;
    } else if (e->code == ERR_TOO_LARGE) {
        status = 400;
    } else if (strcmp(e->msg, BLOB_DAMAGED) == 0) {
        status = 404;
    }
    hub_fail(r, status, &told);
}

/* --- upload --- */

enum place { ELSEWHERE, IN_FILE, IN_UPLOADER };

struct form {
    struct file_upload u;
    struct multipart m;
    struct buf uploader;
    enum place place;
    bool has_file;
};

static int take_part(struct form *f, struct err *e)
{
    f->place = ELSEWHERE;
    if (str_eq_c(f->m.name, "uploader") && !f->m.filename.p)
        f->place = IN_UPLOADER;
    if (!str_eq_c(f->m.name, "file") || !f->m.filename.p)
        return 0;
    if (f->has_file)
        return err_set(e, ERR_INVALID, 0, "one file at a time");
    f->has_file = true;
    f->place = IN_FILE;
    f->u.f.name = arena_str(&f->u.arena, f->m.filename);
    return file_check_name(f->u.f.name, e);
}

static int take_data(struct form *f, struct err *e)
{
    if (f->place == IN_FILE)
        file_upload_write(&f->u, f->m.data);
    else if (f->m.data.n > FIELD_MAX || buf_len(&f->uploader) + f->m.data.n > FIELD_MAX)
        return err_set(e, ERR_TOO_LARGE, 0, "a field of the form has more than %d bytes",
                       FIELD_MAX);
    else if (f->place == IN_UPLOADER)
        buf_add_str(&f->uploader, f->m.data);
    return 0;
}

static int take_end(struct form *f, struct err *e)
{
    struct str uploader = buf_str(&f->uploader);

    if (!f->has_file)
        return err_set(e, ERR_INVALID, 0, "file required");
    if (!str_is_utf8(uploader))
        return err_set(e, ERR_INVALID, 0, "uploader must be UTF-8");
    f->u.f.uploader = arena_str(&f->u.arena, uploader);
    file_upload_whole(&f->u);
    return 0;
}

static int on_body(struct file_upload *u, struct str part, struct err *e)
{
    struct form *f = CONTAINER_OF(u, struct form, u);
    enum multipart_event ev;

    multipart_feed(&f->m, part);
    do {
        if (multipart_next(&f->m, &ev, e) < 0 || (ev == MULTIPART_PART && take_part(f, e) < 0) ||
            (ev == MULTIPART_DATA && take_data(f, e) < 0) ||
            (ev == MULTIPART_END && take_end(f, e) < 0))
            return -1;
    } while (ev != MULTIPART_MORE && ev != MULTIPART_END && u->in);
    return 0;
}

static int on_body_end(struct file_upload *u, struct err *e)
{
    const struct form *f = CONTAINER_OF(u, struct form, u);

    if (multipart_has_ended(&f->m))
        return 0;
    return err_set(e, ERR_INVALID, 0, "%s",
                   f->has_file ? "the form's last boundary is missing" : "file required");
}

static void file_reply(struct request *r, const struct board_file *f)
{
    struct jw w = request_json(r);

    jw_object(&w);
    jw_kstr(&w, "checksum", f->hash);
    jw_kstr(&w, "filename", f->name);
    jw_kint(&w, "size", f->size);
    jw_kint(&w, "version", f->version);
    jw_object_end(&w);
    request_send_json(r, 200);
}

static void form_free(struct file_upload *u)
{
    struct form *f = CONTAINER_OF(u, struct form, u);

    multipart_done(&f->m);
    buf_done(&f->uploader);
    mem_free(f);
}

void hub_file_upload(struct request *r)
{
    static const struct file_upload_ops ops = {
        .body = on_body, .body_end = on_body_end, .reply = file_reply, .free = form_free};
    struct form *f = xzalloc(sizeof *f);
    struct err e = {0};

    f->u.ops = &ops;
    if (multipart_init(&f->m, http_req_header(xchg_req(r->x), "content-type"), &e) < 0) {
        err_hint(&e, "send the file as the part 'file' of a form: %s", e.msg);
        (void)snprintf(e.msg, sizeof e.msg, "file required");
        hub_fail(r, 400, &e);
        form_free(&f->u);
        return;
    }
    file_upload_start(&f->u, r, r->params.v[0]);
}

void hub_file_upload_fail(struct request *r, int status, const struct err *e)
{
    fail(r, status, e, true);
}

/* --- download --- */

void hub_file_download(struct request *r)
{
    struct str name, text = {0};
    int64_t version = 0;
    struct err e = {0};
    int found = http_query_get(xchg_req(r->x)->query, "version", xchg_arena(r->x), &text);

    if (found < 0 || (found > 0 && (str_parse_i64(text, &version) < 0 || version < 1)))
        err_set(&e, ERR_INVALID, 0, "version must be a whole number from 1");
    else if (request_decode(r, r->params.v[1], &name, &e) == 0) {
        file_download(r, r->params.v[0], name, version);
        return;
    }
    request_fail(r, &e);
}

void hub_file_download_fail(struct request *r, int status, const struct err *e)
{
    fail(r, status, e, false);
}

int hub_file_list(struct hub_call *c, struct err *e)
{
    struct board_file_list all;
    struct str name;

    if (hub_query(c, "name", &name, e) < 0 || file_all(&c->t, c->path.v[0], name, &all, e) < 0)
        return -1;
    jw_array(&c->w);
    for (size_t i = 0; i < all.n; i++) {
        jw_object(&c->w);
        jw_kstr(&c->w, "checksum", all.v[i].hash);
        jw_kstr(&c->w, "filename", all.v[i].name);
        jw_kint(&c->w, "size", all.v[i].size);
        hub_ktime(&c->w, "updated_at", all.v[i].created_ms);
        jw_kstr(&c->w, "uploader", all.v[i].uploader);
        jw_kint(&c->w, "version", all.v[i].version);
        jw_object_end(&c->w);
    }
    jw_array_end(&c->w);
    return 0;
}
