/* print: JSON values for people and programs: tables, JSON, YAML.
 * The text may come from strangers: characters that move a terminal's cursor or reorder text
 * (utf8_is_control) are escaped, so that a name cannot forge a line. */
#pragma once

#include "base/buf.h"
#include "ops/op.h"

enum out_format { OUT_TABLE, OUT_JSON, OUT_YAML };
bool out_format_parse(struct str s, enum out_format *ret);

struct print_spec {
    const char *columns;           /* "id,name"; NULL: all fields, else all keys of the first row */
    const struct op_field *fields; /* of a row, for their types; or NULL */
    size_t field_count;
    const char *items; /* the key of the array in a list's reply; NULL: one object */
    bool color;
    size_t width; /* of the terminal: the widest columns of a list are cut to fit; 0: no cutting */
};

void print_json(struct buf *to, const json_t *v);
void print_json_line(struct buf *to, const json_t *v); /* one line, for jq and the like */
void print_table(struct buf *to, const json_t *v, const struct print_spec *spec);
/* Appends s with characters of utf8_is_control as \xNN or \u{NNNN}, and bad UTF-8 as \xNN. */
void print_safe(struct buf *to, struct str s);
void print_safe_lines(struct buf *to, struct str s); /* keeps line breaks and tabs */
size_t print_width(struct str s);           /* width on a terminal of text made by print_safe */
void print_size(struct buf *to, int64_t n); /* "1.5 KiB" */
void print_duration(struct buf *to, int64_t ms); /* "1h30m", "1.5s" */
