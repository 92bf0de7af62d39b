/* str: views of bytes: comparison, search, cutting, strict parsing. */
#include "base/str.h"

#include "base/mem.h"
#include "base/utf8.h"

#include <errno.h>
#include <stdlib.h>

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
}

bool str_eq(struct str a, struct str b)
{
    return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

bool str_eq_c(struct str a, const char *b)
{
    return str_eq(a, str_of(b));
}

int str_cmp(struct str a, struct str b)
{
    size_t n = a.n < b.n ? a.n : b.n;
    int order = n > 0 ? memcmp(a.p, b.p, n) : 0;

    return order != 0 ? order : (a.n > b.n) - (a.n < b.n);
}

bool str_case_eq(struct str a, struct str b)
{
    if (a.n != b.n)
        return false;
    for (size_t i = 0; i < a.n; i++)
        if (lower(a.p[i]) != lower(b.p[i]))
            return false;
    return true;
}

bool str_case_eq_c(struct str a, const char *b)
{
    return str_case_eq(a, str_of(b));
}

bool str_starts(struct str s, struct str prefix)
{
    return s.n >= prefix.n && str_eq(str_make(s.p, prefix.n), prefix);
}

bool str_ends(struct str s, struct str suffix)
{
    return s.n >= suffix.n && str_eq(str_make(s.p + s.n - suffix.n, suffix.n), suffix);
}

struct str str_skip(struct str s, size_t n)
{
    assert(n <= s.n);
    return n == 0 ? s : str_make(s.p + n, s.n - n);
}

struct str str_trim(struct str s)
{
    while (s.n > 0 && (s.p[0] == ' ' || s.p[0] == '\t'))
        s = str_skip(s, 1);
    while (s.n > 0 && (s.p[s.n - 1] == ' ' || s.p[s.n - 1] == '\t'))
        s.n--;
    return s;
}

ptrdiff_t str_index(struct str s, char c)
{
    const char *at = s.n ? memchr(s.p, c, s.n) : NULL;

    return at ? at - s.p : -1;
}

const char *str_find(struct str s, struct str part)
{
    return s.n > 0 && s.n >= part.n ? memmem(s.p, s.n, part.p, part.n) : NULL;
}

struct str str_cut(struct str s, char c, struct str *rest)
{
    ptrdiff_t i = str_index(s, c);

    *rest = i < 0 ? (struct str){NULL, 0} : str_skip(s, (size_t)i + 1);
    return i < 0 ? s : str_make(s.p, (size_t)i);
}

bool str_eq_secret(struct str a, struct str b)
{
    unsigned char diff = 0;

    if (a.n != b.n)
        return false;
    for (size_t i = 0; i < a.n; i++)
        diff = (unsigned char)(diff | (a.p[i] ^ b.p[i]));
    return diff == 0;
}

/* The number of leading ASCII bytes, rounded down to a multiple of eight: nearly all text is
 * ASCII. */
static size_t ascii_eights(struct str s)
{
    size_t n = 0;
    uint64_t word;

    for (; n + 8 <= s.n; n += 8) {
        memcpy(&word, s.p + n, 8);
        if (word & 0x8080808080808080U)
            break;
    }
    return n;
}

bool str_is_utf8(struct str s)
{
    size_t n = 0, wrong;

    s = str_skip(s, ascii_eights(s));
    while (s.n > 0 && (n = utf8_next(s, &wrong)) > 0)
        s = str_skip(s, n);
    return s.n == 0;
}

char *str_dup(struct str s)
{
    return xstrndup(s.p, s.n);
}

int str_parse_u64(struct str s, uint64_t *ret)
{
    uint64_t v = 0;

    if (s.n == 0)
        return -EINVAL;
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] < '0' || s.p[i] > '9')
            return -EINVAL;
        if (__builtin_mul_overflow(v, 10U, &v) ||
            __builtin_add_overflow(v, (uint64_t)(s.p[i] - '0'), &v))
            return -ERANGE;
    }
    *ret = v;
    return 0;
}

int str_parse_i64(struct str s, int64_t *ret)
{
    bool negative = s.n > 0 && s.p[0] == '-';
    uint64_t v;
    int r = str_parse_u64(negative ? str_skip(s, 1) : s, &v);

    if (r < 0)
        return r;
    if (v > (uint64_t)INT64_MAX + (negative ? 1 : 0))
        return -ERANGE;
    *ret = negative ? (int64_t)(0 - v) : (int64_t)v;
    return 0;
}

int str_parse_double(struct str s, double *ret)
{
    char text[64], *end;
    double v;

    if (s.n == 0 || s.n >= sizeof text || s.p[0] == ' ' || s.p[0] == '\t')
        return -EINVAL;
    memcpy(text, s.p, s.n);
    text[s.n] = '\0';
    v = strtod(text, &end);
    if (end != text + s.n || v != v || v - v != 0) /* rejects trailing bytes, NaN and infinity */
        return -EINVAL;
    *ret = v;
    return 0;
}

struct unit {
    const char *name;
    int64_t factor;
};

static size_t count_digits(struct str s)
{
    size_t n = 0;

    while (n < s.n && s.p[n] >= '0' && s.p[n] <= '9')
        n++;
    return n;
}

/* Parses a number followed by a unit; the unit "" is for a number without one. */
static int parse_with_unit(struct str s, const struct unit *units, size_t count, int64_t *ret)
{
    size_t digits = count_digits(s);
    uint64_t v;
    int r = str_parse_u64(str_make(s.p, digits), &v);

    if (r < 0)
        return r;
    for (size_t i = 0; i < count; i++) {
        if (!str_case_eq_c(str_skip(s, digits), units[i].name))
            continue;
        if (v > (uint64_t)(INT64_MAX / units[i].factor))
            return -ERANGE;
        *ret = (int64_t)v * units[i].factor;
        return 0;
    }
    return -EINVAL;
}

/* The value of fraction digits in a unit of size `of`, cut: "5" of 3600000 is 1800000. */
static int64_t fraction_of(struct str digits, int64_t of)
{
    double part = 0;

    for (size_t i = digits.n; i > 0; i--)
        part = (part + (digits.p[i - 1] - '0')) / 10;
    return (int64_t)(part * (double)of);
}

/* Parses one part of "1h30m" (a number, perhaps with a fraction, and a unit) and moves *s past
 * it. */
static int take_duration(struct str *s, int64_t *ret)
{
    static const struct unit units[] = {
        {"ms", 1}, {"s", 1000}, {"m", 60000}, {"h", 3600000}, {"d", 86400000},
    };
    struct str whole = str_make(s->p, count_digits(*s)), fraction = {0};
    struct str unit = str_skip(*s, whole.n);
    uint64_t v;
    int r = str_parse_u64(whole, &v);

    if (r < 0)
        return r;
    if (unit.n > 0 && unit.p[0] == '.') {
        fraction = str_make(unit.p + 1, count_digits(str_skip(unit, 1)));
        if (fraction.n == 0)
            return -EINVAL;
        unit = str_skip(unit, 1 + fraction.n);
    }
    *s = unit;
    while (s->n > 0 && count_digits(*s) == 0)
        *s = str_skip(*s, 1);
    unit.n -= s->n;
    for (size_t i = 0; i < ARRAY_LEN(units); i++) {
        if (!str_case_eq_c(unit, units[i].name))
            continue;
        if (v >= (uint64_t)(INT64_MAX / units[i].factor))
            return -ERANGE;
        *ret = (int64_t)v * units[i].factor + fraction_of(fraction, units[i].factor);
        return 0;
    }
    return -EINVAL;
}

int str_parse_duration_ms(struct str s, int64_t *ret)
{
    int64_t total = 0, part;
    int r = 0;

    if (count_digits(s) == s.n)
        return str_parse_i64(s, ret);
    while (r == 0 && s.n > 0) {
        r = take_duration(&s, &part);
        if (r == 0 && __builtin_add_overflow(total, part, &total))
            r = -ERANGE;
    }
    if (r == 0)
        *ret = total;
    return r;
}

int str_parse_size(struct str s, int64_t *ret)
{
    static const struct unit units[] = {
        {"", 1},           {"b", 1},           {"k", 1LL << 10},
        {"kb", 1LL << 10}, {"kib", 1LL << 10}, {"m", 1LL << 20},
        {"mb", 1LL << 20}, {"mib", 1LL << 20}, {"g", 1LL << 30},
        {"gb", 1LL << 30}, {"gib", 1LL << 30}, {"t", 1LL << 40},
        {"tb", 1LL << 40}, {"tib", 1LL << 40},
    };

    return parse_with_unit(s, units, ARRAY_LEN(units), ret);
}

int str_parse_bool(struct str s, bool *ret)
{
    static const char *const yes[] = {"true", "yes", "on", "1"};
    static const char *const no[] = {"false", "no", "off", "0"};

    for (size_t i = 0; i < ARRAY_LEN(yes); i++) {
        if (str_case_eq_c(s, yes[i]) || str_case_eq_c(s, no[i])) {
            *ret = str_case_eq_c(s, yes[i]);
            return 0;
        }
    }
    return -EINVAL;
}
