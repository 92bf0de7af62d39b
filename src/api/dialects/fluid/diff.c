/* diff: what has changed between two snapshots, as fluid calls it. */

/* Snapshots never change: every call gives the same object, and nothing is stored. */
#include "core/change/change.h"

#include "api/dialects/fluid/fluid.h"
#include "base/mem.h"

#define REPLY_MAX (16 * 1024 * 1024)

struct diff_in {
    struct str from, to;
};
static const struct fluid_field diff_fields[] = {
    {"from_snapshot", FLUID_STR, offsetof(struct diff_in, from), true},
    {"to_snapshot", FLUID_STR, offsetof(struct diff_in, to), true},
};
const struct fluid_form fluid_diff_form = {FLUID_FORM(diff_fields, struct diff_in)};

enum diff_list {
    ADDED,
    MODIFIED,
    REMOVED,
    PACKAGES_ADDED,
    PACKAGES_REMOVED,
    SERVICES,
    COMMANDS,
    LISTS
};
static const char *const list_names[LISTS] = {
    "files_added",      "files_modified",   "files_removed", "packages_added",
    "packages_removed", "services_changed", "commands_run"};

struct diff_job {
    struct waiter waiter;
    struct change_diff *d;
    struct buf head; /* the members before the lists */
    struct buf text[LISTS];
    struct jw w[LISTS];
    size_t bytes;
};

static void diff_free(struct diff_job *j)
{
    for (size_t i = 0; i < LISTS; i++)
        buf_done(&j->text[i]);
    buf_done(&j->head);
    mem_free(j);
}

/* --- the lists --- */

static void put_path(struct jw *w, struct str path)
{
    AUTO(buf_done) struct buf text = {0};

    buf_add_char(&text, '/');
    buf_add_str(&text, path);
    jw_str(w, buf_str(&text));
}

static void put_package(struct jw *w, struct str name, struct str version)
{
    jw_object(w);
    jw_kstr(w, "name", name);
    if (version.n > 0)
        jw_kstr(w, "version", version);
    jw_object_end(w);
}

/* An upgrade is the new version, added. */
static void put_packages(struct diff_job *j, const struct change *c)
{
    if (c->what == CHANGE_REMOVED)
        put_package(&j->w[PACKAGES_REMOVED], c->name, c->old_value);
    else
        put_package(&j->w[PACKAGES_ADDED], c->name, c->new_value);
}

static void put_service(struct jw *w, const struct change *c)
{
    struct wire_rows rows = c->attrs;
    struct change_attr a;

    jw_object(w);
    jw_kstr(w, "name", c->name);
    while (wire_rows_next(&change_attr_row, &rows, &a))
        if (str_eq_c(a.name, "enabled"))
            jw_kbool(w, "enabled", str_eq_c(a.after, "yes"));
    jw_object_end(w);
}

static void put_command(struct jw *w, const struct change *c)
{
    int64_t status = -1;

    if (str_parse_i64(c->old_value, &status) < 0)
        status = -1;
    jw_object(w);
    jw_kstr(w, "cmd", c->name);
    jw_kint(w, "exit_code", status);
    fluid_seconds(w, "at", (int64_t)c->size);
    jw_object_end(w);
}

static int on_change(void *arg, const struct change *c)
{
    struct diff_job *j = arg;

    for (size_t i = j->bytes = 0; i < LISTS; i++)
        j->bytes += buf_len(&j->text[i]);
    if (j->bytes > REPLY_MAX)
        return 0;
    if (c->kind == CHANGE_FILE)
        put_path(&j->w[c->what == CHANGE_ADDED     ? ADDED
                       : c->what == CHANGE_REMOVED ? REMOVED
                                                   : MODIFIED],
                 c->path);
    else if (c->kind == CHANGE_PACKAGE)
        put_packages(j, c);
    else if (c->kind == CHANGE_SERVICE)
        put_service(&j->w[SERVICES], c);
    else if (c->kind == CHANGE_COMMAND)
        put_command(&j->w[COMMANDS], c);
    return 0;
}

/* --- the reply --- */

static void send_diff(struct request *r, struct diff_job *j)
{
    struct jw w = request_json(r);

    jw_object(&w);
    jw_key(&w, "diff");
    jw_object(&w);
    jw_raw(&w, buf_str(&j->head));
    jw_key(&w, "diff_json");
    jw_object(&w);
    for (size_t i = 0; i < LISTS; i++) {
        jw_array_end(&j->w[i]);
        if (buf_len(&j->text[i]) == 2) /* empty lists are left out */
            continue;
        jw_key(&w, list_names[i]);
        jw_raw(&w, buf_str(&j->text[i]));
    }
    jw_object_end(&w);
    jw_object_end(&w);
    jw_object_end(&w);
    fluid_send(r, 200);
}

static void on_done(void *arg, const struct change_counts *n, const struct err *e)
{
    struct diff_job *j = arg;
    struct request *r = waiter_end(&j->waiter);
    struct err why = *e;

    (void)n;
    if (why.code == ERR_NONE && j->bytes > REPLY_MAX)
        (void)err_set(&why, ERR_TOO_LARGE, 0, "more has changed than a reply can have");
    if (r && why.code == ERR_NONE)
        send_diff(r, j);
    else if (r)
        fluid_refuse(r, &why);
    diff_free(j);
}

static void on_cancelled(void *arg)
{
    struct diff_job *j = arg;

    (void)waiter_end(&j->waiter);
    diff_free(j);
}

static void client_gone(struct waiter *w)
{
    change_cancel(CONTAINER_OF(w, struct diff_job, waiter)->d);
}

/* A member of an object that is not begun by this writer. */
static void put_head(struct diff_job *j, const struct sandbox *s, const struct diff_in *in,
                     const struct snapshot_info *from, const struct snapshot_info *to)
{
    struct jw w = {.to = &j->head};
    struct sandbox_info i;
    char both[2 * ID_SIZE], id[FLUID_ID];

    sandbox_info(s, &i);
    (void)snprintf(both, sizeof both, "%s%s", from->id, to->id);
    jw_kc(&w, "id", fluid_id("DIF-", both, id));
    jw_kstr(&w, "sandbox_id", fluid_sandbox_id(&i));
    jw_kstr(&w, "from_snapshot", in->from);
    jw_kstr(&w, "to_snapshot", in->to);
    fluid_seconds(&w, "created_at", i64_max(from->created_ms, to->created_ms));
}

void fluid_diff(struct request *r)
{
    const struct diff_in *in = r->in;
    struct sandbox *s = fluid_find(r);
    struct snapshot *from = s ? fluid_find_snapshot(r, s, in->from) : NULL;
    struct snapshot *to = from ? fluid_find_snapshot(r, s, in->to) : NULL;
    struct snapshot_info a, b;
    struct diff_job *j;
    struct err e = {0};

    if (!to)
        return;
    snapshot_info(from, &a);
    snapshot_info(to, &b);
    j = xzalloc(sizeof *j);
    put_head(j, s, in, &a, &b);
    for (size_t i = 0; i < LISTS; i++) {
        j->w[i].to = &j->text[i];
        jw_array(&j->w[i]);
    }
    j->d = change_diff(
        r->api->c.changes,
        &(struct change_spec){
            .from = str_of(a.id), .to = str_of(b.id), .of = s, .no_text = true, .by = &r->who},
        &(struct change_events){
            .change = on_change, .done = on_done, .cancelled = on_cancelled, .arg = j},
        &e);
    if (!j->d) {
        diff_free(j);
        fluid_refuse(r, &e);
        return;
    }
    j->waiter.gone = client_gone;
    request_wait(r, &j->waiter);
}
