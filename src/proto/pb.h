/* pb: protobuf by tables that tools/pb-tables prints from a descriptor set at build time: one codec
 * for the binary form and for proto-JSON, into plain C structs.
 *
 * A struct holds, per field: a scalar, struct str (string, bytes) or pointer (message; NULL:
 * absent); repeated: `x` and `x_count`; proto3 optional: `has_x` besides; oneof: `<oneof>_case` is
 * the number of the member that is set.  A map is repeated entries with `key` and `value`.
 * Ownership: the arena's; views point into the input where possible, so keep it.
 * Limits: depth, and memory as a multiple of the input.  Unknown fields are skipped. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "proto/json.h"

#define PB_DEPTH_MAX 64

enum pb_type { /* the numbers of descriptor.proto */
               PB_DOUBLE = 1,
               PB_FLOAT,
               PB_INT64,
               PB_UINT64,
               PB_INT32,
               PB_FIXED64,
               PB_FIXED32,
               PB_BOOL,
               PB_STRING,
               PB_GROUP,
               PB_MESSAGE,
               PB_BYTES,
               PB_UINT32,
               PB_ENUM,
               PB_SFIXED32,
               PB_SFIXED64,
               PB_SINT32,
               PB_SINT64,
};

enum pb_flag {
    PB_REPEATED = 1, /* aux: offset of the count */
    PB_OPTIONAL = 2, /* aux: offset of the presence flag */
    PB_ONEOF = 4,    /* aux: offset of the case */
    PB_PACKED = 8,
    PB_MAP = 16, /* repeated entries of {1: key, 2: value} */
};

struct pb_enum {
    const char *name;
    const struct pb_enum_value {
        const char *name;
        int32_t number;
    } *values;
    size_t count;
};

struct pb_message;

struct pb_field {
    uint32_t number;
    enum pb_type type;
    unsigned flags;
    size_t offset, aux;
    const char *name, *json; /* "sandbox_id", "sandboxId" */
    const struct pb_message *message;
    const struct pb_enum *enumeration;
};

struct pb_message {
    const char *name; /* "grpc.health.v1.HealthCheckRequest" */
    size_t size;      /* of the C struct */
    const struct pb_field *fields;
    size_t count;
};

struct pb_method {    /* one row per method of a service */
    const char *path; /* "/grpc.health.v1.Health/Check" */
    const struct pb_message *in, *out;
    bool client_streams, server_streams;
};

/* `to` has m->size bytes and is overwritten.  Errors name the field: ERR_INVALID. */
CHECKED int pb_decode(const struct pb_message *m, struct str in, struct arena *a, void *to,
                      struct err *e);
void pb_encode(const struct pb_message *m, const void *from, struct buf *to);
CHECKED int pb_from_json(const struct pb_message *m, const json_t *v, struct arena *a, void *to,
                         struct err *e);
/* Omits fields with their default value, like protobuf's own printers. */
void pb_to_json(const struct pb_message *m, const void *from, struct jw *w);

/* Shared by the two forms. */
size_t pb_type_size(const struct pb_field *f); /* of one value in a struct or array */
/* Adds an element to a repeated field; NULL: *budget bytes are used up. */
void *pb_append(const struct pb_field *f, void *to, struct arena *a, size_t *budget);
/* The address of f's value in *to, marked as present. */
void *pb_place(const struct pb_field *f, void *to);
size_t pb_count(const struct pb_field *f, const void *from); /* values to write: 0 for a default */
const void *pb_at(const struct pb_field *f, const void *from, size_t i);
