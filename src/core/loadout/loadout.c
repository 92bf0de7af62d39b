/* loadout: the registry of loadouts: files of the program and of the operator, and their images. */
#include "core/loadout/loadout.h"

#include "base/enc.h"
#include "base/fd.h"
#include "base/mem.h"
#include "core/loadout/loadout_internal.h"
#include "proto/digest.h"
#include "proto/yaml.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>

#define FILES_MAX 512
#define FILE_MAX (256 * 1024)
#define REGISTRY "registry.yaml"
#define IMAGE_NAME "loadout/"

/* --- reading --- */

static struct entry *entry_of(struct loadouts *l, const char *path)
{
    for (size_t i = 0; i < l->count; i++)
        if (strcmp(l->list[i].path, path) == 0)
            return &l->list[i];
    return NULL;
}

/* "profiles/x.yaml" → "x" */
static char *name_of(const char *path, const json_t *m)
{
    const char *name = json_string_value(json_object_get(json_object_get(m, "metadata"), "name"));
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;

    if (name)
        return xstrdup(name);
    return xstrndup(base, strcspn(base, "."));
}

/* A file of the operator's replaces one of the program's of the same path. */
static void keep(struct loadouts *l, const char *path, json_t *m)
{
    struct entry *x = entry_of(l, path);
    const char *kind = json_string_value(json_object_get(m, "kind"));

    if (!x) {
        l->list = xrealloc(l->list, (l->count + 1) * sizeof *l->list);
        x = &l->list[l->count++];
        *x = (struct entry){.path = xstrdup(path)};
    }
    json_decref(x->manifest);
    mem_free(x->name);
    x->manifest = json_incref(m);
    x->name = name_of(path, m);
    x->layer = kind && strcmp(kind, "layer") == 0;
}

/* The operator's registry adds to ours. */
static void take_registry(struct loadouts *l, const json_t *m)
{
    if (!l->registry)
        l->registry = json_object();
    loadout_merge(l->registry, m);
}

static int take_file(struct loadouts *l, const char *path, struct str text, struct err *e)
{
    AUTO(yaml_done) struct yaml y = {0};

    if (yaml_read(text, &y, e) < 0)
        return err_wrap(e, "loadout '%s'", path);
    if (strcmp(path, REGISTRY) == 0) {
        take_registry(l, y.root);
        return 0;
    }
    if (loadout_check(y.root, path, e) < 0)
        return -1;
    keep(l, path, y.root);
    return 0;
}

static bool is_yaml(const char *name)
{
    return name[0] != '.' &&
           (str_ends(str_of(name), STR(".yaml")) || str_ends(str_of(name), STR(".yml")));
}

static int too_many_files(const struct loadouts *l, struct err *e)
{
    err_set(e, ERR_LIMIT, 0, "'%s' has more than %d loadouts", l->c.dir, FILES_MAX);
    return err_limit_fixed(e, FILES_MAX, "move some of them elsewhere");
}

static int read_dir(struct loadouts *l, const char *below, struct err *e)
{
    AUTO(mem_free)
    char *dir = below[0] ? xasprintf("%s/%s", l->c.dir, below) : xstrdup(l->c.dir);
    DIR *d = opendir(dir);
    struct dirent *f;
    int r = 0;

    if (!d)
        return below[0] && errno == ENOENT ? 0
                                           : err_set(e, err_code_from_errno(errno), errno,
                                                     "read the loadouts in '%s'", dir);
    while (r == 0 && (f = readdir(d))) {
        AUTO(mem_free) char *file = xasprintf("%s/%s", dir, f->d_name);
        AUTO(mem_free) char *path = xasprintf("%s%s%s", below, below[0] ? "/" : "", f->d_name);
        AUTO(buf_done) struct buf text = {0};
        int got = is_yaml(f->d_name) ? file_read(file, FILE_MAX, &text) : 1;

        if (got < 0)
            r = err_set(e, err_code_from_errno(-got), -got, "read '%s'", file);
        else if (got == 0 && l->count >= FILES_MAX)
            r = too_many_files(l, e);
        else if (got == 0)
            r = take_file(l, path, buf_str(&text), e);
    }
    (void)closedir(d);
    return r;
}

static int by_path(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;

    return strcmp(x->path, y->path);
}

int loadouts_open(const struct loadouts_config *c, struct loadouts **ret, struct err *e)
{
    static const char *const below[] = {"", "profiles", "layers", "providers"};
    struct loadouts *l = xzalloc(sizeof *l);
    int r = 0;

    l->c = *c;
    for (size_t i = 0; r == 0 && i < loadout_file_count; i++)
        r = take_file(l, loadout_files[i].path, str_of(loadout_files[i].text), e);
    for (size_t i = 0; r == 0 && c->dir && c->dir[0] && i < ARRAY_LEN(below); i++)
        r = read_dir(l, below[i], e);
    if (r < 0) {
        loadouts_free(l);
        return -1;
    }
    qsort(l->list, l->count, sizeof *l->list, by_path);
    *ret = l;
    return 0;
}

void loadouts_start(struct loadouts *l, struct builds *builds, struct images *images)
{
    l->builds = builds;
    l->images = images;
}

struct loadouts *loadouts_free(struct loadouts *l)
{
    if (!l)
        return NULL;
    for (size_t i = 0; i < l->count; i++) {
        mem_free(l->list[i].path);
        mem_free(l->list[i].name);
        json_decref(l->list[i].manifest);
    }
    mem_free(l->list);
    json_decref(l->registry);
    mem_free(l);
    return NULL;
}

const json_t *loadouts_registry(const struct loadouts *l)
{
    return l->registry;
}

/* --- finding --- */

static void fill(const struct entry *x, struct loadout_info *ret)
{
    *ret = (struct loadout_info){x->path, x->name, x->layer, x->manifest};
}

bool loadout_at(const struct loadouts *l, size_t i, struct loadout_info *ret)
{
    if (i >= l->count)
        return false;
    fill(&l->list[i], ret);
    return true;
}

/* Absolute paths: only those in the operator's directory. */
static int relative(const struct loadouts *l, struct str *ref, struct err *e)
{
    struct str dir = str_of(l->c.dir ? l->c.dir : "");

    if (ref->n == 0 || ref->p[0] != '/')
        return 0;
    if (dir.n > 0 && ref->n > dir.n + 1 && str_starts(*ref, dir) && ref->p[dir.n] == '/') {
        *ref = str_skip(*ref, dir.n + 1);
        return 0;
    }
    err_set(e, ERR_FORBIDDEN, 0, "a path of the server names no loadout");
    return err_hint(e, "those below the setting 'loadouts_dir' are taken; or send the manifest");
}

/* With and without its ending. */
static bool is_path(const char *path, struct str ref)
{
    struct str whole = str_of(path);

    return str_eq(whole, ref) || (str_starts(whole, ref) && (strcmp(path + ref.n, ".yaml") == 0 ||
                                                             strcmp(path + ref.n, ".yml") == 0));
}

int loadout_find(const struct loadouts *l, struct str ref, struct loadout_info *ret, struct err *e)
{
    struct str asked = ref;

    if (relative(l, &ref, e) < 0)
        return -1;
    if (str_starts(ref, STR("loadouts/")))
        ref = str_skip(ref, strlen("loadouts/"));
    for (size_t i = 0; i < l->count; i++)
        if (is_path(l->list[i].path, ref)) {
            fill(&l->list[i], ret);
            return 0;
        }
    for (int layers = 0; layers < 2; layers++)
        for (size_t i = 0; i < l->count; i++)
            if (l->list[i].layer == (layers == 1) && str_eq_c(ref, l->list[i].name)) {
                fill(&l->list[i], ret);
                return 0;
            }
    err_set(e, ERR_NOT_FOUND, 0, "there is no loadout '" STR_FMT "'", (int)size_min(asked.n, 80),
            asked.p);
    return err_hint(e, "`holt loadout ls` lists them");
}

/* --- plans --- */

void loadout_plan_done(struct loadout_plan *p)
{
    arena_done(&p->arena);
}

static int take_size(const json_t *resources, const char *key, int64_t *ret, struct err *e)
{
    const json_t *v = json_object_get(resources, key);

    *ret = 0;
    if (!v)
        return 0;
    if (json_is_integer(v))
        *ret = (int64_t)json_integer_value(v) << 20; /* MiB */
    else if (!json_is_string(v) || str_parse_size(str_of(json_string_value(v)), ret) < 0)
        return err_set(e, ERR_INVALID, 0, "resources.%s is no size: write 8G", key);
    if (*ret < 0 || *ret > 1LL << 50)
        return err_set(e, ERR_INVALID, 0, "resources.%s is out of range", key);
    return 0;
}

static int take_resources(const json_t *m, struct loadout_plan *p, struct err *e)
{
    const json_t *r = json_object_get(m, "resources"), *cpus = json_object_get(r, "cpus");

    if (json_is_true(json_object_get(json_object_get(r, "gpu"), "enabled")))
        return err_set(e, ERR_UNSUPPORTED, 0,
                       "resources.gpu: sandboxes have no devices of the host");
    if (cpus &&
        (!json_is_integer(cpus) || json_integer_value(cpus) < 1 || json_integer_value(cpus) > 1000))
        return err_set(e, ERR_INVALID, 0, "resources.cpus must be a number from 1 to 1000");
    p->cpu_millis = cpus ? (int64_t)json_integer_value(cpus) * 1000 : 0;
    return take_size(r, "memory", &p->memory_bytes, e) < 0 ||
                   take_size(r, "disk", &p->disk_bytes, e) < 0
               ? -1
               : 0;
}

/* "full" is not taken from a loadout: a sandbox reaches what its maker asked for. */
static int take_network(const json_t *m, struct loadout_plan *p, struct err *e)
{
    const json_t *n = json_object_get(m, "network");
    const json_t *domains = json_object_get(json_object_get(n, "allowlist"), "domains");
    const char *mode = json_string_value(json_object_get(n, "mode"));
    AUTO(json_decref) json_t *policy = NULL;
    char *text;

    if (!mode || strcmp(mode, "full") == 0)
        return 0;
    if (strcmp(mode, "isolated") == 0) {
        p->network = STR("none");
        return 0;
    }
    if (strcmp(mode, "allowlist") != 0)
        return err_set(e, ERR_INVALID, 0, "network.mode must be isolated, allowlist or full");
    policy = json_pack("{s:s}", "mode", "allowlist");
    if (json_is_array(domains))
        (void)json_object_set(policy, "allow", (json_t *)(uintptr_t)domains);
    text = json_dumps(policy, JSON_COMPACT);
    p->network = arena_str(&p->arena, str_of(text));
    free(text); /* allocated by jansson */
    return 0;
}

/* Of the base its layers: another image under its name is another base. */
static int add_base(const struct loadouts *l, const struct principal *by, struct str base,
                    struct buf *to, struct err *e)
{
    struct image_use use;

    if (images_use(l->images, by, base, &use, e) < 0)
        return err_wrap(e, "the image it is built on");
    buf_add_c(to, use.on_host || use.layer_count == 0 ? "host" : "");
    for (size_t i = 0; i < use.layer_count; i++) {
        buf_printf(to, " %s", use.layers[i]);
        images_release(l->images, str_of(use.layers[i]));
    }
    return 0;
}

static int name_image(const struct loadouts *l, const struct principal *by, struct loadout_plan *p,
                      struct err *e)
{
    unsigned char sum[SHA256_SIZE];
    char hex[2 * SHA256_SIZE + 1];
    AUTO(buf_done) struct buf all = {0}, name = {0};

    if (add_base(l, by, p->base, &all, e) < 0)
        return -1;
    for (size_t i = 0; i < p->step_count; i++)
        buf_printf(&all, "\n%zu:" STR_FMT, p->steps[i].script.n, STR_ARG(p->steps[i].script));
    sha256(buf_str(&all), sum);
    enc_hex(sum, sizeof sum, hex);
    for (size_t i = 0; i < p->name.n && i < 64; i++) {
        char c = p->name.p[i];
        bool plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');

        if (c >= 'A' && c <= 'Z')
            buf_add_char(&name, (char)(c + 'a' - 'A'));
        else if (plain)
            buf_add_char(&name, c);
        else if (buf_len(&name) > 0 && buf_data(&name)[buf_len(&name) - 1] != '-')
            buf_add_char(&name, '-');
    }
    while (buf_len(&name) > 0 && buf_data(&name)[buf_len(&name) - 1] == '-')
        buf_truncate(&name, buf_len(&name) - 1);
    p->image =
        str_of(arena_printf(&p->arena, IMAGE_NAME STR_FMT ":%.12s",
                            STR_ARG(buf_len(&name) > 0 ? buf_str(&name) : STR("unnamed")), hex));
    return 0;
}

int loadout_plan_make(const struct loadouts *l, const json_t *resolved, struct str base,
                      const struct principal *by, struct loadout_plan *p, struct err *e)
{
    const char *name =
        json_string_value(json_object_get(json_object_get(resolved, "metadata"), "name"));

    *p = (struct loadout_plan){0};
    p->name = arena_str(&p->arena, str_of(name ? name : "unnamed"));
    p->base = arena_str(&p->arena, base.n > 0 ? base : str_of(*l->c.image));
    if (take_resources(resolved, p, e) < 0 || take_network(resolved, p, e) < 0 ||
        loadout_steps(resolved, p, e) < 0 || name_image(l, by, p, e) < 0) {
        loadout_plan_done(p);
        return err_wrap(e, "loadout '%.64s'", name ? name : "");
    }
    return 0;
}

struct image *loadout_image(const struct loadouts *l, const struct principal *by,
                            const struct loadout_plan *p)
{
    struct image_info i;
    struct err e = {0};
    struct image *image = image_find(l->images, by, IMAGE_SEE, p->image, &e);

    if (!image)
        return NULL;
    image_info(image, &i);
    return i.state == IMAGE_READY && str_eq_c(i.source, IMAGE_SOURCE_BUILD) && build_may_use(by, &i)
               ? image
               : NULL;
}

int loadout_build(struct loadouts *l, const struct loadout_plan *p, struct str runtime, bool fresh,
                  const struct principal *by, struct build **ret, struct err *e)
{
    AUTO(buf_done) struct buf what = {0};

    buf_printf(&what, "loadout " STR_FMT, STR_ARG(p->name));
    return build_start(l->builds,
                       &(struct build_spec){.name = p->image,
                                            .what = buf_str(&what),
                                            .from = p->base,
                                            .path = STR(LOADOUT_PATH),
                                            .runtime = runtime,
                                            .steps = p->steps,
                                            .step_count = p->step_count,
                                            .fresh = fresh},
                       by, ret, e);
}

int loadout_install(struct loadouts *l, const struct loadout_plan *p, struct sandbox *into,
                    const struct principal *by, struct build **ret, struct err *e)
{
    AUTO(buf_done) struct buf what = {0};
    struct sandbox_info i;

    sandbox_info(into, &i);
    buf_printf(&what, "loadout " STR_FMT " in %s", STR_ARG(p->name), i.id);
    return build_start(l->builds,
                       &(struct build_spec){.what = buf_str(&what),
                                            .from = i.image,
                                            .steps = p->steps,
                                            .step_count = p->step_count,
                                            .into = into},
                       by, ret, e);
}
