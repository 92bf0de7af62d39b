/* json: reading by jansson with limits and clear errors; writing straight into a buffer.
 * json_read refuses duplicate keys, NUL in strings, invalid UTF-8, trailing bytes and deep nesting.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"

#include <jansson.h>

/* Limits for input from clients; a value takes up to 250 bytes of memory, whatever its text. */
#define JSON_DEPTH_MAX 64
#define JSON_VALUES_MAX 262144

CHECKED int json_read(struct str text, json_t **ret, struct err *e); /* "line 3, column 7: …" */
/* As lenient as Go's and most other decoders: of two equal keys the last wins, strings may hold NUL
 * (use their lengths), and invalid characters, lone surrogates too, become U+FFFD. */
CHECKED int json_read_lax(struct str text, json_t **ret, struct err *e);
DEFINE_AUTO(json_t *, json_decref)

/* The writer: it places the commas.  Call jw_key before each value inside an object.
 * Strings that are not UTF-8 are written with U+FFFD in place of the broken bytes. */
struct jw {
    struct buf *to;
    bool comma;  /* the next value needs one before it */
    bool spaced; /* a space after commas and colons, as Python writes */
};

void jw_object(struct jw *w);
void jw_object_end(struct jw *w);
void jw_array(struct jw *w);
void jw_array_end(struct jw *w);
void jw_key(struct jw *w, const char *key);
void jw_str(struct jw *w, struct str s);
void jw_c(struct jw *w, const char *s); /* NULL is null */
void jw_int(struct jw *w, int64_t v);
void jw_double(struct jw *w, double v);
void jw_bool(struct jw *w, bool v);
void jw_null(struct jw *w);
void jw_time(struct jw *w, int64_t wall_ms); /* RFC 3339; 0 is null */
void jw_raw(struct jw *w, struct str json);  /* already JSON */
void jw_json(struct jw *w, const json_t *v);

/* key and value in one call */
void jw_kstr(struct jw *w, const char *key, struct str s);
void jw_kc(struct jw *w, const char *key, const char *s);
void jw_ktext(struct jw *w, const char *key, struct str s); /* empty: null */
void jw_kint(struct jw *w, const char *key, int64_t v);
void jw_kint_if(struct jw *w, const char *key, bool known, int64_t v); /* unknown: null */
void jw_kbool(struct jw *w, const char *key, bool v);
void jw_ktime(struct jw *w, const char *key, int64_t wall_ms);

/* {"error": {"code", "message", "object", "hint"}} */
void json_error(struct buf *to, const struct err *e);
