/* methods: the table of agentbox's gRPC methods. */
#include "api/dialects/agentbox/agentbox.h"

#include "base/mem.h"
#include "conf/dialects/agentbox/runtime.h"

/* In the order of the service; the generated rows are agentbox_methods. */
enum { CREATE, DESTROY, GET, LIST, EXEC, EXEC_STREAM, WRITE, READ, PIP };

#define METHOD(at, text, needs, function, ...)                                                     \
    {.name = text, .perm = needs, .pb = &agentbox_methods[at], .run = function, __VA_ARGS__}

static const struct rpc_method rpcs[] = {
    METHOD(CREATE, "agentbox.create_session", PERM_SANDBOX_WRITE, agentbox_create_session,
           .creates = true),
    METHOD(DESTROY, "agentbox.destroy_session", PERM_SANDBOX_WRITE, agentbox_destroy_session),
    METHOD(GET, "agentbox.get_session", PERM_SANDBOX_READ, agentbox_get_session),
    METHOD(LIST, "agentbox.list_sessions", PERM_SANDBOX_READ, agentbox_list_sessions),
    METHOD(EXEC, "agentbox.exec", PERM_SANDBOX_WRITE, agentbox_exec, .creates = true,
           .large = true),
    METHOD(EXEC_STREAM, "agentbox.exec_stream", PERM_SANDBOX_WRITE, agentbox_exec_stream,
           .creates = true, .large = true),
    METHOD(WRITE, "agentbox.write_file", PERM_SANDBOX_WRITE, agentbox_write_file, .large = true),
    METHOD(READ, "agentbox.read_file", PERM_SANDBOX_CONTENT, agentbox_read_file),
    METHOD(PIP, "agentbox.pip_install", PERM_SANDBOX_WRITE, agentbox_pip_install, .creates = true),
};

/* --- which runtime sessions get --- */

static int agentbox_probe(const struct config *c, struct err *e)
{
    const struct agentbox_host h = agentbox_host(c->runtime);
    struct agentbox_runtime r;

    if (agentbox_runtime_choose(agentbox_settings(c)->runtime, &h, &r, e) < 0)
        return -1;
    log_info("agentbox's sessions", LOG_C("runtime", r.runtime),
             LOG_C("program", r.program ? r.program : ""), LOG_C("why", r.why));
    return 0;
}

static const char *driver_name(const struct api *a, const char *runtime)
{
    const struct driver_ops *d;

    for (size_t i = 0; runtime && (d = sandboxes_driver(a->c.sandboxes, i)); i++)
        if (strcmp(d->name, runtime) == 0)
            return d->name;
    return NULL;
}

static void *agentbox_new(struct api *a)
{
    struct agentbox *s = xzalloc(sizeof *s);
    const struct agentbox_host h = agentbox_host(a->c.conf->runtime);
    struct agentbox_runtime r;
    struct err e = {0};

    if (!a->c.sandboxes || agentbox_runtime_choose(agentbox_settings(a->c.conf)->runtime, &h, &r,
                                                   &e) < 0) /* probe has refused the start */
        return s;
    s->runtime = driver_name(a, r.runtime);
    s->weaker = driver_name(a, r.weaker);
    if (r.weaker && !s->runtime)
        s->runtime = TAKE(s->weaker);
    return s;
}

static void agentbox_free(void *state)
{
    mem_free(state);
}

struct agentbox *agentbox_of(const struct api *a)
{
    return dialect_state(a, &dialect_agentbox);
}

/* --- the row --- */

const struct dialect dialect_agentbox = {
    .name = AGENTBOX_DIALECT,
    .names_sessions = true,
    .rpcs = rpcs,
    .rpc_count = ARRAY_LEN(rpcs),
    .descriptors = &agentbox_descriptor_set,
    .inside_role = LISTEN_PROCESS,
    .inside = {.name = "agentbox.process_api",
               .perm = PERM_SANDBOX_WRITE,
               .handler = process_handle,
               .fail = process_fail,
               .creates = true,
               .remakes = true,
               .body_max = ROUTE_BODY_WHOLE},
    .listen = (const char *const[]){"127.0.0.1:50051", "[::1]:50051", NULL},
    .probe = agentbox_probe,
    .start = agentbox_new,
    .free = agentbox_free,
};
