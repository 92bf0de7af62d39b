/* volume: files shared by sandboxes: create, mount, measure, remove. */
#include "core/sandbox/volume.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/sorted.h"
#include "core/columns.h"
#include "core/sandbox/sandbox_internal.h"

#include <stdio.h>

#define VOLUMES_MAX 4096
#define TMPFS_BYTES (64LL << 20)
#define TMPFS_MIN 4096
#define NAME_MAX_LEN 63
#define USERS_TOLD 4 /* sandboxes named in a refusal */

struct volumes {
    struct store *store;
    struct sandboxes *sandboxes;
    struct volume **sorted; /* by id */
    size_t count, size;
    int64_t max;
};

struct volume {
    struct volumes *all;
    enum { VOLUME_MAKING, VOLUME_READY, VOLUME_REMOVING } state;
    char id[ID_SIZE];
    char *name, *tenant;
    char owner[64];
    enum volume_kind kind;
    int64_t size_bytes, created_ms;
    bool shared;
};

static const char *const kind_names[VOLUME_KIND_COUNT] = {
    [VOLUME_DISK] = "disk", [VOLUME_TMPFS] = "tmpfs"};

/* --- the list --- */

static void add(struct volumes *l, struct volume *v)
{
    sorted_add(SORTED(l, id), v);
    v->all = l;
}

static struct volume *volume_free(struct volume *v)
{
    if (!v)
        return NULL;
    mem_free(v->name);
    mem_free(v->tenant);
    mem_free(v);
    return NULL;
}
DEFINE_AUTO(struct volume *, volume_free)

static void drop(struct volume *v)
{
    sorted_remove(SORTED(v->all, id), v);
    volume_free(v);
}

struct volumes *volumes_free(struct volumes *l)
{
    if (!l)
        return NULL;
    for (size_t i = 0; i < l->count; i++)
        volume_free(l->sorted[i]);
    mem_free(l->sorted);
    mem_free(l);
    return NULL;
}

/* --- rows and events --- */

static bool put_kind(const void *object, struct buf *to)
{
    const struct volume *v = object;

    buf_add_c(to, kind_names[v->kind]);
    return true;
}

static int get_kind(void *object, struct str text, struct err *e)
{
    struct volume *v = object;

    (void)e;
    v->kind = str_eq_c(text, kind_names[VOLUME_TMPFS]) ? VOLUME_TMPFS : VOLUME_DISK;
    return 0;
}

#define HAS(member, kind, ...) COLUMN(struct volume, member, kind, __VA_ARGS__)
static const struct column volume_column_list[] = {
    HAS(id, COLUMN_CHARS, .flags = COLUMN_KEY),
    HAS(name, COLUMN_TEXT),
    HAS(tenant, COLUMN_TEXT),
    {.name = "kind", .type = COLUMN_MADE, .put = put_kind, .get = get_kind},
    HAS(owner, COLUMN_CHARS),
    HAS(size_bytes, COLUMN_INT),
    HAS(created_ms, COLUMN_INT),
    HAS(shared, COLUMN_BOOL),
};
static struct columns volume_columns = {.table = "volumes",
                                        .list = volume_column_list,
                                        .count = ARRAY_LEN(volume_column_list),
                                        .order = "ORDER BY id"};

static int load_one(struct volumes *l, const struct store_rows *rows, struct err *e)
{
    AUTO(volume_free) struct volume *v = xzalloc(sizeof *v);

    if (columns_load(&volume_columns, rows, v, e) < 0)
        return -1;
    if (!id_is_valid("vl", str_of(v->id)))
        return err_set(e, ERR_INTERNAL, 0, "a row of volumes has a damaged id");
    v->state = VOLUME_READY;
    add(l, TAKE(v));
    return 0;
}

static int load_volumes(struct store_tx *tx, void *arg, struct err *e)
{
    struct store_rows *rows;
    int r;

    if (columns_query(tx, &volume_columns, &rows, e) < 0)
        return -1;
    while ((r = rows_step(rows, e)) > 0)
        if (load_one(arg, rows, e) < 0)
            return -1;
    rows_end(rows);
    return r;
}

int volumes_open(struct store *store, struct sandboxes *sandboxes, struct volumes **ret,
                 struct err *e)
{
    struct volumes *l = xzalloc(sizeof *l);

    l->max = VOLUMES_MAX;
    l->store = store;
    l->sandboxes = sandboxes;
    if (store_now(store, load_volumes, l, e) < 0) {
        volumes_free(l);
        return err_wrap(e, "read the volumes");
    }
    sandboxes->volumes = l;
    *ret = l;
    return 0;
}

void volumes_set_max(struct volumes *l, int64_t max)
{
    l->max = max;
}

struct job { /* the volume is not freed while its row is written */
    struct volume *v;
    bool shared; /* once it is written */
    char actor[64];
    volume_cb done;
    void *arg;
    const struct tx_hook *tx_hook; /* of a create, or NULL */
    void *tx_hook_arg;
    size_t pending; /* runtimes still removing it */
    struct err e;
};

static struct job *job_new(struct volume *v, const struct volume_call *c)
{
    struct job *j = xzalloc(sizeof *j);

    j->v = v;
    j->shared = v->shared;
    j->done = c->done;
    j->arg = c->arg;
    (void)snprintf(j->actor, sizeof j->actor, "%s", c->by->actor);
    return j;
}

static void put_event(struct store_tx *tx, const struct job *j, const char *type)
{
    AUTO(buf_done) struct buf data = {0};
    struct jw w = {.to = &data};
    const struct volume *v = j->v;
    char object[ID_SIZE + 8];

    (void)snprintf(object, sizeof object, "volume/%s", v->id);
    jw_object(&w);
    jw_kc(&w, "id", v->id);
    jw_kc(&w, "name", v->name);
    jw_kc(&w, "tenant", v->tenant);
    jw_kc(&w, "kind", kind_names[v->kind]);
    jw_kc(&w, "owner", v->owner);
    jw_kint(&w, "size_bytes", v->size_bytes);
    jw_kbool(&w, "shared", j->shared);
    jw_ktime(&w, "created_at", v->created_ms);
    jw_object_end(&w);
    tx_event(tx,
             &(struct event_spec){
                 .type = type, .object = object, .actor = j->actor, .data = buf_str(&data)},
             NULL);
}

static int create_work(struct store_tx *tx, void *arg, struct err *e)
{
    const struct job *j = arg;

    if (columns_insert(tx, &volume_columns, j->v, e) < 0 ||
        (j->tx_hook && j->tx_hook->write(tx, j->tx_hook_arg, e) < 0))
        return -1;
    put_event(tx, j, "volume.created");
    return 0;
}

static int share_work(struct store_tx *tx, void *arg, struct err *e)
{
    const struct job *j = arg;

    if (tx_run(tx, "UPDATE volumes SET shared = :shared WHERE id = :id",
               PARAMS(P_INT("shared", j->shared), P_C("id", j->v->id)), e) < 0)
        return -1;
    put_event(tx, j, "volume.updated");
    return 0;
}

static int remove_work(struct store_tx *tx, void *arg, struct err *e)
{
    const struct job *j = arg;

    if (tx_run(tx, "DELETE FROM volumes WHERE id = :id", PARAMS(P_C("id", j->v->id)), e) < 0)
        return -1;
    put_event(tx, j, "volume.removed");
    return 0;
}

/* --- create --- */

static const struct volume *taken_by(const struct volumes *l, const struct volume_spec *spec,
                                     const char *owner)
{
    for (size_t i = 0; i < l->count; i++)
        if (str_eq_c(spec->name, l->sorted[i]->name) &&
            str_eq_c(spec->tenant, l->sorted[i]->tenant) && strcmp(l->sorted[i]->owner, owner) == 0)
            return l->sorted[i];
    return NULL;
}

static bool is_name(struct str s)
{
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];

        if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || (c == '-' && i > 0)))
            return false;
    }
    return s.n > 0 && s.n <= NAME_MAX_LEN;
}

static int check_sharer(const struct principal *by, struct err *e)
{
    if (by->role != ROLE_AGENT && !principal_is_inside(by))
        return 0;
    err_set(e, ERR_FORBIDDEN, 0, "field 'shared': only people share volumes");
    return err_hint(e, "ask an operator: holt volume update OWNER/NAME --shared");
}

/* A sandbox's owner is gone with it. */
static int check_maker(const struct volume_spec *spec, const struct principal *by, struct err *e)
{
    if (principal_is_inside(by)) {
        err_set(e, ERR_FORBIDDEN, 0, "a sandbox cannot create volumes");
        return err_hint(e, "ask its owner, or use a token from outside");
    }
    return spec->shared ? check_sharer(by, e) : 0;
}

static int check_share(const struct volumes *l, const struct volume_spec *spec,
                       const struct principal *by, struct err *e)
{
    const struct ceilings *c = &l->sandboxes->ceilings;
    size_t has = 0;

    if (spec->kind == VOLUME_TMPFS && ceiling_memory(c, by, "size_bytes", spec->size_bytes, e) < 0)
        return -1;
    for (size_t i = 0; i < l->count; i++)
        has += strcmp(l->sorted[i]->owner, principal_owner(by)) == 0;
    return ceiling_count(c, by, CEILING_VOLUMES, has, e);
}

static int check(struct volumes *l, const struct volume_spec *spec, const struct principal *by,
                 struct err *e)
{
    const struct volume *other = taken_by(l, spec, principal_owner(by));

    if (!is_name(spec->name)) {
        err_set(e, ERR_INVALID, 0, "field 'name': '" STR_FMT "' is not a valid name",
                (int)size_min(spec->name.n, 64), spec->name.p ? spec->name.p : "");
        return err_hint(e, "1 to %d of a-z, 0-9 and '-', not '-' first", NAME_MAX_LEN);
    }
    if (spec->kind == VOLUME_DISK && spec->size_bytes != 0) {
        err_set(e, ERR_INVALID, 0, "field 'size_bytes' is only for tmpfs volumes");
        return err_hint(
            e, "holt volume create NAME --kind tmpfs creates a volume in memory with a size");
    }
    if (spec->kind == VOLUME_TMPFS && spec->size_bytes != 0 && spec->size_bytes < TMPFS_MIN)
        return err_set(e, ERR_INVALID, 0, "field 'size_bytes': less than %d", TMPFS_MIN);
    if ((int64_t)l->count >= l->max) {
        err_set(e, ERR_LIMIT, 0, "there are %zu volumes already", l->count);
        return err_limit(e, "volumes_max", l->max, "remove some (holt volume ls, holt volume rm)");
    }
    if (!other)
        return check_share(l, spec, by, e);
    err_set(e, ERR_CONFLICT, 0, "a volume named '%s' exists already", other->name);
    err_object(e, "volume", other->id);
    return err_hint(e, "choose another name, or remove it: holt volume rm %s", other->id);
}

static void create_written(void *arg, const struct err *e)
{
    struct job *j = arg;

    if (e->code == ERR_NONE)
        j->v->state = VOLUME_READY;
    j->done(j->arg, e->code == ERR_NONE ? j->v : NULL, e);
    if (e->code != ERR_NONE)
        drop(j->v);
    if (j->tx_hook)
        j->tx_hook->free(j->tx_hook_arg);
    mem_free(j);
}

int volume_create(struct volumes *l, const struct volume_spec *spec, const struct volume_call *c,
                  struct err *e)
{
    struct volume_spec checked = *spec;
    struct job *j;

    if (check_maker(spec, c->by, e) < 0 ||
        owner_tenant(c->by, spec->tenant, &checked.tenant, e) < 0 ||
        check(l, &checked, c->by, e) < 0) {
        if (spec->tx_hook)
            spec->tx_hook->free(spec->tx_hook_arg);
        return err_wrap(e, "create a volume");
    }
    j = job_new(xzalloc(sizeof *j->v), c);
    id_make("vl", j->v->id);
    j->v->name = str_dup(spec->name);
    j->v->tenant = str_dup(checked.tenant);
    j->v->shared = j->shared = spec->shared;
    j->v->kind = spec->kind;
    j->v->size_bytes =
        spec->kind == VOLUME_TMPFS && !spec->size_bytes ? TMPFS_BYTES : spec->size_bytes;
    j->v->created_ms = clock_wall_ms();
    (void)snprintf(j->v->owner, sizeof j->v->owner, "%s", principal_owner(c->by));
    add(l, j->v);
    j->tx_hook = spec->tx_hook;
    j->tx_hook_arg = spec->tx_hook_arg;
    if (j->tx_hook)
        j->tx_hook->ready(j->tx_hook_arg, j->v);
    store_write(l->store, STORE_RELAXED, create_work, create_written, j);
    return 0;
}

/* --- share --- */

static void share_written(void *arg, const struct err *e)
{
    struct job *j = arg;

    if (e->code == ERR_NONE)
        j->v->shared = j->shared;
    j->done(j->arg, j->v, e);
    mem_free(j);
}

int volume_share(struct volume *v, bool shared, const struct volume_call *c, struct err *e)
{
    struct job *j;

    if (check_sharer(c->by, e) < 0)
        return err_wrap(e, "change volume '%s'", v->id);
    j = job_new(v, c);
    j->shared = shared;
    store_write(v->all->store, STORE_RELAXED, share_work, share_written, j);
    return 0;
}

/* --- lookup --- */

static int not_found(struct str ref, struct err *e)
{
    err_set(e, ERR_NOT_FOUND, 0, "there is no volume '" STR_FMT "'", (int)size_min(ref.n, 64),
            ref.p ? ref.p : "");
    return err_hint(e, "holt volume ls lists the volumes; holt volume create creates one");
}

static struct owned volume_owned(const struct volume *v)
{
    return (struct owned){
        .owner = str_of(v->owner), .tenant = str_of(v->tenant), .shared = v->shared};
}

static void offer_named(struct volumes *l, struct str tenant, struct owner_look *look)
{
    for (size_t i = 0; i < l->count; i++) {
        struct volume *v = l->sorted[i];
        const struct owned o = volume_owned(v);

        if (v->state == VOLUME_READY && str_eq_c(look->name, v->name) &&
            (tenant.n == 0 || str_eq_c(tenant, v->tenant)))
            owner_offer(look, v, v->id, &o, v->tenant[0] ? 0 : 1);
    }
}

static struct volume *find(struct volumes *l, struct owner_look *look, struct str tenant,
                           struct err *e)
{
    struct volume *v = sorted_find(SORTED(l, id), look->text);
    struct err why = {0};

    if (v && v->state == VOLUME_READY) {
        const struct owned o = volume_owned(v);

        return owner_check(look->by, &o, look->use, "volume", v->id, e) == 0 ? v : NULL;
    }
    look->name = look->text;
    offer_named(l, tenant, look);
    if (!look->found && owner_look_split(look))
        offer_named(l, tenant, look);
    v = owner_found(look, "volume", &why);
    if (v)
        return v;
    if (why.code != ERR_NONE)
        *e = why;
    else
        (void)not_found(look->text, e);
    return NULL;
}

struct volume *volume_find(struct volumes *l, const struct principal *by, enum volume_want want,
                           struct str tenant, struct str ref, struct err *e)
{
    struct owner_look look = {
        .by = by, .use = want == VOLUME_SEE ? OWNER_SEE : OWNER_CHANGE, .text = ref};

    return find(l, &look, tenant, e);
}

struct volume *volume_next(struct volumes *l, const struct principal *by, struct str after)
{
    for (size_t i = sorted_after(SORTED(l, id), after); i < l->count; i++) {
        const struct owned o = volume_owned(l->sorted[i]);

        if (l->sorted[i]->state == VOLUME_READY && owner_may(by, &o, OWNER_SEE))
            return l->sorted[i];
    }
    return NULL;
}

/* --- users --- */

bool volume_is_mount(const struct sandbox_mount *m)
{
    return str_eq_c(m->kind, "volume") || str_eq_c(m->kind, "shared");
}

static bool mounts_volume(const struct sandbox *s, const struct volume *v)
{
    for (size_t i = 0; i < s->mount_count; i++)
        if (volume_is_mount(&s->mounts[i]) && str_eq_c(s->mounts[i].source, v->id))
            return true;
    return false;
}

/* The number of users; names the first few, as far as there is room. */
static size_t users(const struct volume *v, char *names, size_t size)
{
    const struct sandboxes *all = v->all->sandboxes;
    size_t n = 0, at = 0;

    for (size_t i = 0; i < all->count; i++) {
        const struct sandbox *s = all->sorted[i];

        if (s->mount_count == 0 || !mounts_volume(s, v))
            continue;
        if (names && n < USERS_TOLD && at < size)
            at += (size_t)snprintf(names + at, size - at, "%s%s", n ? ", " : "",
                                   s->name && *s->name ? s->name : s->id);
        n++;
    }
    return n;
}

void volume_info(const struct volume *v, struct volume_info *ret)
{
    *ret = (struct volume_info){.id = v->id,
                                .name = str_of(v->name),
                                .tenant = str_of(v->tenant),
                                .owner = str_of(v->owner),
                                .kind = v->kind,
                                .size_bytes = v->size_bytes,
                                .created_ms = v->created_ms,
                                .shared = v->shared,
                                .used_by = users(v, NULL, 0)};
}

static bool may_see(const struct volume *v, struct str tenant)
{
    return v->tenant[0] == '\0' || str_eq_c(tenant, v->tenant);
}

/* Volumes of the sandbox's tenant first, then those without one. */
static struct volume *find_for_mount(struct volumes *l, struct str name,
                                     const struct volume_asker *asker, struct err *e)
{
    struct owner_look look = {.by = asker->by, .text = name, .own_only = true};
    struct volume *v = find(l, &look, asker->tenant, e);

    if (v || asker->tenant.n == 0 || e->code != ERR_NOT_FOUND)
        return v;
    look = (struct owner_look){.by = asker->by, .text = name, .own_only = true};
    return find(l, &look, STR(""), e);
}

bool volume_is_there(struct volumes *l, struct str name, const struct volume_asker *asker)
{
    struct err e = {0};

    return find_for_mount(l, name, asker, &e) != NULL;
}

int volume_mount(struct volumes *l, const struct volume_use *u, const struct volume_asker *asker,
                 struct sandbox_mount *ret, struct err *e)
{
    struct volume *v = find_for_mount(l, u->name, asker, e);

    if (!v)
        return e->code == ERR_NOT_FOUND
                   ? err_hint(e, "holt volume create creates one; use the id or OWNER/NAME for "
                                 "that of another owner (holt volume ls)")
                   : -1;
    if (!may_see(v, asker->tenant))
        return not_found(u->name, e);
    *ret = (struct sandbox_mount){.kind = v->kind == VOLUME_TMPFS ? STR("shared") : STR("volume"),
                                  .source = str_of(v->id),
                                  .target = u->path,
                                  .readonly = u->readonly,
                                  .size_bytes = v->size_bytes};
    return 0;
}

/* --- remove: the files first, then the row: a crash in between leaves an empty volume --- */

static void remove_ended(struct job *j, const struct err *e)
{
    if (e->code != ERR_NONE)
        j->v->state = VOLUME_READY;
    j->done(j->arg, NULL, e);
    if (e->code == ERR_NONE)
        drop(j->v);
    mem_free(j);
}

static void remove_written(void *arg, const struct err *e)
{
    remove_ended(arg, e);
}

static void files_removed(void *arg, const struct err *e)
{
    struct job *j = arg;

    if (e->code != ERR_NONE)
        j->e = *e;
    if (--j->pending > 0)
        return;
    if (j->e.code != ERR_NONE) {
        err_wrap(&j->e, "remove volume '%s'", j->v->id);
        remove_ended(j, &j->e);
    } else {
        store_write(j->v->all->store, STORE_RELAXED, remove_work, remove_written, j);
    }
}

static int check_unused(const struct volume *v, struct err *e)
{
    char names[USERS_TOLD * ID_SIZE * 2];
    size_t n = users(v, names, sizeof names);

    if (n == 0)
        return 0;
    err_set(e, ERR_CONFLICT, 0, "volume '%s' is used by %zu sandbox%s: %s%s", v->name, n,
            n == 1 ? "" : "es", names, n > USERS_TOLD ? ", …" : "");
    err_object(e, "volume", v->id);
    return err_hint(e, "destroy them first: holt rm SANDBOX...");
}

int volume_remove(struct volume *v, const struct volume_call *c, struct err *e)
{
    struct sandboxes *all = v->all->sandboxes;
    const struct driver_volume what = {v->id, v->kind == VOLUME_TMPFS};
    struct job *j;

    if (check_unused(v, e) < 0)
        return -1;
    j = job_new(v, c);
    v->state = VOLUME_REMOVING;
    j->pending = 1;
    for (size_t i = 0; i < all->driver_count && v->kind == VOLUME_DISK; i++) {
        struct driver *d = all->drivers[i].driver;

        if (!d || !d->ops->volume_remove)
            continue;
        j->pending++;
        d->ops->volume_remove(d, &what, files_removed, j);
    }
    files_removed(j, &(struct err){0}); /* the count this began with */
    return 0;
}

bool volume_measure(struct volume *v, driver_bytes_cb done, void *arg)
{
    struct sandboxes *all = v->all->sandboxes;
    const struct driver_volume what = {v->id, v->kind == VOLUME_TMPFS};

    for (size_t i = 0; i < all->driver_count; i++) {
        struct driver *d = all->drivers[i].driver;

        if (!d || !d->ops->volume_measure)
            continue;
        d->ops->volume_measure(d, &what, done, arg);
        return true;
    }
    return false;
}
