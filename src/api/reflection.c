/* reflection: the gRPC reflection service. */
#include "api/reflection.h"

#include "api/dialects/dialect.h"
#include "api/health.pb.h"
#include "api/reflection.pb.h"

#define GRPC_INVALID 3
#define GRPC_NOT_FOUND 5

/* The contracts of this server: its own, then those of dialects. */
static const struct str *const own_sets[] = {&health_descriptor_set, &reflection_descriptor_set};

/* --- finding a name --- */

/* Cuts "name" or "name." off the front of *left; false: it does not begin with it. */
static bool enter(struct str *left, struct str name)
{
    if (!str_starts(*left, name) || (left->n > name.n && left->p[name.n] != '.'))
        return false;
    *left = str_skip(*left, name.n + (left->n > name.n));
    return true;
}

static bool in_enums(const struct reflection_enum_names *e, size_t n, struct str symbol)
{
    for (size_t i = 0; i < n; i++)
        if (str_eq(e[i].name, symbol))
            return true;
    return false;
}

static bool in_messages(const struct reflection_message_names *m, size_t n, struct str symbol)
{
    for (size_t i = 0; i < n; i++) {
        struct str left = symbol;

        if (enter(&left, m[i].name) &&
            (left.n == 0 || in_enums(m[i].enum_type, m[i].enum_type_count, left) ||
             in_messages(m[i].nested_type, m[i].nested_type_count, left)))
            return true;
    }
    return false;
}

static bool in_services(const struct reflection_service_names *s, size_t n, struct str symbol)
{
    for (size_t i = 0; i < n; i++) {
        struct str left = symbol;

        if (!enter(&left, s[i].name))
            continue;
        if (left.n == 0)
            return true;
        for (size_t k = 0; k < s[i].method_count; k++)
            if (str_eq(s[i].method[k].name, left))
                return true;
    }
    return false;
}

static bool has_symbol(const struct reflection_file_names *f, struct str symbol)
{
    return enter(&symbol, f->package) &&
           (in_services(f->service, f->service_count, symbol) ||
            in_messages(f->message_type, f->message_type_count, symbol) ||
            in_enums(f->enum_type, f->enum_type_count, symbol));
}

static bool has_name(const struct reflection_file_names *f, struct str name)
{
    return str_eq(f->name, name);
}

/* --- the files --- */

typedef bool (*look_at_file)(const struct reflection_file_names *f, struct str bytes, void *arg);

/* The tables are our own, so decoding cannot fail. */
static bool each_file_of(struct str descriptors, struct arena *a, look_at_file look, void *arg)
{
    struct reflection_file_set set;
    struct err e = {0};

    if (pb_decode(&reflection_file_set_pb, descriptors, a, &set, &e) < 0)
        return false;
    for (size_t i = 0; i < set.file_count; i++) {
        struct reflection_file_names f;

        if (pb_decode(&reflection_file_names_pb, set.file[i], a, &f, &e) == 0 &&
            look(&f, set.file[i], arg))
            return true;
    }
    return false;
}

/* Calls look for each file until it returns true. */
static bool each_file(struct arena *a, look_at_file look, void *arg)
{
    for (size_t i = 0; i < ARRAY_LEN(own_sets); i++)
        if (each_file_of(*own_sets[i], a, look, arg))
            return true;
    for (size_t i = 0; dialect_table[i]; i++)
        if (dialect_table[i]->descriptors &&
            each_file_of(*dialect_table[i]->descriptors, a, look, arg))
            return true;
    return false;
}

struct search {
    bool (*has)(const struct reflection_file_names *f, struct str what);
    struct str what, found;
};

static bool search_file(const struct reflection_file_names *f, struct str bytes, void *arg)
{
    struct search *s = arg;

    s->found = bytes;
    return s->has(f, s->what);
}

struct listing {
    struct arena *a;
    struct reflection_list_service_response *to;
};

static bool list_file(const struct reflection_file_names *f, struct str bytes, void *arg)
{
    struct listing *l = arg;
    size_t budget = 64 * 1024;

    (void)bytes;
    for (size_t i = 0; i < f->service_count; i++) {
        struct reflection_service_response *s =
            pb_append(&reflection_list_service_response_pb.fields[0], l->to, l->a, &budget);

        if (s)
            s->name = str_of(arena_printf(l->a, STR_FMT "." STR_FMT, STR_ARG(f->package),
                                          STR_ARG(f->service[i].name)));
    }
    return false;
}

/* --- replies --- */

static void reflection_reply(struct request *r, const void *in)
{
    const struct reflection_server_reflection_request *q = in;
    AUTO(arena_done) struct arena a = {0};
    struct reflection_file_descriptor_response files = {0};
    struct reflection_list_service_response services = {0};
    struct reflection_error_response error = {0};
    struct reflection_server_reflection_response reply = {
        .valid_host = q->host,
        .original_request = (struct reflection_server_reflection_request *)q,
    };
    struct search s = {0};

    switch (q->message_request_case) {
    case 3:
        s = (struct search){.has = has_name, .what = q->file_by_filename};
        break;
    case 4:
        s = (struct search){.has = has_symbol, .what = q->file_containing_symbol};
        break;
    case 7:
        (void)each_file(&a, list_file, &(struct listing){&a, &services});
        break;
    default:
        break; /* none of these contracts has extensions */
    }
    if (q->message_request_case == 7) {
        reply.message_response_case = 6;
        reply.list_services_response = &services;
    } else if (s.has && each_file(&a, search_file, &s)) {
        files.file_descriptor_proto = &s.found;
        files.file_descriptor_proto_count = 1;
        reply.message_response_case = 4;
        reply.file_descriptor_response = &files;
    } else {
        error.error_code = q->message_request_case ? GRPC_NOT_FOUND : GRPC_INVALID;
        error.error_message =
            s.has ? STR("no such file or symbol") : STR("there is no such file or symbol");
        reply.message_response_case = 7;
        reply.error_response = &error;
    }
    (void)!rpc_send(r, &reply); /* one reply per request: unread input is bounded */
}

static const struct pb_method alpha = {
    .path = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
    .in = &reflection_server_reflection_request_pb,
    .out = &reflection_server_reflection_response_pb,
    .client_streams = true,
    .server_streams = true,
};

/* No token needed: the contracts are public. */
const struct rpc_method reflection_rpcs[] = {
    {.name = "reflection",
     .perm = PERM_NONE,
     .pb = &reflection_methods[0],
     .run = reflection_reply},
    {.name = "reflection", .perm = PERM_NONE, .pb = &alpha, .run = reflection_reply},
};
const size_t reflection_rpc_count = ARRAY_LEN(reflection_rpcs);
