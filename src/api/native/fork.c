/* fork: sandboxes with the files of another, and keeping one of them. */
#include "api/native/handlers.h"
#include "api/native/snapshot.h"
#include "api/native/write.h"
#include "api/share/sandbox.h"
#include "base/arena.h"
#include "base/mem.h"
#include "core/network/secret.h"
#include "core/sandbox/volume.h"
#include "ops/snapshot.h"
#include "proto/json.h"

#define COUNT_MAX 64

/* All are begun at once.  If one cannot be made, the others go. */
struct fork {
    struct waiter waiter;
    struct api *api;
    struct principal by;
    struct arena a; /* copies of what the request said */
    struct sandbox_fork ask;
    struct str name;
    char snapshot[ID_SIZE];
    struct one {
        struct fork *f;
        struct sandbox *s; /* NULL: not made yet */
    } made[COUNT_MAX];
    size_t count, ended;
    struct err err;
};

static void fork_free(struct fork *f)
{
    for (size_t i = 0; i < f->count; i++)
        sandbox_unref(f->made[i].s);
    arena_done(&f->a);
    mem_free(f);
}

/* --- the end --- */

static void send_forks(struct request *r, const struct fork *f)
{
    struct jw w = request_json(r);

    jw_object(&w);
    jw_kc(&w, "snapshot", f->snapshot);
    jw_key(&w, "sandboxes");
    jw_array(&w);
    for (size_t i = 0; i < f->count; i++)
        sandbox_write_json(&w, f->made[i].s);
    jw_array_end(&w);
    jw_object_end(&w);
    request_send_json(r, 0);
}

static void fork_end(struct fork *f)
{
    struct request *r = waiter_end(&f->waiter);

    for (size_t i = 0; f->err.code != ERR_NONE && i < f->count; i++)
        if (f->made[i].s)
            sandbox_destroy(f->made[i].s, &f->by, NULL, NULL);
    if (r && f->err.code == ERR_NONE)
        send_forks(r, f);
    else if (r)
        request_fail(r, &f->err);
    fork_free(f);
}

static void one_made(void *arg, struct sandbox *s, const struct err *e)
{
    struct one *one = arg;
    struct fork *f = one->f;

    if (e->code == ERR_NONE)
        one->s = sandbox_ref(s);
    else if (f->err.code == ERR_NONE)
        f->err = *e;
    if (++f->ended == f->count)
        fork_end(f);
}

/* --- the beginning --- */

static void begin_forks(struct fork *f, const struct snapshot *s)
{
    AUTO(mem_free) char *spec = NULL;
    struct snapshot_info i;

    snapshot_info(s, &i);
    (void)snprintf(f->snapshot, sizeof f->snapshot, "%s", i.id);
    f->ask.base = str_of(f->snapshot);
    f->ask.runtime = arena_str(&f->a, i.runtime);
    spec = str_dup(i.spec);
    for (size_t k = 0; k < f->count; k++) {
        char name[80];

        if (f->count > 1 && f->name.n > 0) {
            (void)snprintf(name, sizeof name, STR_FMT "-%zu", STR_ARG(f->name), k + 1);
            f->ask.name = arena_str(&f->a, str_of(name));
        } else {
            f->ask.name = f->name;
        }
        f->made[k].f = f;
        sandbox_fork(f->api->c.sandboxes, str_of(spec), &f->ask, &f->by, one_made, &f->made[k]);
    }
}

static void source_copied(void *arg, struct snapshot *s, const struct err *e)
{
    struct fork *f = arg;

    if (s) {
        begin_forks(f, s);
        return;
    }
    f->err = *e;
    f->count = 0;
    fork_end(f);
}

static struct pair *copy_pairs(struct arena *a, const struct pair *p, size_t n)
{
    struct pair *to = arena_zalloc(a, (n + 1) * sizeof *to);

    for (size_t i = 0; i < n; i++)
        to[i] = (struct pair){arena_str(a, p[i].key), arena_str(a, p[i].value)};
    return to;
}

/* The request may be gone when its forks are made. */
static void copy_request(struct fork *f, const struct fork_in *in, const struct sandbox_spec *spec,
                         struct arena *of)
{
    struct volume_use *volumes = arena_zalloc(&f->a, (spec->volume_count + 1) * sizeof *volumes);
    struct secret_use *secrets = arena_zalloc(&f->a, (spec->secret_count + 1) * sizeof *secrets);

    for (size_t i = 0; i < spec->volume_count; i++) {
        volumes[i] = spec->volumes[i];
        volumes[i].name = arena_str(&f->a, spec->volumes[i].name);
        volumes[i].path = arena_str(&f->a, spec->volumes[i].path);
    }
    for (size_t i = 0; i < spec->secret_count; i++)
        secrets[i] = (struct secret_use){arena_str(&f->a, spec->secrets[i].name),
                                         arena_str(&f->a, spec->secrets[i].env)};
    f->name = arena_str(&f->a, in->name);
    f->ask = (struct sandbox_fork){
        .labels = copy_pairs(&f->a, spec->labels, spec->label_count),
        .label_count = spec->label_count,
        .env = copy_pairs(&f->a, spec_pairs(&in->env, of), in->env.n),
        .env_count = in->env.n,
        .limits = spec->traits.limits,
        .ttl_ms = spec->traits.ttl_ms,
        .idle_ttl_ms = spec->traits.idle_ttl_ms,
        .network = arena_str(&f->a, spec->network),
        .volumes = volumes,
        .volume_count = spec->volume_count,
        .secrets = secrets,
        .secret_count = spec->secret_count,
    };
}

void fork_run(struct request *r)
{
    const struct fork_in *in = r->in;
    struct arena *a = xchg_arena(r->x);
    struct snapshot *from = NULL;
    struct sandbox *of = NULL;
    struct sandbox_spec spec;
    struct err e = {0};
    struct fork *f;

    if (spec_read_sandbox(r, &in->sandbox, a, &spec, &e) < 0) {
        request_fail(r, &e);
        return;
    }
    if (snapshot_is_ref(in->source))
        from = request_snapshot(r, SNAPSHOT_SEE, NULL, in->source);
    else
        of = request_sandbox(r, in->source);
    if (!from && !of)
        return;
    f = xzalloc(sizeof *f);
    f->api = r->api;
    f->by = request_who(r);
    f->count = (size_t)in->count;
    copy_request(f, in, &spec, a);
    request_wait(r, &f->waiter);
    if (from)
        begin_forks(f, from);
    else if (snapshot_create(r->api->c.snapshots, of, &(struct snapshot_spec){.automatic = true},
                             &(struct snapshot_call){&f->by, source_copied, f}, &e) < 0)
        source_copied(f, NULL, &e);
}

/* --- keep --- */

void fork_keep_run(struct request *r)
{
    const struct fork_keep_in *in = r->in;
    struct sandbox *keep = request_sandbox(r, in->id), *next;
    struct sandbox_info winner, i;
    struct err e = {0};
    struct jw w;

    if (!keep)
        return;
    sandbox_info(keep, &winner);
    if (winner.forked_from.n == 0) {
        err_set(&e, ERR_CONFLICT, 0, "sandbox '%s' is no fork", winner.id);
        err_object(&e, "sandbox", winner.id);
        request_fail(r, &e);
        return;
    }
    w = request_json(r);
    jw_object(&w);
    jw_kc(&w, "kept", winner.id);
    jw_key(&w, "removed");
    jw_array(&w);
    for (struct sandbox *s = sandbox_next(r->api->c.sandboxes, &r->who, STR("")); s; s = next) {
        sandbox_info(s, &i);
        next = sandbox_next(r->api->c.sandboxes, &r->who, str_of(i.id));
        if (s == keep || !str_eq(i.forked_from, winner.forked_from) ||
            !str_eq(i.owner, winner.owner) || i.traits.protected)
            continue;
        jw_c(&w, i.id);
        sandbox_destroy(s, &r->who, NULL, NULL);
    }
    jw_array_end(&w);
    jw_object_end(&w);
    request_send_json(r, 0);
}
