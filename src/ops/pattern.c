/* pattern: checks strings against the patterns of the table. */
#include "ops/op.h"

#define NAME_START "A-Za-z0-9"

static const struct op_pattern patterns[] = {
    {OP_PATTERN_NAME, "letters, digits, '.', '_' and '-', the first a letter or digit", NAME_START,
     NAME_START "._-", 0},
    {OP_PATTERN_DIGITS, "digits only", "0-9", "0-9", 0},
    {OP_PATTERN_SHA256, "64 hex digits, lower case", "0-9a-f", "0-9a-f", 64},
};

const struct op_pattern *op_pattern(const char *regex)
{
    for (size_t i = 0; i < ARRAY_LEN(patterns); i++)
        if (strcmp(patterns[i].regex, regex) == 0)
            return &patterns[i];
    return NULL;
}

/* set: characters and ranges; a '-' at its end is literal. */
static bool is_in_set(const char *set, char c)
{
    while (*set) {
        bool range = set[1] == '-' && set[2];

        if (range ? c >= set[0] && c <= set[2] : c == set[0])
            return true;
        set += range ? 3 : 1;
    }
    return false;
}

bool op_pattern_fits(const struct op_pattern *p, struct str s)
{
    if (s.n == 0 || (p->len && s.n != p->len))
        return false;
    for (size_t i = 0; i < s.n; i++)
        if (!is_in_set(i == 0 ? p->first : p->rest, s.p[i]))
            return false;
    return true;
}
