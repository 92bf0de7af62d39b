/* control: the sandbox in which the agent interface acts. */
#include "api/dialects/fluid/fluid.h"

#include "api/share/create_join.h"

/* The original acts on the machine of its daemon; here it is a sandbox of the caller's own, made on
 * first use, or the one that a request names in sandbox_id. */
static const struct fluid_row *row_of(const struct request *r)
{
    return r->route->data;
}

static void control_made(struct request *r, struct sandbox *s, const struct err *e)
{
    if (e->code != ERR_NONE)
        fluid_refuse(r, e);
    else
        row_of(r)->in_box(r, s);
}

static void make_control(struct request *r, struct alias_name name)
{
    const struct fluid_settings *f = fluid_settings(r->api->c.conf);
    const struct principal by = request_who(r);
    AUTO(buf_done) struct buf note = {0};
    const struct sandbox_spec spec = {
        .image = STR("host"),
        .runtime = str_of(f->runtime),
        .network = str_of(f->network),
        .house_network = true,
        .traits = {.limits = {.cpu_millis = f->cpus * 1000, .memory_bytes = f->memory_bytes}},
        .dialect = STR(FLUID_DIALECT),
        .note = (fluid_note_write(&note,
                                  &(struct fluid_note){.agent = name.alias, .source = STR("host")}),
                 buf_str(&note)),
        .aliases = &name,
        .alias_count = 1,
    };

    sandbox_create(r->api->c.sandboxes, &spec, &by, create_join_end,
                   create_join_begin(r, name, control_made));
}

static struct str named_box(const struct request *r)
{
    const json_t *v = r->body ? json_object_get(r->body, "sandbox_id") : NULL;

    return json_is_string(v) ? str_make(json_string_value(v), json_string_length(v))
                             : fluid_query(r, "sandbox_id");
}

struct alias_name fluid_control_name(const struct request *r)
{
    return (struct alias_name){STR(FLUID_DIALECT),
                               str_of(fluid_settings(r->api->c.conf)->agent_sandbox)};
}

void fluid_with_box(struct request *r)
{
    struct alias_name name = fluid_control_name(r);
    struct str named = named_box(r);
    struct sandbox *s;
    struct err e = {0};

    if (named.n > 0) {
        s = fluid_find_named(r, named);
        if (s)
            row_of(r)->in_box(r, s);
        return;
    }
    if (create_join_try(r, name, control_made))
        return;
    s = sandbox_own(r->api->c.sandboxes, &r->who, name);
    if (s)
        row_of(r)->in_box(r, s);
    else if (request_authorise(r, PERM_SANDBOX_WRITE, &e) < 0)
        request_refuse(r, &e);
    else
        make_control(r, name);
}
