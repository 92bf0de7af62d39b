/* str: a view of bytes owned elsewhere, not NUL-terminated, and strict parsing of numbers.
 * Errors: 0, or -EINVAL (bad syntax), -ERANGE (too large). */
#pragma once

#include "base/macro.h"

#include <string.h>

struct str {
    const char *p;
    size_t n;
};

#define STR(literal) ((struct str){"" literal, sizeof(literal) - 1}) /* of a string literal */
#define STR_FMT "%.*s"
#define STR_ARG(s) (int)(s).n, (s).p

static inline struct str str_of(const char *s)
{
    return s ? (struct str){s, strlen(s)} : (struct str){NULL, 0};
}

static inline struct str str_make(const void *p, size_t n)
{
    return (struct str){p, n};
}

bool str_eq(struct str a, struct str b);
bool str_eq_c(struct str a, const char *b);
int str_cmp(struct str a, struct str b);      /* by bytes: <0, 0, >0; a prefix comes first */
bool str_case_eq(struct str a, struct str b); /* ASCII only */
bool str_case_eq_c(struct str a, const char *b);
bool str_starts(struct str s, struct str prefix);
bool str_ends(struct str s, struct str suffix);
struct str str_trim(struct str s); /* strips spaces and tabs at both ends */
struct str str_skip(struct str s, size_t n);
/* Cuts s at the first c: returns the part before it, sets *rest to the part after (empty if no
 * c). */
struct str str_cut(struct str s, char c, struct str *rest);
ptrdiff_t str_index(struct str s, char c);           /* -1: absent */
const char *str_find(struct str s, struct str part); /* the first occurrence of part; NULL: none */
/* Compares in time that depends on the lengths only. */
bool str_eq_secret(struct str a, struct str b);
bool str_is_utf8(struct str s); /* well-formed, no surrogates, no overlong forms */
char *str_dup(struct str s);    /* NUL-terminated, on the heap */

int str_parse_u64(struct str s, uint64_t *ret) CHECKED; /* digits only */
int str_parse_i64(struct str s, int64_t *ret) CHECKED;  /* an optional '-' and digits */
int str_parse_double(struct str s, double *ret) CHECKED;
/* "250ms", "30s", "15m", "12h", "7d", "1h30m", "1.5h", or plain milliseconds; "0" is zero. */
int str_parse_duration_ms(struct str s, int64_t *ret) CHECKED;
/* "4096", "64k", "16m", "4g", "1t", also "KiB", "MB" and so on (all powers of 1024). */
int str_parse_size(struct str s, int64_t *ret) CHECKED;
int str_parse_bool(struct str s, bool *ret) CHECKED; /* true/false, yes/no, on/off, 1/0 */
