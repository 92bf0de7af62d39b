/* build_run: one script of a build in a sandbox, and the layer of its files. */
#include "core/imagebuild/build_internal.h"

#include "base/mem.h"
#include "conf/conf.h"
#include "core/exec/tool.h"
#include "core/sandbox/sandbox_layers.h"
#include "core/sandbox/volume.h"
#include "core/space.h"
#include "proto/json.h"

#define OUTPUT_MAX (64 * 1024)
#define ENV_MAX 320
#define MARGIN_MS (10LL * 60 * 1000) /* a sandbox outlives its step by this, if nobody ends it */

struct run {
    struct build *b;
    struct build_run r;
    struct exec *x;
    struct exec_wait *wait;
    struct exec_reader *reader;
    struct buf output;
    int exit_code;
    bool ended, read;
    struct err err;
};

/* --- output --- */

/* Keeps the newest. */
static void add_tail(struct buf *to, struct str bytes)
{
    if (bytes.n > OUTPUT_MAX)
        bytes = str_skip(bytes, bytes.n - OUTPUT_MAX);
    buf_add(to, bytes.p, bytes.n);
    if (buf_len(to) > OUTPUT_MAX)
        buf_take(to, buf_len(to) - OUTPUT_MAX);
}

static void run_free(struct run *j)
{
    exec_unref(j->x);
    buf_done(&j->output);
    mem_free(j);
}

/* Both its end and its output are there. */
static void run_over(struct run *j)
{
    struct build *b = j->b;

    if (!j->ended || !j->read)
        return;
    b->busy = false;
    b->run = NULL;
    if (!b->all->closed)
        j->r.done(b, j->exit_code, buf_str(&j->output), &j->err);
    run_free(j);
}

static void run_failed(struct run *j, const struct err *e)
{
    j->err = *e;
    j->ended = j->read = true;
    run_over(j);
}

static int on_bytes(void *arg, enum exec_which stream, int64_t offset, int64_t time_us,
                    struct str bytes)
{
    struct run *j = arg;

    (void)stream, (void)offset, (void)time_us;
    add_tail(&j->output, bytes);
    if (!j->r.probing && !j->b->all->closed)
        add_tail(&j->b->log, bytes);
    return 0;
}

static int on_gap(void *arg, enum exec_which stream, int64_t from, int64_t to)
{
    (void)arg, (void)stream, (void)from, (void)to;
    return 0;
}

static void on_read(void *arg, const struct err *e)
{
    struct run *j = arg;

    (void)e; /* what could not be read is missing in a log */
    j->reader = NULL;
    j->read = true;
    run_over(j);
}

static void exec_over(void *arg, struct exec *x, const struct err *e)
{
    struct run *j = arg;
    struct exec_info i;

    j->wait = NULL;
    j->err = *e;
    j->ended = true;
    if (x) {
        exec_info(x, &i);
        j->exit_code = i.exit_code;
        if (i.timed_out)
            err_set(&j->err, ERR_TIMEOUT, 0, "it took longer than %lld s",
                    (long long)(i.timeout_ms / 1000));
    }
    run_over(j);
}

static void exec_begun(void *arg, struct exec *x, const struct err *e)
{
    static const struct exec_reader_ops ops = {.bytes = on_bytes, .gap = on_gap, .end = on_read};
    struct run *j = arg;

    if (!x || e->code != ERR_NONE) {
        run_failed(j, e);
        return;
    }
    j->x = exec_ref(x);
    j->wait = exec_wait(x, exec_over, j);
    j->reader = exec_read(x, EXEC_BOTH, 0, 0, true, &ops, j);
}

/* --- the command --- */

static size_t step_env(const struct builds *l, const struct build_step *s, struct pair *to)
{
    size_t n = 0;

    for (size_t i = 0; i < l->c.env->n && n < ENV_MAX / 2; i++) {
        to[n].key = str_cut(str_of(l->c.env->v[i]), '=', &to[n].value);
        n += to[n].key.n > 0;
    }
    for (size_t i = 0; i < s->env_count && n < ENV_MAX; i++)
        to[n++] = s->env[i];
    return n;
}

static void start_command(struct run *j)
{
    const struct str argv[] = {STR("/bin/sh"), STR("-c"), j->r.script};
    struct build *b = j->b;
    struct pair env[ENV_MAX];

    exec_start(b->box,
               &(struct exec_spec){.argv = argv,
                                   .argc = ARRAY_LEN(argv),
                                   .env = env,
                                   .env_count = step_env(b->all, j->r.step, env),
                                   .cwd = j->r.step->cwd,
                                   .user = j->r.step->user,
                                   .merge = true,
                                   .kill_rest = true,
                                   .timeout_ms = *b->all->c.step_ms,
                                   .output_bytes = 4 << 20},
               &b->by, exec_begun, j);
}

static void box_made(void *arg, struct sandbox *s, const struct err *e)
{
    struct run *j = arg;
    struct build *b = j->b;

    if (s)
        b->box = sandbox_ref(s);
    if (!s || b->cancel || b->all->closed)
        run_failed(j, e);
    else
        start_command(j);
}

/* --- the sandbox --- */

/* An allowlist; "none" without any. */
struct str builds_network(const struct builds *l, struct arena *a)
{
    const struct conf_list *hosts = l->c.hosts;
    AUTO(buf_done) struct buf text = {0};
    struct jw w = {.to = &text};

    if (hosts->n == 0)
        return STR("none");
    if (hosts->n == 1 && strcmp(hosts->v[0], "*") == 0)
        return STR("open");
    jw_object(&w);
    jw_kc(&w, "mode", "allowlist");
    jw_key(&w, "allow");
    jw_array(&w);
    for (size_t i = 0; i < hosts->n; i++)
        jw_c(&w, hosts->v[i]);
    jw_array_end(&w);
    jw_object_end(&w);
    return arena_str(a, buf_str(&text));
}

static struct str network_of(struct build *b)
{
    return b->network.n > 0 ? b->network : builds_network(b->all, &b->arena);
}

void build_run(struct build *b, const struct build_run *r)
{
    const struct pair labels[] = {{STR(TOOL_LABEL), STR("build")},
                                  {STR("holt.build"), str_of(b->id)}};
    const struct volume_use context = {
        .name = b->context, .path = STR(BUILD_CONTEXT), .readonly = true};
    struct run *j = xzalloc(sizeof *j);

    *j = (struct run){.b = b, .r = *r, .exit_code = -1};
    b->busy = true;
    b->run = j;
    if (b->into) {
        b->box = sandbox_ref(b->into);
        start_command(j);
        return;
    }
    sandbox_create(b->all->c.sandboxes,
                   &(struct sandbox_spec){.image = str_of(b->image),
                                          .runtime = b->runtime,
                                          .traits = {.ttl_ms = *b->all->c.step_ms + MARGIN_MS},
                                          .labels = labels,
                                          .label_count = ARRAY_LEN(labels),
                                          .volumes = &context,
                                          .volume_count = r->step->needs_context,
                                          .network = r->probing ? STR("none") : network_of(b),
                                          .house_network = b->network.n == 0},
                   &b->by, box_made, j);
}

static void command_killed(void *arg, struct exec *x, const struct err *e)
{
    (void)arg, (void)x, (void)e; /* the build goes on from its end */
}

void build_kill(struct build *b)
{
    if (b->run && b->run->x)
        exec_cancel(b->run->x, command_killed, NULL);
}

/* One that has not begun gets its callback, and is freed there. */
void build_let_go(struct build *b)
{
    struct run *j = b->run;

    if (!j || !j->x)
        return;
    b->run = NULL;
    exec_wait_cancel(j->wait);
    exec_reader_end(j->reader);
    run_free(j);
}

/* --- its end --- */

struct drop {
    struct build *b;
    void (*then)(struct build *b);
};

static void box_gone(void *arg, struct sandbox *s, const struct err *e)
{
    AUTO(mem_free) struct drop *j = arg;

    (void)s, (void)e; /* its lifetime ends it if this did not */
    j->b->busy = false;
    if (j->then && !j->b->all->closed)
        j->then(j->b);
}

void build_drop_box(struct build *b, void (*then)(struct build *b))
{
    AUTO(sandbox_unref) struct sandbox *s = TAKE(b->box);
    struct drop *j;

    if (!s || b->into) {
        if (then)
            then(b);
        return;
    }
    j = xzalloc(sizeof *j);
    *j = (struct drop){b, then};
    b->busy = true;
    sandbox_destroy(s, &b->by, box_gone, j);
}

/* --- its files as an image --- */

struct commit {
    struct build *b;
    char name[80];
    char layer[ID_SIZE];
    void (*done)(struct build *b, const char *image, const struct err *e);
};

static void commit_over(struct commit *j, const char *image, const struct err *e)
{
    struct build *b = j->b;

    b->busy = false;
    if (j->layer[0])
        images_release(b->all->c.images, str_of(j->layer));
    if (!b->all->closed)
        j->done(b, image, e);
    mem_free(j);
}

static void image_made(void *arg, struct image *i, const struct err *e)
{
    struct image_info info;

    if (i)
        image_info(i, &info);
    commit_over(arg, i && e->code == ERR_NONE ? info.id : NULL, e);
}

static int image_of_layers(struct commit *j, struct err *e)
{
    struct build *b = j->b;
    bool on_host;
    size_t n;
    AUTO(mem_free) const char **below = sandbox_layers(b->box, &n, &on_host);
    AUTO(mem_free) const char **all = xzalloc((n + 1) * sizeof *all);

    memcpy(all, below, n * sizeof *all);
    all[n] = j->layer;
    return image_from_layers(b->all->c.images,
                             &(struct image_commit_spec){.name = str_of(j->name),
                                                         .source = IMAGE_SOURCE_CACHE,
                                                         .layers = all,
                                                         .layer_count = n + 1,
                                                         .on_host = on_host,
                                                         .defaults = sandbox_defaults_of(b->box)},
                             &b->by, image_made, j, e);
}

static void layer_added(void *arg, const char *id, const struct err *e)
{
    struct commit *j = arg;
    struct err why = *e;

    if (!id || j->b->all->closed) {
        commit_over(j, NULL, e);
        return;
    }
    (void)snprintf(j->layer, sizeof j->layer, "%s", id);
    if (image_of_layers(j, &why) < 0)
        commit_over(j, NULL, &why);
}

static void files_copied(void *arg, struct sandbox *s, const struct driver_snapped *d,
                         const struct err *e)
{
    struct commit *j = arg;
    struct build *b = j->b;

    (void)s;
    if (e->code != ERR_NONE || b->all->closed) {
        images_drop_dir(b->all->c.images, b->dir);
        commit_over(j, NULL, e);
        return;
    }
    images_add_layer(
        b->all->c.images,
        &(struct image_layer){
            .dir = b->dir, .digest = d->digest, .bytes = d->bytes, .entries = d->entries},
        layer_added, j);
}

/* Stopped first: files of a running one cannot be copied on every host. */
static void box_stopped(void *arg, struct sandbox *s, const struct err *e)
{
    struct commit *j = arg;
    struct build *b = j->b;
    struct err why = *e;

    if (!s || e->code != ERR_NONE || b->all->closed ||
        images_make_dir(b->all->c.images, "tmp", b->dir, &why) < 0)
        commit_over(j, NULL, &why);
    else
        sandbox_snapshot(s, b->dir, space_room(b->all->c.space), &b->by, files_copied, j);
}

void build_commit(struct build *b, const char *name,
                  void (*done)(struct build *b, const char *image, const struct err *e))
{
    struct commit *j = xzalloc(sizeof *j);

    *j = (struct commit){.b = b, .done = done};
    (void)snprintf(j->name, sizeof j->name, "%s", name);
    b->busy = true;
    sandbox_stop(b->box, 0, true, &b->by, box_stopped, j);
}
