/* yaml: one YAML document as a JSON tree with the place of each member in the text; and
 * back.  Strict: YAML 1.2 core scalars ('no' is a text, not false), no anchors, aliases or local
 * tags, no duplicate keys, keys are texts, numbers with a leading zero must be quoted, one document
 * only.  Ownership: yaml_done frees the tree and the places.  Errors: "line 3, column 7: …". */
#pragma once

#include "base/map.h"
#include "proto/json.h"

#define YAML_BYTES_MAX (4 << 20)

struct yaml {
    json_t *root;      /* JSON null for an empty document */
    struct map places; /* private */
};

struct yaml_place { /* counted from 1; 0, 0: unknown */
    size_t line, column;
};

CHECKED int yaml_read(struct str text, struct yaml *ret, struct err *e);
void yaml_done(struct yaml *y); /* accepts a zeroed one */
static inline UNUSED void yaml_done_p(struct yaml *y)
{
    yaml_done(y);
}
/* jansson shares true, false and null, so a place belongs to a member, not to a value. */
struct yaml_place yaml_place_of_key(const struct yaml *y, const json_t *object, const char *key);
struct yaml_place yaml_place_of_item(const struct yaml *y, const json_t *array, size_t index);
/* Block style; quotes texts that any reader could take for another type. */
void yaml_write(struct buf *to, const json_t *v);
