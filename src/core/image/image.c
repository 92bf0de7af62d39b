/* image: the registry of images: lookup, use, aliases. */
#include "core/image/image.h"

#include "base/mem.h"
#include "conf/conf.h"
#include "core/image/image_internal.h"

#include <errno.h>
#include <sys/stat.h>

#define HOST "host"

const char *image_state_name(enum image_state s)
{
    static const char *const names[] = {
        [IMAGE_WORKING] = "working", [IMAGE_READY] = "ready", [IMAGE_FAILED] = "failed"};

    return names[s];
}

/* --- the list --- */

struct image *image_new(const char *id)
{
    struct image *i = xzalloc(sizeof *i);

    if (id)
        (void)snprintf(i->id, sizeof i->id, "%s", id);
    else
        id_make("im", i->id);
    i->name = xstrdup("");
    i->source = xstrdup("");
    i->digest = xstrdup("");
    i->os = xstrdup("");
    i->arch = xstrdup("");
    i->defaults = xstrdup("{}");
    i->phase = "";
    return i;
}

struct image *image_free(struct image *i)
{
    if (!i)
        return NULL;
    mem_free(i->name);
    mem_free(i->source);
    mem_free(i->digest);
    mem_free(i->os);
    mem_free(i->arch);
    mem_free(i->defaults);
    mem_free(i->layers);
    mem_free(i->layer_ids);
    mem_free(i);
    return NULL;
}

void images_add(struct images *l, struct image *i)
{
    sorted_add(SORTED(l, id), i);
}

void images_drop(struct images *l, struct image *i)
{
    sorted_remove(SORTED(l, id), i);
    image_free(i);
}

void image_set_layers(struct image *i, struct layer **layers, size_t n)
{
    i->layers = xmemdup(layers, n * sizeof layers[0]);
    i->layer_ids = xmalloc((n + 1) * sizeof i->layer_ids[0]);
    for (size_t k = 0; k < n; k++) {
        layers[k]->images++;
        i->layer_ids[k] = layers[k]->id;
    }
    i->layer_count = n;
}

/* --- open and close --- */

int images_open(const struct images_config *c, struct images **ret, struct err *e)
{
    struct images *l = xzalloc(sizeof *l);
    AUTO(mem_free) char *layers = xasprintf("%s/layers", c->state);
    AUTO(mem_free) char *spool = xasprintf("%s/spool", c->state);

    l->c = *c;
    list_init(&l->clears);
    list_init(&l->jobs);
    if ((mkdir(layers, 0711) < 0 && errno != EEXIST) || (mkdir(spool, 0700) < 0 && errno != EEXIST))
        (void)err_set(e, err_code_from_errno(errno), errno, "make '%s'", layers);
    else if (images_load(l, e) == 0 && layers_find_strays(l, e) == 0) {
        *ret = l;
        return 0;
    }
    images_free(l);
    return err_wrap(e, "open the images");
}

void images_close(struct images *l)
{
    struct err e = {0};

    l->closing = true;
    err_set(&e, ERR_CANCELLED, 0, "holtd is stopping");
    LIST_EACH (&l->jobs, n)
        job_end(LIST_ENTRY(n, struct image_job, link), &e);
    layers_clear_end(l);
}

struct images *images_free(struct images *l)
{
    size_t at = 0;
    struct str key;
    void *y;

    if (!l)
        return NULL;
    assert(list_is_empty(&l->jobs));
    layers_clear_end(l);
    for (size_t k = 0; k < l->count; k++)
        image_free(l->sorted[k]);
    mem_free(l->sorted);
    while (map_next(&l->layers, &at, &key, &y))
        mem_free(y);
    map_done(&l->layers);
    mem_free(l);
    return NULL;
}

/* --- lookup --- */

int image_normal_name(struct str name, char **ret, struct err *e)
{
    struct oci_ref r;

    if (str_eq_c(name, HOST))
        return err_set(e, ERR_CONFLICT, 0,
                       "the name 'host' is reserved for the image of this machine");
    if (oci_ref_parse(name, &r, e) < 0)
        return -1;
    *ret = xasprintf("%s%s%s%s%s%s%s", r.host, r.host[0] ? "/" : "", r.repository,
                     r.tag[0] ? ":" : "", r.tag, r.digest[0] ? "@" : "", r.digest);
    return 0;
}

/* Only people make images: a tenant's are for all of the tenant, the installation's for
 * everybody. */
static struct owned image_owned(const struct image *i)
{
    return (struct owned){.owner = str_of(i->owner), .tenant = str_of(i->tenant), .shared = true};
}

bool images_show_layer(const struct images *l, const struct layer *y, const struct principal *by)
{
    for (size_t k = 0; k < l->count; k++) {
        const struct image *i = l->sorted[k];
        const struct owned o = image_owned(i);

        for (size_t n = 0; n < i->layer_count; n++)
            if (i->layers[n] == y && owner_may(by, &o, OWNER_SEE))
                return true;
    }
    return false;
}

static int rank(const struct owner_look *look, const struct image *i)
{
    if (strcmp(i->tenant, look->by->tenant) == 0)
        return 0;
    return i->tenant[0] ? 2 : 1;
}

/* own_only: a plain name does not mean another tenant's image. */
static void offer_named(struct images *l, struct owner_look *look)
{
    AUTO(mem_free) char *name = NULL;
    struct err why = {0};

    if (image_normal_name(look->name, &name, &why) < 0)
        return;
    for (size_t k = 0; k < l->count; k++) {
        struct image *i = l->sorted[k];
        const struct owned o = image_owned(i);

        if (i->state == IMAGE_READY && !i->removing && strcmp(i->name, name) == 0 &&
            !(look->own_only && rank(look, i) == 2))
            owner_offer(look, i, i->id, &o, rank(look, i));
    }
}

/* "OWNER/NAME": cut at the first slash, since a name may contain slashes. */
static bool split_first(struct owner_look *look)
{
    ptrdiff_t at = str_index(look->text, '/');

    if (at > 0 && str_starts(look->text, STR("token/"))) {
        ptrdiff_t more = str_index(str_skip(look->text, (size_t)at + 1), '/');

        at = more > 0 ? at + 1 + more : -1;
    }
    if (at <= 0)
        return false;
    look->owner = str_make(look->text.p, (size_t)at);
    look->name = str_skip(look->text, (size_t)at + 1);
    look->own_only = false;
    return true;
}

/* NULL with *e; not found if e->code is ERR_NONE. */
static struct image *look_up(struct images *l, struct owner_look *look, struct err *e)
{
    struct image *i = sorted_find(SORTED(l, id), look->text);

    if (i && !i->removing) {
        const struct owned o = image_owned(i);

        return owner_check(look->by, &o, look->use, "image", i->id, e) == 0 ? i : NULL;
    }
    look->name = look->text;
    offer_named(l, look);
    if (!look->found && split_first(look))
        offer_named(l, look);
    return owner_found(look, "image", e);
}

static struct image *find(struct images *l, struct owner_look *look, struct err *e)
{
    struct str ref = look->text;
    struct err why = {0};
    struct image *i = look_up(l, look, &why);

    if (i)
        return i;
    if (why.code != ERR_NONE) {
        *e = why;
        return NULL;
    }
    (void)err_set(e, ERR_NOT_FOUND, 0, "there is no image '%.*s'", (int)size_min(ref.n, 100),
                  ref.p ? ref.p : "");
    (void)err_hint(e, "holt image ls lists the images; holt image pull %.*s downloads one",
                   (int)size_min(ref.n, 60), ref.p ? ref.p : "");
    return NULL;
}

struct image *image_find(struct images *l, const struct principal *by, enum image_want want,
                         struct str ref, struct err *e)
{
    struct owner_look look = {
        .by = by, .use = want == IMAGE_SEE ? OWNER_SEE : OWNER_CHANGE, .text = ref};

    return find(l, &look, e);
}

struct image *image_next(struct images *l, const struct principal *by, struct str after,
                         bool failed)
{
    for (size_t k = sorted_after(SORTED(l, id), after); k < l->count; k++) {
        const struct owned o = image_owned(l->sorted[k]);

        if (!l->sorted[k]->removing && (failed || l->sorted[k]->state != IMAGE_FAILED) &&
            owner_may(by, &o, OWNER_SEE))
            return l->sorted[k];
    }
    return NULL;
}

void image_info(const struct image *i, struct image_info *ret)
{
    *ret = (struct image_info){
        .id = i->id,
        .name = str_of(i->name),
        .owner = str_of(i->owner),
        .tenant = str_of(i->tenant),
        .source = str_of(i->source),
        .digest = str_of(i->digest),
        .os = str_of(i->os),
        .arch = str_of(i->arch),
        .defaults = str_of(i->defaults),
        .state = i->state,
        .phase = str_of(i->phase),
        .failure = str_of(i->failure),
        .done_bytes = i->done_bytes,
        .total_bytes = i->total_bytes,
        .created_ms = i->created_ms,
        .layer_count = i->layer_count,
    };
    for (size_t k = 0; k < i->layer_count; k++)
        ret->size_bytes += i->layers[k]->bytes;
}

/* --- use --- */

/* The image of an alias "NAME=IMAGE" for ref; ref itself if there is none. */
static struct str resolve_alias(const struct images *l, struct str ref)
{
    for (size_t k = 0; l->c.aliases && k < l->c.aliases->n; k++) {
        struct str to, from = str_cut(str_of(l->c.aliases->v[k]), '=', &to);

        if (str_eq(from, ref) && to.n > 0)
            return to;
    }
    return ref;
}

int images_use(struct images *l, const struct principal *by, struct str ref, struct image_use *ret,
               struct err *e)
{
    struct owner_look look = {.by = by, .text = ref, .own_only = true};
    struct err why = {0};
    /* An image with this name wins over an alias. */
    struct image *i = look_up(l, &look, &why);
    struct str to = i ? ref : resolve_alias(l, ref);

    *ret = (struct image_use){.id = HOST, .aliased = !str_eq(to, ref)};
    if (to.n == 0 || str_eq_c(to, HOST))
        return 0;
    look = (struct owner_look){.by = by, .text = to, .own_only = true};
    i = find(l, &look, e);
    if (!i)
        return -1;
    if (i->state != IMAGE_READY) {
        err_set(e, ERR_CONFLICT, 0, "image '%s' is not ready: it is %s", i->id,
                image_state_name(i->state));
        return err_object(e, "image", i->id);
    }
    memcpy(ret->id, i->id, sizeof ret->id);
    ret->layers = i->layer_ids;
    ret->layer_count = i->layer_count;
    ret->defaults = str_of(i->defaults);
    ret->on_host = i->on_host;
    for (size_t k = 0; k < i->layer_count; k++)
        i->layers[k]->holds++;
    return 0;
}

void images_hold(struct images *l, struct str layer)
{
    struct layer *y = map_get(&l->layers, layer);

    if (y)
        y->holds++;
}

void images_release(struct images *l, struct str layer)
{
    struct layer *y = map_get(&l->layers, layer);

    if (!y || y->holds == 0)
        return;
    y->holds--;
    layer_unneeded(l, y);
}
