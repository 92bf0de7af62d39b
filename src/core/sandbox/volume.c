/* volume: files shared by sandboxes: create, mount, measure, remove. */
#include "core/sandbox/volume.h"

#include "base/mem.h"
#include "core/sandbox/sandbox_internal.h"

#include <stdio.h>

#define VOLUMES_MAX 4096
#define TMPFS_BYTES (64LL << 20)
#define TMPFS_MIN 4096
#define NAME_MAX_LEN 63
#define USERS_TOLD 4 /* sandboxes named in a refusal */

struct volumes {
    struct named_list list;
    struct sandboxes *sandboxes;
    int64_t max;
};

struct volume {
    struct named named; /* first */
    enum volume_kind kind;
    int64_t size_bytes;
};

static const char *const kind_names[VOLUME_KIND_COUNT] = {
    [VOLUME_DISK] = "disk", [VOLUME_TMPFS] = "tmpfs"};

struct volume *volume_of(struct named *n)
{
    return n ? CONTAINER_OF(n, struct volume, named) : NULL;
}

static struct volumes *all_of(const struct volume *v)
{
    return CONTAINER_OF(v->named.list, struct volumes, list);
}

struct volumes *volumes_free(struct volumes *l)
{
    if (!l)
        return NULL;
    named_list_done(&l->list);
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

static const struct column volume_column_list[] = {
    NAMED_COLUMNS(struct volume),
    {.name = "kind", .type = COLUMN_MADE, .put = put_kind, .get = get_kind},
    COLUMN(struct volume, size_bytes, COLUMN_INT),
};
static struct columns volume_columns = {.table = "volumes",
                                        .list = volume_column_list,
                                        .count = ARRAY_LEN(volume_column_list),
                                        .order = "ORDER BY id",
                                        .prefix = "vl"};

static void volume_put(const struct named *n, struct jw *w)
{
    const struct volume *v = CONTAINER_OF(n, struct volume, named);

    jw_kc(w, "kind", kind_names[v->kind]);
    jw_kint(w, "size_bytes", v->size_bytes);
}

static const struct named_kind volume_named = {
    .noun = "volume",
    .hint = "holt volume ls lists the volumes; holt volume create creates one",
    .size = sizeof(struct volume),
    .columns = &volume_columns,
    .durability = STORE_RELAXED,
    .put = volume_put,
};

int volumes_open(struct store *store, struct sandboxes *sandboxes, struct volumes **ret,
                 struct err *e)
{
    struct volumes *l = xzalloc(sizeof *l);

    l->max = VOLUMES_MAX;
    l->sandboxes = sandboxes;
    if (named_list_open(&l->list, &volume_named, store, e) < 0) {
        volumes_free(l);
        return -1;
    }
    sandboxes->volumes = l;
    *ret = l;
    return 0;
}

void volumes_set_max(struct volumes *l, int64_t max)
{
    l->max = max;
}

/* --- create --- */

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

    if (spec->kind == VOLUME_TMPFS && ceiling_memory(c, by, "size_bytes", spec->size_bytes, e) < 0)
        return -1;
    return ceiling_count(c, by, CEILING_VOLUMES, named_count_of(&l->list, principal_owner(by)), e);
}

static int check(struct volumes *l, const struct volume_spec *spec, const struct principal *by,
                 struct err *e)
{
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
    if ((int64_t)l->list.count >= l->max) {
        err_set(e, ERR_LIMIT, 0, "there are %zu volumes already", l->list.count);
        return err_limit(e, "volumes_max", l->max, "remove some (holt volume ls, holt volume rm)");
    }
    if (named_check_free(&l->list, by, spec->tenant, spec->name, e) < 0)
        return -1;
    return check_share(l, spec, by, e);
}

int volume_create(struct volumes *l, const struct volume_spec *spec, const struct named_call *c,
                  struct err *e)
{
    struct volume_spec checked = *spec;
    struct volume *v;

    if (check_maker(spec, c->by, e) < 0 ||
        owner_tenant(c->by, spec->tenant, &checked.tenant, e) < 0 ||
        check(l, &checked, c->by, e) < 0)
        return err_wrap(e, "create a volume");
    v = volume_of(named_new(&l->list, c->by, checked.tenant, spec->name));
    v->named.shared = spec->shared;
    v->kind = spec->kind;
    v->size_bytes =
        spec->kind == VOLUME_TMPFS && !spec->size_bytes ? TMPFS_BYTES : spec->size_bytes;
    named_create(&v->named, "volume.created", c);
    return 0;
}

/* --- share --- */

struct share_job {
    bool shared; /* once it is written */
    named_cb done;
    void *arg;
};

static void share_written(void *arg, struct named *n, const struct err *e)
{
    struct share_job *j = arg;

    if (e->code == ERR_NONE)
        n->shared = j->shared;
    j->done(j->arg, n, e);
    mem_free(j);
}

int volume_share(struct volume *v, bool shared, const struct named_call *c, struct err *e)
{
    const struct share_job j = {shared, c->done, c->arg};
    bool was = v->named.shared;

    if (check_sharer(c->by, e) < 0)
        return err_wrap(e, "change volume '%s'", v->named.id);
    v->named.shared = shared; /* the row and the event are taken now */
    named_save(
        &v->named, "volume.updated",
        &(struct named_call){.by = c->by, .done = share_written, .arg = xmemdup(&j, sizeof j)});
    v->named.shared = was;
    return 0;
}

/* --- lookup --- */

struct volume *volume_find(struct volumes *l, const struct principal *by, enum volume_want want,
                           struct str tenant, struct str ref, struct err *e)
{
    const struct named_look look = {.by = by,
                                    .use = want == VOLUME_SEE ? OWNER_SEE : OWNER_CHANGE,
                                    .tenant = tenant,
                                    .ref = ref};

    return volume_of(named_find(&l->list, &look, e));
}

struct volume *volume_next(struct volumes *l, const struct principal *by, struct str after)
{
    return volume_of(named_next(&l->list, by, after));
}

/* --- users --- */

bool volume_is_mount(const struct sandbox_mount *m)
{
    return str_eq_c(m->kind, "volume") || str_eq_c(m->kind, "shared");
}

static bool mounts_volume(const struct sandbox *s, const struct volume *v)
{
    for (size_t i = 0; i < s->mount_count; i++)
        if (volume_is_mount(&s->mounts[i]) && str_eq_c(s->mounts[i].source, v->named.id))
            return true;
    return false;
}

/* The number of users; names the first few, as far as there is room. */
static size_t users(const struct volume *v, char *names, size_t size)
{
    const struct sandboxes *all = all_of(v)->sandboxes;
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
    *ret = (struct volume_info){.id = v->named.id,
                                .name = str_of(v->named.name),
                                .tenant = str_of(v->named.tenant),
                                .owner = str_of(v->named.owner),
                                .kind = v->kind,
                                .size_bytes = v->size_bytes,
                                .created_ms = v->named.created_ms,
                                .shared = v->named.shared,
                                .used_by = users(v, NULL, 0)};
}

static bool may_see(const struct volume *v, struct str tenant)
{
    return v->named.tenant[0] == '\0' || str_eq_c(tenant, v->named.tenant);
}

/* Volumes of the sandbox's tenant first, then those without one. */
static struct volume *find_for_mount(struct volumes *l, struct str name,
                                     const struct volume_asker *asker, struct err *e)
{
    struct named_look look = {
        .by = asker->by, .own_only = true, .tenant = asker->tenant, .ref = name};
    struct named *n = named_find(&l->list, &look, e);

    look.tenant = STR("");
    if (!n && asker->tenant.n > 0 && e->code == ERR_NOT_FOUND)
        n = named_find(&l->list, &look, e);
    return volume_of(n);
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
        return named_not_found(&volume_named, u->name, e);
    *ret = (struct sandbox_mount){.kind = v->kind == VOLUME_TMPFS ? STR("shared") : STR("volume"),
                                  .source = str_of(v->named.id),
                                  .target = u->path,
                                  .readonly = u->readonly,
                                  .size_bytes = v->size_bytes};
    return 0;
}

/* --- remove: the files first, then the row: a crash in between leaves an empty volume --- */

struct remove_job {
    struct volume *v;
    struct principal by;
    named_cb done;
    void *arg;
    size_t pending; /* runtimes still removing it */
    struct err e;
};

static void files_removed(void *arg, const struct err *e)
{
    struct remove_job *j = arg;

    if (e->code != ERR_NONE)
        j->e = *e;
    assert(j->pending > 0 && j->v->named.state == NAMED_REMOVING);
    if (--j->pending > 0)
        return;
    if (j->e.code != ERR_NONE) {
        err_wrap(&j->e, "remove volume '%s'", j->v->named.id);
        j->v->named.state = NAMED_READY;
        j->done(j->arg, NULL, &j->e);
    } else {
        named_remove(&j->v->named, "volume.removed",
                     &(struct named_call){.by = &j->by, .done = j->done, .arg = j->arg});
    }
    mem_free(j);
}

static int check_unused(const struct volume *v, struct err *e)
{
    char names[USERS_TOLD * ID_SIZE * 2];
    size_t n = users(v, names, sizeof names);

    if (n == 0)
        return 0;
    err_set(e, ERR_CONFLICT, 0, "volume '%s' is used by %zu sandbox%s: %s%s", v->named.name, n,
            n == 1 ? "" : "es", names, n > USERS_TOLD ? ", …" : "");
    err_object(e, "volume", v->named.id);
    return err_hint(e, "destroy them first: holt rm SANDBOX...");
}

int volume_remove(struct volume *v, const struct named_call *c, struct err *e)
{
    struct sandboxes *all = all_of(v)->sandboxes;
    const struct driver_volume what = {v->named.id, v->kind == VOLUME_TMPFS};
    struct remove_job *j;

    if (check_unused(v, e) < 0)
        return -1;
    j = xzalloc(sizeof *j);
    *j = (struct remove_job){.v = v, .by = *c->by, .done = c->done, .arg = c->arg, .pending = 1};
    v->named.state = NAMED_REMOVING;
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
    struct sandboxes *all = all_of(v)->sandboxes;
    const struct driver_volume what = {v->named.id, v->kind == VOLUME_TMPFS};

    for (size_t i = 0; i < all->driver_count; i++) {
        struct driver *d = all->drivers[i].driver;

        if (!d || !d->ops->volume_measure)
            continue;
        d->ops->volume_measure(d, &what, done, arg);
        return true;
    }
    return false;
}
