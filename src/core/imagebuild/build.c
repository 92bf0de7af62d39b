/* build: the registry of builds, and the way of one from step to step. */
#include "core/imagebuild/build.h"

#include "base/clock.h"
#include "base/enc.h"
#include "base/mem.h"
#include "core/identity/owner.h"
#include "core/imagebuild/build_internal.h"
#include "proto/json.h"

#include <inttypes.h>

#define KEPT_MAX 200
#define KEPT_MS (24LL * 3600 * 1000)
#define WAITING_MAX 100
#define CACHE_NAME "cache/"

const char *const build_state_names[BUILD_STATE_COUNT + 1] = {"waiting", "running",   "ready",
                                                              "failed",  "cancelled", NULL};
const char *const build_mark_names[] = {"waiting", "running", "cached", "done", "failed", NULL};

struct build_wait {
    struct list link;
    build_cb done;
    void *arg;
};

static void next_step(struct build *b);
static void start_waiting(uv_timer_t *t);

/* --- the hash of a step --- */

static void add_part(struct buf *to, struct str s)
{
    buf_printf(to, "%zu:", s.n);
    buf_add_str(to, s);
}

static void take_key(struct build *b, const struct buf *parts)
{
    unsigned char sum[SHA256_SIZE];

    sha256(buf_str(parts), sum);
    enc_hex(sum, sizeof sum, b->key);
}

static void add_step(struct build *b, const struct build_step *s, struct str probed)
{
    AUTO(buf_done) struct buf parts = {0};

    add_part(&parts, str_of(b->key));
    add_part(&parts, s->script);
    add_part(&parts, s->cwd);
    add_part(&parts, s->user);
    for (size_t i = 0; i < s->env_count; i++) {
        add_part(&parts, s->env[i].key);
        add_part(&parts, s->env[i].value);
    }
    add_part(&parts, probed);
    take_key(b, &parts);
}

/* The layers of the base: another import of the same files is the same base. */
static int take_base(struct build *b, struct err *e)
{
    AUTO(buf_done) struct buf parts = {0};
    struct image_use use;

    if (images_use(b->all->c.images, &b->by, b->from, &use, e) < 0)
        return -1;
    add_part(&parts, str_of(b->by.tenant));
    add_part(&parts, use.on_host || use.layer_count == 0 ? STR("host") : STR(""));
    add_part(&parts, b->runtime);
    for (size_t i = 0; i < use.layer_count; i++) {
        add_part(&parts, str_of(use.layers[i]));
        images_release(b->all->c.images, str_of(use.layers[i]));
    }
    take_key(b, &parts);
    (void)snprintf(b->image, sizeof b->image, "%s", use.id);
    return 0;
}

/* --- the end --- */

static void tell_waits(struct build *b)
{
    struct list *node;

    while ((node = list_pop(&b->waits))) {
        AUTO(mem_free) struct build_wait *w = LIST_ENTRY(node, struct build_wait, link);

        w->done(w->arg, b, &b->err);
    }
}

static void told_end(struct build *b)
{
    b->ended_ms = clock_wall_ms();
    b->all->trims = true;
    tell_waits(b);
    (void)uv_timer_start(b->all->soon, start_waiting, 0, 0);
}

void build_end(struct build *b, const struct err *e)
{
    struct step *s = b->at < b->step_count ? &b->steps[b->at] : NULL;

    b->err = *e;
    if (b->cancel)
        err_set(&b->err, ERR_CANCELLED, 0, "the build was cancelled");
    b->state = b->cancel ? BUILD_CANCELLED : e->code == ERR_NONE ? BUILD_READY : BUILD_FAILED;
    if (s && b->state != BUILD_READY && s->mark == BUILD_STEP_RUNS) {
        s->mark = BUILD_STEP_FAILED;
        s->took_ms = clock_mono_ms() - s->began_ms;
    }
    build_drop_box(b, told_end);
}

bool build_stops(struct build *b)
{
    if (b->all->closed)
        return true;
    if (b->cancel)
        build_end(b, &(struct err){0});
    return b->cancel;
}

/* --- the image --- */

static void final_made(void *arg, struct image *i, const struct err *e)
{
    struct build *b = arg;
    struct image_info info;

    b->busy = false;
    if (build_stops(b))
        return;
    if (i && e->code == ERR_NONE) {
        image_info(i, &info);
        (void)snprintf(b->image, sizeof b->image, "%s", info.id);
    }
    build_end(b, e);
}

static bool same_name(const char *a, const char *b)
{
    size_t n = strcspn(a, "=");

    return strcspn(b, "=") == n && strncmp(a, b, n) == 0;
}

/* Variables of the build replace those of the same name. */
static void merge_env(const json_t *below, json_t *own)
{
    for (size_t i = json_array_size(below); i > 0; i--) {
        json_t *v = json_array_get(below, i - 1);
        bool there = !json_is_string(v);

        for (size_t k = 0; k < json_array_size(own) && !there; k++)
            there = same_name(json_string_value(json_array_get(own, k)), json_string_value(v));
        if (!there)
            (void)json_array_insert(own, 0, v);
    }
}

#define PATH_PRESET "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

/* Puts directories in front of PATH. */
static void add_path(struct build *b, json_t *all)
{
    json_t *env = json_object_get(all, "env");
    const char *path = PATH_PRESET;
    size_t at;

    if (!json_is_array(env)) {
        env = json_array();
        (void)json_object_set_new(all, "env", env);
    }
    for (at = 0; at < json_array_size(env); at++) {
        const char *v = json_string_value(json_array_get(env, at));

        if (v && strncmp(v, "PATH=", 5) == 0)
            break;
    }
    if (at < json_array_size(env)) {
        path = arena_cstr(&b->arena, str_of(json_string_value(json_array_get(env, at)) + 5));
        (void)json_array_remove(env, at);
    }
    (void)json_array_append_new(
        env, json_string(arena_printf(&b->arena, "PATH=" STR_FMT ":%s", STR_ARG(b->path), path)));
}

/* Members of the build's win. */
static struct str merged_defaults(struct build *b, struct str below)
{
    AUTO(json_decref) json_t *all = NULL;
    AUTO(json_decref) json_t *own = NULL;
    AUTO(buf_done) struct buf text = {0};
    struct jw w = {.to = &text};
    struct err e;

    if (below.n == 0 || json_read(below, &all, &e) < 0)
        all = json_object();
    if (b->defaults.n > 0 && json_read(b->defaults, &own, &e) == 0) {
        merge_env(json_object_get(all, "env"), json_object_get(own, "env"));
        json_object_update(all, own);
    }
    if (b->path.n > 0)
        add_path(b, all);
    jw_json(&w, all);
    return arena_str(&b->arena, buf_str(&text));
}

static void make_final(struct build *b)
{
    struct image_use use;
    struct err e = {0};
    int r = images_use(b->all->c.images, &b->by, str_of(b->image), &use, &e);

    if (r < 0) {
        build_end(b, &e);
        return;
    }
    b->busy = true;
    r = image_from_layers(b->all->c.images,
                          &(struct image_commit_spec){.name = b->name,
                                                      .source = IMAGE_SOURCE_BUILD,
                                                      .layers = use.layers,
                                                      .layer_count = use.layer_count,
                                                      .on_host = use.on_host,
                                                      .defaults = merged_defaults(b, use.defaults)},
                          &b->by, final_made, b, &e);
    for (size_t i = 0; i < use.layer_count; i++)
        images_release(b->all->c.images, str_of(use.layers[i]));
    if (r < 0) {
        b->busy = false;
        build_end(b, &e);
    }
}

/* --- a step --- */

static void step_over(struct build *b, enum build_mark mark)
{
    struct step *s = &b->steps[b->at++];

    s->mark = mark;
    s->took_ms = clock_mono_ms() - s->began_ms;
    build_drop_box(b, next_step);
}

static void step_kept(struct build *b, const char *image, const struct err *e)
{
    if (build_stops(b))
        return;
    if (!image) {
        build_end(b, e);
        return;
    }
    (void)snprintf(b->image, sizeof b->image, "%s", image);
    step_over(b, BUILD_STEP_DONE);
}

static void cache_name(const struct build *b, char to[80])
{
    (void)snprintf(to, 80, CACHE_NAME "%.40s", b->key);
}

/* The end of its output says most. */
static void say_failed(struct build *b, int exit_code, struct str output, struct err *e)
{
    size_t n = 0;

    while (output.n > 0 && strchr(" \r\n\t", output.p[output.n - 1]))
        output.n--;
    while (n < output.n && n < 140 && output.p[output.n - n - 1] != '\n')
        n++;
    err_set(e, ERR_INVALID, 0, "step %zu of %zu, '" STR_FMT "', ended with status %d: " STR_FMT,
            b->at + 1, b->step_count, (int)size_min(b->steps[b->at].s.name.n, 60),
            b->steps[b->at].s.name.p, exit_code, (int)n, output.p ? output.p + output.n - n : "");
    err_hint(e, "`holt build log %s` shows its output", b->id);
}

static void step_ran(struct build *b, int exit_code, struct str output, const struct err *e)
{
    struct err why = *e;
    char name[80];

    if (build_stops(b))
        return;
    if (why.code == ERR_NONE && exit_code != 0)
        say_failed(b, exit_code, output, &why);
    if (why.code != ERR_NONE) {
        build_end(b, &why);
        return;
    }
    if (b->into) {
        step_over(b, BUILD_STEP_DONE);
        return;
    }
    cache_name(b, name);
    build_commit(b, name, step_kept);
}

/* Whoever knows a step knows the name of its image, and could give it to one of his own: people of
 * no tenant see those of all. */
bool build_may_use(const struct principal *by, const struct image_info *i)
{
    return i->tenant.n == 0 || str_eq_c(i->tenant, by->tenant);
}

/* Its hash is known. */
static void run_step(struct build *b)
{
    const struct build_step *s = &b->steps[b->at].s;
    struct image_info info;
    struct image *there;
    struct err e = {0};
    char name[80];

    cache_name(b, name);
    there = b->fresh ? NULL : image_find(b->all->c.images, &b->by, IMAGE_SEE, str_of(name), &e);
    if (there)
        image_info(there, &info);
    if (there && info.state == IMAGE_READY && str_eq_c(info.source, IMAGE_SOURCE_CACHE) &&
        build_may_use(&b->by, &info)) {
        (void)snprintf(b->image, sizeof b->image, "%s", info.id);
        step_over(b, BUILD_STEP_CACHED);
        return;
    }
    build_run(b, &(struct build_run){.script = s->script, .step = s, .done = step_ran});
}

static void probe_gone(struct build *b)
{
    if (!build_stops(b))
        run_step(b);
}

static void probed(struct build *b, int exit_code, struct str output, const struct err *e)
{
    struct err why = *e;

    if (build_stops(b))
        return;
    if (why.code == ERR_NONE && exit_code != 0)
        say_failed(b, exit_code, output, &why);
    if (why.code != ERR_NONE) {
        build_end(b, &why);
        return;
    }
    add_step(b, &b->steps[b->at].s, output);
    build_drop_box(b, probe_gone);
}

static void next_step(struct build *b)
{
    const struct build_step *s;

    if (build_stops(b))
        return;
    if (b->at == b->step_count) {
        if (b->into)
            build_end(b, &(struct err){0});
        else
            make_final(b);
        return;
    }
    s = &b->steps[b->at].s;
    b->steps[b->at].mark = BUILD_STEP_RUNS;
    b->steps[b->at].began_ms = clock_mono_ms();
    if (b->into) {
        build_run(b, &(struct build_run){.script = s->script, .step = s, .done = step_ran});
        return;
    }
    if (s->probe.n > 0) {
        build_run(
            b, &(struct build_run){.script = s->probe, .step = s, .probing = true, .done = probed});
        return;
    }
    add_step(b, s, STR(""));
    run_step(b);
}

/* --- starting --- */

static void begin(struct build *b)
{
    struct err e = {0};

    b->state = BUILD_RUNNING;
    if (!b->into && take_base(b, &e) < 0)
        build_end(b, &e);
    else
        next_step(b);
}

static void start_waiting(uv_timer_t *t)
{
    struct builds *l = t->data;
    int64_t running = 0;

    LIST_EACH (&l->list, node)
        running += LIST_ENTRY(node, struct build, link)->state == BUILD_RUNNING;
    LIST_EACH (&l->list, other) {
        struct build *b = LIST_ENTRY(other, struct build, link);

        if (l->closed || running >= *l->c.running)
            return;
        if (b->state != BUILD_WAITING)
            continue;
        running++;
        begin(b);
    }
}

static void copy_step(struct build *b, const struct build_step *from, struct build_step *to)
{
    struct pair *env = arena_zalloc(&b->arena, (from->env_count + 1) * sizeof *env);

    *to = *from;
    to->name = arena_str(&b->arena, from->name);
    to->script = arena_str(&b->arena, from->script);
    to->probe = arena_str(&b->arena, from->probe);
    to->cwd = arena_str(&b->arena, from->cwd);
    to->user = arena_str(&b->arena, from->user);
    for (size_t i = 0; i < from->env_count; i++)
        env[i] = (struct pair){arena_str(&b->arena, from->env[i].key),
                               arena_str(&b->arena, from->env[i].value)};
    to->env = env;
}

static struct build *build_new(struct builds *l, const struct build_spec *s,
                               const struct principal *by)
{
    struct build *b = xzalloc(sizeof *b);

    b->all = l;
    id_make("bd", b->id);
    b->by = *by;
    b->by.token = NULL;
    b->name = arena_str(&b->arena, s->name);
    b->what = arena_str(&b->arena, s->what);
    b->from = arena_str(&b->arena, s->from);
    b->runtime = arena_str(&b->arena, s->runtime);
    b->defaults = arena_str(&b->arena, s->defaults);
    b->path = arena_str(&b->arena, s->path);
    b->network = arena_str(&b->arena, s->network);
    b->context = arena_str(&b->arena, s->context);
    b->fresh = s->fresh;
    b->into = s->into ? sandbox_ref(s->into) : NULL;
    b->step_count = s->step_count;
    b->steps = arena_zalloc(&b->arena, (s->step_count + 1) * sizeof *b->steps);
    for (size_t i = 0; i < s->step_count; i++)
        copy_step(b, &s->steps[i], &b->steps[i].s);
    b->created_ms = clock_wall_ms();
    list_init(&b->waits);
    list_push(&l->list, &b->link);
    l->count++;
    return b;
}

static void build_free(struct build *b)
{
    struct list *node;

    list_unlink(&b->link);
    b->all->count--;
    while ((node = list_pop(&b->waits)))
        mem_free(LIST_ENTRY(node, struct build_wait, link));
    sandbox_unref(b->box);
    sandbox_unref(b->into);
    buf_done(&b->log);
    arena_done(&b->arena);
    mem_free(b);
}

static bool has_ended(const struct build *b)
{
    return b->ended_ms != 0;
}

static struct build *same_build(struct builds *l, const struct build_spec *s,
                                const struct principal *by)
{
    LIST_EACH (&l->list, node) {
        struct build *b = LIST_ENTRY(node, struct build, link);

        if (!has_ended(b) && !b->cancel && !s->fresh && !s->into && !b->into && s->context.n == 0 &&
            b->context.n == 0 && str_eq(b->name, s->name) && str_eq(b->from, s->from) &&
            str_eq(b->runtime, s->runtime) && strcmp(b->by.tenant, by->tenant) == 0 &&
            strcmp(principal_owner(&b->by), principal_owner(by)) == 0)
            return b;
    }
    return NULL;
}

static int check_room(const struct builds *l, const struct build_spec *s, struct err *e)
{
    size_t waiting = 0;

    if (l->closed)
        return err_set(e, ERR_UNAVAILABLE, 0, "holtd is stopping");
    if (s->step_count > BUILD_STEPS_MAX)
        return err_set(e, ERR_LIMIT, 0, "a build has at most %d steps; this one has %zu",
                       BUILD_STEPS_MAX, s->step_count);
    LIST_EACH (&l->list, node)
        waiting += LIST_ENTRY(node, struct build, link)->state == BUILD_WAITING;
    if (waiting < WAITING_MAX)
        return 0;
    err_set(e, ERR_LIMIT, 0, "%zu builds are waiting already", waiting);
    return err_limit_fixed(e, WAITING_MAX, "wait until one has ended");
}

int build_start(struct builds *l, const struct build_spec *s, const struct principal *by,
                struct build **ret, struct err *e)
{
    struct build *b;

    if (check_room(l, s, e) < 0 || (!s->into && images_check_name(s->name, e) < 0))
        return -1;
    b = same_build(l, s, by);
    if (!b)
        b = build_new(l, s, by);
    (void)uv_timer_start(l->soon, start_waiting, 0, 0); /* the caller may wait for it first */
    *ret = b;
    return 0;
}

struct build_wait *build_wait(struct build *b, build_cb done, void *arg)
{
    struct build_wait *w = xzalloc(sizeof *w);

    *w = (struct build_wait){.done = done, .arg = arg};
    list_push(&b->waits, &w->link);
    return w;
}

void build_wait_cancel(struct build_wait *w)
{
    if (w)
        list_unlink(&w->link);
    mem_free(w);
}

static void box_destroyed(void *arg, struct sandbox *s, const struct err *e)
{
    (void)arg, (void)s, (void)e; /* its command ends with it: the build goes on from there */
}

int build_cancel(struct build *b, struct err *e)
{
    if (has_ended(b))
        return err_set(e, ERR_CONFLICT, 0, "build '%s' has ended: it is %s", b->id,
                       build_state_names[b->state]);
    b->cancel = true;
    if (b->state == BUILD_WAITING)
        build_end(b, &(struct err){0});
    else if (b->into)
        build_kill(b);
    else if (b->box)
        sandbox_destroy(b->box, &b->by, box_destroyed, NULL);
    return 0;
}

/* --- finding --- */

static bool may(const struct build *b, const struct principal *by, enum owner_use use)
{
    return owner_may(
        by,
        &(struct owned){.owner = str_of(principal_owner(&b->by)), .tenant = str_of(b->by.tenant)},
        use);
}

struct build *build_find(struct builds *l, const struct principal *by, bool change, struct str id,
                         struct err *e)
{
    LIST_EACH (&l->list, node) {
        struct build *b = LIST_ENTRY(node, struct build, link);

        if (str_eq_c(id, b->id) && may(b, by, change ? OWNER_CHANGE : OWNER_SEE))
            return b;
    }
    err_set(e, ERR_NOT_FOUND, 0, "there is no build '" STR_FMT "'", (int)size_min(id.n, 64), id.p);
    return NULL;
}

struct build *build_next(struct builds *l, const struct principal *by, struct str after)
{
    LIST_EACH (&l->list, node) {
        struct build *b = LIST_ENTRY(node, struct build, link);

        if (str_cmp(str_of(b->id), after) > 0 && may(b, by, OWNER_SEE))
            return b;
    }
    return NULL;
}

void build_info(const struct build *b, struct build_info *ret)
{
    *ret = (struct build_info){
        .id = b->id,
        .name = b->name,
        .what = b->what,
        .owner = str_of(principal_owner(&b->by)),
        .tenant = str_of(b->by.tenant),
        .from = b->from,
        .state = has_ended(b) || b->state == BUILD_WAITING ? b->state : BUILD_RUNNING,
        .image = b->state == BUILD_READY && !b->into ? str_of(b->image) : STR(""),
        .failure = str_of(b->err.msg),
        .step_count = b->step_count,
        .at = b->at,
        .created_ms = b->created_ms,
        .ended_ms = b->ended_ms,
        .log = buf_str(&b->log)};
}

void build_step_info(const struct build *b, size_t i, struct build_step_info *ret)
{
    const struct step *s = &b->steps[i];

    *ret = (struct build_step_info){s->s.name, s->mark,
                                    s->mark == BUILD_STEP_RUNS ? clock_mono_ms() - s->began_ms
                                                               : s->took_ms};
}

/* --- the registry --- */

struct builds *builds_new(const struct builds_config *c)
{
    struct builds *l = xzalloc(sizeof *l);

    l->c = *c;
    list_init(&l->list);
    l->soon = xzalloc(sizeof *l->soon);
    (void)uv_timer_init(c->loop, l->soon);
    l->soon->data = l;
    return l;
}

static void timer_closed(uv_handle_t *h)
{
    mem_free(h);
}

void builds_close(struct builds *l)
{
    l->closed = true;
    LIST_EACH (&l->list, node)
        build_let_go(LIST_ENTRY(node, struct build, link));
    uv_close((uv_handle_t *)l->soon, timer_closed);
}

struct builds *builds_free(struct builds *l)
{
    if (!l)
        return NULL;
    while (!list_is_empty(&l->list))
        build_free(LIST_ENTRY(l->list.next, struct build, link));
    mem_free(l);
    return NULL;
}

static void cache_removed(void *arg, const struct err *e)
{
    (void)arg, (void)e; /* tried again a second later */
}

/* The oldest images of the cache beyond the limit go, one a second, while no build uses them. */
static void trim_cache(struct builds *l)
{
    struct image_info i = {.id = ""};
    char oldest[ID_SIZE] = "";
    int64_t count = 0;

    for (struct image *one = image_next(l->c.images, &principal_system, STR(""), false); one;
         one = image_next(l->c.images, &principal_system, str_of(i.id), false)) {
        image_info(one, &i);
        if (!str_eq_c(i.source, IMAGE_SOURCE_CACHE) || i.state != IMAGE_READY)
            continue;
        if (count++ == 0)
            (void)snprintf(oldest, sizeof oldest, "%s", i.id);
    }
    l->trims = count > *l->c.cache_max;
    if (l->trims)
        image_remove(l->c.images, str_of(oldest), &principal_system, cache_removed, NULL);
}

void builds_tick(struct builds *l)
{
    int64_t now = clock_wall_ms();
    bool idle = true;

    LIST_EACH (&l->list, node) {
        struct build *b = LIST_ENTRY(node, struct build, link);

        if (has_ended(b) && !b->busy && (l->count > KEPT_MAX || b->ended_ms + KEPT_MS < now))
            build_free(b);
        else
            idle = idle && has_ended(b);
    }
    if (idle && l->trims)
        trim_cache(l);
}
