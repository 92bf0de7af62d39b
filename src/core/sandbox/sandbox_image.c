/* sandbox_image: a sandbox's image, its layers, and its defaults for commands. */
#include "core/sandbox/sandbox_internal.h"

#include "base/log.h"
#include "base/mem.h"
#include "core/image/image.h"
#include "proto/json.h"

static int only_host(struct str image, struct err *e)
{
    if (image.n == 0 || str_eq_c(image, "host"))
        return 0;
    err_set(e, ERR_NOT_FOUND, 0, "there is no image '" STR_FMT "'", (int)size_min(image.n, 64),
            image.p);
    return err_hint(e, "available: host");
}

/* --- defaults for commands --- */

static struct str text_at(const json_t *list, size_t i)
{
    const json_t *v = json_array_get(list, i);

    return str_make(json_string_value(v), json_string_length(v));
}

/* "NAME=value"; skips anything else. */
static void read_env(const json_t *list, struct sandbox_defaults *d)
{
    size_t n = json_array_size(list);
    AUTO(mem_free) struct pair *p = n > 0 ? xzalloc(n * sizeof *p) : NULL;

    for (size_t i = 0; i < n; i++) {
        struct str value, text = text_at(list, i), key = str_cut(text, '=', &value);

        if (key.n == 0 || key.n == text.n || memchr(text.p, '\0', text.n))
            continue;
        p[d->env_count++] = (struct pair){key, value};
        d->env_bytes += text.n + 8;
    }
    d->env = pairs_copy(p, d->env_count);
}

static void read_argv(const json_t *entrypoint, const json_t *cmd, struct sandbox_defaults *d)
{
    size_t n = json_array_size(entrypoint), more = json_array_size(cmd);
    AUTO(mem_free) struct str *argv = n + more > 0 ? xzalloc((n + more) * sizeof *argv) : NULL;

    for (size_t i = 0; i < n + more; i++)
        argv[i] = i < n ? text_at(entrypoint, i) : text_at(cmd, i - n);
    d->argv = n + more > 0 ? texts_copy(argv, n + more) : NULL;
    d->argc = n + more;
}

/* For a sandbox without defaults yet. */
static void read_defaults(struct sandbox_defaults *d, const json_t *from)
{
    const char *cwd = json_string_value(json_object_get(from, "workdir")),
               *user = json_string_value(json_object_get(from, "user"));

    read_env(json_object_get(from, "env"), d);
    read_argv(json_object_get(from, "entrypoint"), json_object_get(from, "cmd"), d);
    if (cwd && *cwd)
        d->cwd = xasprintf("%s%s", *cwd == '/' ? "" : "/", cwd);
    if (user && *user)
        d->user = xstrdup(user);
}

static void take_defaults(struct sandbox *s, struct str json)
{
    AUTO(json_decref) json_t *from = NULL;
    struct err e;

    if (json.n == 0 || str_eq_c(json, "{}"))
        return;
    if (json_read(json, &from, &e) < 0) {
        log_error("read the defaults of an image", LOG_C("sandbox", s->id), LOG_E(&e));
        return;
    }
    s->defaults.json = str_dup(json);
    read_defaults(&s->defaults, from);
}

void sandbox_put_defaults(struct jw *w, const struct sandbox *s)
{
    if (!s->defaults.json)
        return;
    jw_key(w, "defaults");
    jw_raw(w, str_of(s->defaults.json));
}

void sandbox_get_defaults(struct sandbox *s, const json_t *defaults)
{
    AUTO(buf_done) struct buf text = {0};
    struct jw w = {.to = &text};

    if (!defaults)
        return;
    jw_json(&w, defaults);
    take_defaults(s, buf_str(&text));
}

void sandbox_defaults_done(struct sandbox_defaults *d)
{
    mem_free(d->json);
    mem_free(d->env);
    mem_free(d->argv);
    mem_free(d->cwd);
    mem_free(d->user);
    *d = (struct sandbox_defaults){0};
}

static bool has_command(struct str json)
{
    AUTO(json_decref) json_t *from = NULL;
    struct err e;

    return json.n > 0 && json_read(json, &from, &e) == 0 &&
           json_array_size(json_object_get(from, "entrypoint")) +
                   json_array_size(json_object_get(from, "cmd")) >
               0;
}

/* --- the image --- */

static int choose(struct sandboxes *all, const struct principal *by, struct str image,
                  struct image_use *ret, struct err *e)
{
    int r = all->bases ? all->bases->use(all->bases_arg, by, image, ret, e) : 1;

    if (r <= 0)
        return r;
    if (all->images)
        return images_use(all->images, by, image, ret, e);
    *ret = (struct image_use){.id = "host"};
    return only_host(image, e);
}

int sandbox_choose_image(struct sandboxes *all, const struct principal *by,
                         const struct sandbox_spec *spec, struct image_use *ret, struct err *e)
{
    if (choose(all, by, spec->image, ret, e) < 0)
        return -1;
    if (!spec->image_command || has_command(ret->defaults))
        return 0;
    for (size_t i = 0; i < ret->layer_count; i++)
        images_release(all->images, str_of(ret->layers[i]));
    (void)err_set(e, ERR_INVALID, 0,
                  "field 'command' is missing, and image '%s' has no default command", ret->id);
    return err_hint(e, "give a command; `holt image inspect` shows the default of an image");
}

void sandbox_set_image(struct sandbox *s, struct str asked, const struct image_use *u)
{
    /* By the name people know, unless that is an alias of another image. */
    text_set(&s->image, u->snapshot                  ? str_of(u->base_image)
                        : u->aliased || asked.n == 0 ? str_of(u->id)
                                                     : asked);
    if (u->aliased)
        text_set(&s->asked_image, asked);
    s->layers = u->layer_count > 0 ? xzalloc(u->layer_count * sizeof s->layers[0]) : NULL;
    s->layer_count = u->layer_count;
    for (size_t i = 0; i < u->layer_count; i++)
        (void)snprintf(s->layers[i].id, sizeof s->layers[i].id, "%s", u->layers[i]);
    s->on_host = u->on_host && u->layer_count > 0;
    text_set(&s->snapshot, str_of(u->snapshot ? u->snapshot : ""));
    text_set(&s->forked, str_of(s->snapshot));
    take_defaults(s, u->defaults);
}

struct str *sandbox_layer_ids(const struct sandbox *s)
{
    struct str *to = s->layer_count > 0 ? xmalloc(s->layer_count * sizeof *to) : NULL;

    for (size_t i = 0; i < s->layer_count; i++)
        to[i] = str_of(s->layers[i].id);
    return to;
}

void sandbox_release_layers(struct sandbox *s)
{
    for (size_t i = 0; s->all->images && i < s->layer_count; i++)
        images_release(s->all->images, str_of(s->layers[i].id));
    mem_free(s->layers);
    s->layers = NULL;
    s->layer_count = 0;
}

void sandbox_put_layers(struct jw *w, const struct sandbox *s)
{
    jw_key(w, "layers");
    jw_array(w);
    for (size_t i = 0; i < s->layer_count; i++)
        jw_c(w, s->layers[i].id);
    jw_array_end(w);
}

void sandbox_get_layers(struct sandbox *s, const json_t *list)
{
    size_t n = json_array_size(list);

    s->layers = n > 0 ? xzalloc(n * sizeof s->layers[0]) : NULL;
    s->layer_count = n;
    for (size_t i = 0; i < n; i++) {
        const char *id = json_string_value(json_array_get(list, i));

        (void)snprintf(s->layers[i].id, sizeof s->layers[i].id, "%s", id ? id : "");
    }
}

void sandboxes_set_images(struct sandboxes *all, struct images *images)
{
    all->images = images;
    for (size_t i = 0; images && i < all->count; i++)
        for (size_t k = 0; k < all->sorted[i]->layer_count; k++)
            images_hold(images, str_of(all->sorted[i]->layers[k].id));
}

void sandboxes_set_bases(struct sandboxes *all, const struct sandbox_bases *ops, void *arg)
{
    all->bases = ops;
    all->bases_arg = arg;
}
