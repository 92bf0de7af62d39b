/* layout: messages as tables of fields.  One table encodes, decodes and checks, so that the two
 * sides and both directions cannot diverge.  Little-endian, no padding, no I/O, no allocation:
 * decoded text and rows are views of the caller's bytes.  Encoding makes the same checks as
 * decoding: the peer accepts everything we encode.  Errors: 0, or -1 with *e set (ERR_INVALID names
 * message and field). */
#pragma once

#include "base/err.h"
#include "base/str.h"

enum wire_kind {
    WIRE_U8, /* numbers: min and max are their range; max 0 means any value of that width */
    WIRE_U16,
    WIRE_U32,
    WIRE_U64,  /* at most 2^63 - 1, so that it fits int64_t and off_t */
    WIRE_ID16, /* 16 raw bytes */
    WIRE_TEXT, /* struct str: u32 length, bytes without NUL; min and max count bytes */
    WIRE_BLOB, /* the same, with any bytes */
    WIRE_ROWS, /* struct wire_rows: u32 count, then the rows; min and max count rows */
    WIRE_ERR,  /* struct err: u16 code, u32 errno, three texts */
};

struct wire_layout;
struct wire_field {
    const char *name;
    enum wire_kind kind;
    size_t at; /* offset of the value in the message's struct */
    uint64_t min, max;
    const struct wire_layout *row; /* of WIRE_ROWS; a row cannot hold rows */
};

struct wire_layout {
    const char *name;
    const struct wire_field *fields;
    size_t count;
    size_t size; /* of the struct */
};

#define WIRE_FIELD(type, member, ...) {.name = #member, .at = offsetof(type, member), __VA_ARGS__}
#define WIRE_LAYOUT(label, type, table)                                                            \
    {.name = (label), .fields = (table), .count = ARRAY_LEN(table), .size = sizeof(type)}

struct wire_rows {
    uint32_t count;
    const void *items; /* to encode: an array of the row's struct; NULL: raw is copied */
    struct str raw;    /* decoded: the rows' bytes, already checked */
};

struct wire_out { /* the caller's memory */
    uint8_t *p;
    size_t size;
    size_t n;
    bool full; /* a value did not fit; nothing is written past size */
};

CHECKED int wire_put(const struct wire_layout *l, const void *msg, struct wire_out *o,
                     struct err *e);
/* `in` must be used up completely.  *ret points into `in`; after a failure its content is
 * undefined. */
CHECKED int wire_get(const struct wire_layout *l, struct str in, void *ret, struct err *e);
/* The next row of a decoded list: false at its end.  `rows` is the caller's copy and is
 * advanced. */
bool wire_rows_next(const struct wire_layout *row, struct wire_rows *rows, void *ret);

extern const struct wire_layout wire_text_row; /* rows of one text: argv, environment, names */
struct wire_text {
    struct str text;
};

void wire_put_u16(uint8_t *to, uint16_t v);
void wire_put_u32(uint8_t *to, uint32_t v);
void wire_put_u64(uint8_t *to, uint64_t v);
uint16_t wire_get_u16(const uint8_t *p);
uint32_t wire_get_u32(const uint8_t *p);
uint64_t wire_get_u64(const uint8_t *p);
