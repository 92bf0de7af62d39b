/* detach: recognises the detach keys in typed input. */
#include "cli/detach.h"

static int parse_key(struct str name, unsigned char *ret)
{
    char c = name.n > 0 ? name.p[name.n - 1] : 0;

    if (name.n == 1) {
        *ret = (unsigned char)c;
        return 0;
    }
    if (name.n != 6 || !str_case_eq(str_make(name.p, 5), STR("ctrl-")))
        return -1;
    if (c >= 'a' && c <= 'z')
        c = (char)(c - 32);
    if (c < '@' || c > '_')
        return -1;
    *ret = (unsigned char)(c - '@');
    return 0;
}

int detach_parse(const char *text, struct detach *ret, struct err *e)
{
    struct detach d = {0};
    struct str rest = str_of(text);

    if (str_eq_c(rest, "none"))
        rest.n = 0;
    while (rest.n > 0) {
        struct str name = str_cut(rest, ',', &rest);

        if (d.count == DETACH_MAX || parse_key(name, &d.keys[d.count]) < 0) {
            (void)err_set(e, ERR_INVALID, 0, "--detach-keys: '%.60s' is not a key sequence", text);
            return err_hint(e,
                            "up to %d keys, ctrl-a … ctrl-z or single characters, separated by "
                            "commas: ctrl-p,ctrl-q; or none",
                            DETACH_MAX);
        }
        d.count++;
    }
    *ret = d;
    return 0;
}

/* The length of the longest prefix of the keys that the held ones plus c end with. */
static size_t fall_back(const struct detach *d, unsigned char c)
{
    for (size_t n = d->have; n > 0; n--)
        if (d->keys[n - 1] == c && memcmp(d->keys, d->keys + d->have - (n - 1), n - 1) == 0)
            return n;
    return 0;
}

bool detach_filter(struct detach *d, struct str typed, struct buf *to)
{
    for (size_t i = 0; i < typed.n; i++) {
        unsigned char c = (unsigned char)typed.p[i];
        size_t keep;

        if (d->count > 0 && c == d->keys[d->have]) {
            if (++d->have == d->count)
                return true;
            continue;
        }
        keep = d->count > 0 ? fall_back(d, c) : 0;
        buf_add(to, d->keys, keep > 0 ? d->have + 1 - keep : d->have);
        if (keep == 0)
            buf_add_char(to, (char)c);
        d->have = keep;
    }
    return false;
}
