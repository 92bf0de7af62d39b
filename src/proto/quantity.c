/* quantity: parses Kubernetes quantities. */
#include "proto/quantity.h"

#define MOST 0x1p50

/* Whether it is a decimal number: no "0x10", no "inf"; an exponent takes the place of a suffix. */
static bool is_decimal(struct str s, bool has_suffix)
{
    const char *may = has_suffix ? "0123456789.+-" : "0123456789.eE+-";

    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] == '\0' || !strchr(may, s.p[i]))
            return false;
    return true;
}

int quantity_parse(struct str text, int64_t scale, int64_t *ret, struct err *e)
{
    static const struct {
        const char *suffix;
        double factor;
    } units[] = {
        {"Ki", 0x1p10}, {"Mi", 0x1p20}, {"Gi", 0x1p30}, {"Ti", 0x1p40},
        {"Pi", 0x1p50}, {"Ei", 0x1p60}, {"n", 1e-9},    {"u", 1e-6},
        {"m", 1e-3},    {"k", 1e3},     {"M", 1e6},     {"G", 1e9},
        {"T", 1e12},    {"P", 1e15},    {"E", 1e18},    {"", 1},
    };
    struct str whole = text;
    double n;

    for (size_t i = 0; i < ARRAY_LEN(units); i++) {
        struct str suffix = str_of(units[i].suffix);

        if (!str_ends(text, suffix))
            continue;
        text.n -= suffix.n;
        if (!is_decimal(text, suffix.n > 0) || str_parse_double(text, &n) < 0 || !(n >= 0))
            break;
        n *= units[i].factor * (double)scale;
        if (n > MOST)
            return err_set(e, ERR_INVALID, 0, "'%.*s' is too large", (int)size_min(whole.n, 40),
                           whole.p);
        *ret = (int64_t)n + ((double)(int64_t)n < n);
        return 0;
    }
    return err_set(e, ERR_INVALID, 0, "'%.*s' is not a quantity like '500m', '2' or '512Mi'",
                   (int)size_min(whole.n, 40), whole.p ? whole.p : "");
}
