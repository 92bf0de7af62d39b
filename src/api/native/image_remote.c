/* image_remote: pulls from registries. */
#include "api/native/image_remote.h"

#include "api/request.h"
#include "base/mem.h"
#include "net/registry.h"

struct remote {
    struct registry *registry;
    const struct image_sink *to;
    void *arg;
};

static void on_data(void *arg, struct str part)
{
    struct remote *m = arg;

    m->to->data(m->arg, part);
}

static void on_end(void *arg, const char *digest, const struct err *e)
{
    struct remote *m = arg;

    m->to->end(m->arg, digest, e);
}

static int remote_open(void *arg, const struct oci_ref *ref, void **ret, struct err *e)
{
    struct api *a = arg;
    struct registry_config c = {.loop = store_loop(a->c.store),
                                .fallback = a->c.conf->image_registry,
                                .insecure = a->c.conf->image_insecure};
    struct remote *m;

    /* On first use: loading the system's authorities takes megabytes and milliseconds. */
    if (!a->registry_tls && dial_tls_new(NULL, &a->registry_tls, e) < 0)
        return -1;
    c.tls = a->registry_tls;
    m = xzalloc(sizeof *m);
    if (registry_open(&c, ref, &m->registry, e) < 0) {
        mem_free(m);
        return -1;
    }
    *ret = m;
    return 0;
}

static void remote_close(void *remote)
{
    struct remote *m = remote;

    registry_close(m->registry);
    mem_free(m);
}

static int remote_get(void *remote, bool manifest, const char *name, int64_t size_max,
                      const struct image_sink *to, void *arg, struct err *e)
{
    static const struct registry_sink sink = {.data = on_data, .end = on_end};
    struct remote *m = remote;

    m->to = to;
    m->arg = arg;
    return registry_get(
        m->registry,
        &(struct registry_want){.manifest = manifest, .name = name, .size_max = size_max}, &sink, m,
        e);
}

static void remote_consume(void *remote, size_t n)
{
    registry_consume(((struct remote *)remote)->registry, n);
}

const struct image_remote_ops image_remote = {
    .open = remote_open,
    .close = remote_close,
    .get = remote_get,
    .consume = remote_consume,
};
