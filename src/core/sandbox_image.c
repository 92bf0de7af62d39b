#include "core/sandbox_inside.h"

#include "base/mem.h"
#include "core/image.h"

static int only_host(struct str image, struct err *e)
{
    if (image.n == 0 || str_eq_c(image, "host"))
        return 0;
    err_set(e, ERR_NOT_FOUND, 0, "there is no image '" STR_FMT "'", (int)size_min(image.n, 64),
            image.p);
    return err_hint(e, "there is: host");
}

int sandbox_choose_image(struct sandboxes *all, const struct principal *by, struct str image,
                         struct image_use *ret, struct err *e)
{
    if (all->images)
        return images_use(all->images, by, image, ret, e);
    *ret = (struct image_use){.id = "host"};
    return only_host(image, e);
}

void sandbox_set_image(struct sandbox *s, struct str asked, const struct image_use *u)
{
    /* By the name that people know, unless that stood for another image. */
    text_set(&s->image, u->aliased || asked.n == 0 ? str_of(u->id) : asked);
    s->layers = u->layer_count > 0 ? xzalloc(u->layer_count * sizeof s->layers[0]) : NULL;
    s->layer_count = u->layer_count;
    for (size_t i = 0; i < u->layer_count; i++)
        (void)snprintf(s->layers[i].id, sizeof s->layers[i].id, "%s", u->layers[i]);
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
