/* traits: the table of a sandbox's traits, and reading and writing by it. */
#include "core/sandbox/traits.h"

#include "ops/sandbox.h"

#define AT(member) .offset = offsetof(struct sandbox_traits, member)

/* clang-format off */
const struct trait trait_table[] = {
    {"memory_bytes", TRAIT_LIMIT, AT(limits.memory_bytes), .bit = LIMIT_MEMORY},
    {"cpu_millis",   TRAIT_LIMIT, AT(limits.cpu_millis),   .bit = LIMIT_CPU},
    {"pids",         TRAIT_LIMIT, AT(limits.pids),         .bit = LIMIT_PIDS},
    {"disk_bytes",   TRAIT_LIMIT, AT(limits.disk_bytes),   .bit = LIMIT_DISK},
    {"nofile",       TRAIT_LIMIT, AT(limits.nofile),       .bit = LIMIT_NOFILE},
    {"nesting",      TRAIT_FLAG,  AT(nesting),             .reply = "nesting"},
    {"wide",         TRAIT_FLAG,  AT(wide),                .reply = "syscalls", .choices = op_syscalls},
    {"rootfs_ro",    TRAIT_FLAG,  AT(rootfs_ro),           .reply = "rootfs", .choices = op_rootfs},
    {"memory_upper", TRAIT_FLAG,  AT(memory_upper),        .reply = "upper", .choices = op_uppers},
    {"relay",        TRAIT_FLAG,  AT(relay),               .reply = "relay"},
    {"process_api",  TRAIT_FLAG,  AT(process_api),         .reply = "process_api"},
    {"hub",          TRAIT_FLAG,  AT(hub),                 .reply = "hub"},
    {"one_shot",     TRAIT_FLAG,  AT(one_shot)},
    {"protected",    TRAIT_FLAG,  AT(protected),           .reply = "protected"},
    {"ttl_ms",       TRAIT_TIME,  AT(ttl_ms),              .reply = "ttl_ms"},
    {"idle_ttl_ms",  TRAIT_TIME,  AT(idle_ttl_ms),         .reply = "idle_ttl_ms"},
};
/* clang-format on */
const size_t trait_count = ARRAY_LEN(trait_table);

static void *place(const struct trait *c, struct sandbox_traits *t)
{
    return (char *)t + c->offset;
}

bool trait_flag(const struct trait *c, const struct sandbox_traits *t)
{
    assert(c->type == TRAIT_FLAG);
    return *(const bool *)((const char *)t + c->offset);
}

int64_t trait_number(const struct trait *c, const struct sandbox_traits *t)
{
    assert(c->type != TRAIT_FLAG);
    return *(const int64_t *)((const char *)t + c->offset);
}

void traits_settle(struct sandbox_traits *t)
{
    for (size_t i = 0; i < trait_count; i++)
        if (trait_table[i].type != TRAIT_FLAG && trait_number(&trait_table[i], t) == OP_ABSENT)
            *(int64_t *)place(&trait_table[i], t) = 0;
}

void traits_put(struct jw *w, const struct sandbox_traits *t)
{
    jw_key(w, "limits");
    jw_object(w);
    for (size_t i = 0; i < trait_count; i++)
        if (trait_table[i].type == TRAIT_LIMIT)
            jw_kint(w, trait_table[i].name, trait_number(&trait_table[i], t));
    jw_object_end(w);
    for (size_t i = 0; i < trait_count; i++)
        if (trait_table[i].type == TRAIT_FLAG)
            jw_kbool(w, trait_table[i].name, trait_flag(&trait_table[i], t));
}

void traits_reply(struct jw *w, const struct sandbox_traits *t)
{
    for (size_t i = 0; i < trait_count; i++) {
        const struct trait *c = &trait_table[i];

        if (!c->reply)
            continue;
        if (c->type == TRAIT_TIME)
            jw_kint_if(w, c->reply, trait_number(c, t) != 0, trait_number(c, t));
        else if (c->choices)
            jw_kc(w, c->reply, c->choices[trait_flag(c, t)]);
        else
            jw_kbool(w, c->reply, trait_flag(c, t));
    }
}

void traits_get(struct sandbox_traits *t, const json_t *row)
{
    const json_t *limits = json_object_get(row, "limits");

    for (size_t i = 0; i < trait_count; i++) {
        const struct trait *c = &trait_table[i];

        if (c->type == TRAIT_FLAG)
            *(bool *)place(c, t) = json_is_true(json_object_get(row, c->name));
        else if (c->type == TRAIT_LIMIT)
            *(int64_t *)place(c, t) = json_integer_value(json_object_get(limits, c->name));
    }
}

static bool is_set(const struct trait *c, const struct sandbox_traits *t)
{
    return c->type == TRAIT_FLAG ? trait_flag(c, t) : trait_number(c, t) != 0;
}

bool traits_any(const struct sandbox_traits *t)
{
    for (size_t i = 0; i < trait_count; i++)
        if (is_set(&trait_table[i], t))
            return true;
    return false;
}

void traits_change(struct sandbox_traits *t, const struct sandbox_traits *to,
                   const struct sandbox_traits *given)
{
    for (size_t i = 0; i < trait_count; i++) {
        const struct trait *c = &trait_table[i];

        if (!is_set(c, given))
            continue;
        if (c->type == TRAIT_FLAG)
            *(bool *)place(c, t) = trait_flag(c, to);
        else
            *(int64_t *)place(c, t) = trait_number(c, to);
    }
}
