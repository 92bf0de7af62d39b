/* outfit: the loadout that an instance is made with, by its path, parts, profile or image name. */
#include "api/dialects/agentic/outfit.h"

#include "base/mem.h"

static const struct {
    const char *image, *loadout;
} image_loadouts[] = {
    {"agentic/claude:latest", "claude-only"},
    {"agentic/codex:latest", "codex-only"},
    {"agentic/opencode:latest", "providers/opencode.yaml"},
    {"agentic/automation-control:latest", "automation-control"},
};

/* The loadout of an image's name that is neither an image nor an alias of one. */
static struct str loadout_of_image(const struct request *r, struct str image)
{
    struct images *all = r->api->c.images;
    struct image_use use;
    struct err e = {0};

    for (size_t i = 0; i < ARRAY_LEN(image_loadouts); i++) {
        if (!str_eq_c(image, image_loadouts[i].image))
            continue;
        if (images_use(all, &r->who, image, &use, &e) < 0)
            return str_of(image_loadouts[i].loadout);
        for (size_t k = 0; k < use.layer_count; k++)
            images_release(all, str_of(use.layers[k]));
    }
    return STR("");
}

bool outfit_read(const struct request *r, const json_t *body, struct outfit *ret)
{
    const json_t *composition = json_object_get(body, "composition");
    struct str profile = agentic_member(body, "profile"), image = agentic_member(body, "image");

    *ret = (struct outfit){.ref = {.name = agentic_member(body, "loadout")}, .base = image};
    if (json_is_object(composition))
        ret->ref.composition = composition;
    ret->given = (ret->ref.name.n > 0) + (profile.n > 0) + (ret->ref.composition != NULL);
    if (profile.n > 0)
        ret->ref.name = profile;
    if (ret->given == 0) {
        ret->ref.name = loadout_of_image(r, image);
        ret->base = STR("");
    }
    return !loadout_ref_is_empty(&ret->ref);
}

int outfit_plan(const struct request *r, const struct outfit *o, struct loadout_plan *ret,
                struct err *e)
{
    AUTO(json_decref) json_t *resolved = NULL;

    if (loadout_resolve(r->api->c.loadouts, &o->ref, &resolved, e) < 0)
        return -1;
    return loadout_plan_make(r->api->c.loadouts, resolved, o->base, &r->who, ret, e);
}

/* --- containers: the image is built first --- */

struct outfit_job {
    struct waiter waiter;
    outfit_next next;
};

static void outfit_built(void *arg, struct build *b, const struct err *e)
{
    AUTO(mem_free) struct outfit_job *j = arg;
    struct request *r = waiter_end(&j->waiter);
    struct build_info i;

    if (!r)
        return; /* nobody waits for the container */
    if (e->code != ERR_NONE) {
        agentic_fail(r, err_table[e->code].http, e);
        return;
    }
    build_info(b, &i);
    j->next(r, i.image);
}

static int build_outfit(struct request *r, const struct loadout_plan *p, outfit_next next,
                        struct err *e)
{
    struct outfit_job *j;
    struct build *b;

    if (!request_may(r, PERM_IMAGE_WRITE)) {
        err_set(e, ERR_FORBIDDEN, 0, "loadout '" STR_FMT "' is not built", STR_ARG(p->name));
        return err_hint(e, "ask an operator: holt loadout build " STR_FMT, STR_ARG(p->name));
    }
    if (loadout_build(r->api->c.loadouts, p, STR(""), false, &r->who, &b, e) < 0)
        return -1;
    j = xzalloc(sizeof *j);
    j->next = next;
    request_wait(r, &j->waiter);
    (void)build_wait(b, outfit_built, j);
    return 0;
}

void outfit_image(struct request *r, const struct outfit *o, outfit_next next)
{
    AUTO(loadout_plan_done) struct loadout_plan p = {0};
    struct image_info info;
    struct image *image;
    struct err e = {0};

    if (outfit_plan(r, o, &p, &e) < 0) {
        agentic_fail(r, err_table[e.code].http, &e);
        return;
    }
    image = loadout_image(r->api->c.loadouts, &r->who, &p);
    if (image) {
        image_info(image, &info);
        next(r, str_of(info.id));
    } else if (build_outfit(r, &p, next, &e) < 0) {
        agentic_fail(r, err_table[e.code].http, &e);
    }
}

/* --- machines: the steps run inside --- */

struct install {
    struct loadouts *all;
    struct principal by;
    struct operation *op;
    struct loadout_plan plan;
};

static void install_free(struct install *j)
{
    loadout_plan_done(&j->plan);
    mem_free(j);
}

static void installed(void *arg, struct build *b, const struct err *e)
{
    (void)b;
    operation_end(arg, NULL, e);
}

static void install_made(void *arg, struct sandbox *s, const struct err *e)
{
    struct install *j = arg;
    struct err why = *e;
    struct build *b;

    if (s && why.code == ERR_NONE && loadout_install(j->all, &j->plan, s, &j->by, &b, &why) == 0)
        (void)build_wait(b, installed, j->op);
    else
        operation_end(j->op, s, &why);
    install_free(j);
}

sandbox_cb outfit_install(struct request *r, struct loadout_plan *p, struct operation *op,
                          void **ret_arg)
{
    struct install *j = xzalloc(sizeof *j);

    *j = (struct install){.all = r->api->c.loadouts, .by = request_who(r), .op = op, .plan = *p};
    *p = (struct loadout_plan){0};
    *ret_arg = j;
    return install_made;
}
