/* What a message may point at. */
#include "core/message.h"

#include <ctype.h>

static bool is_scheme_char(char c)
{
    return isalnum((unsigned char)c) || c == '+' || c == '-' || c == '.';
}

static bool is_slash(char c)
{
    return c == '/' || c == '\\';
}

/* Is there a scheme right before the colon at `at`?  *ret_web: one whose URLs browsers read even
 * with a single slash (WHATWG URL, "special scheme"). */
static bool scheme_before(struct str s, size_t at, bool *ret_web)
{
    size_t from = at;
    struct str name;

    while (from > 0 && is_scheme_char(s.p[from - 1]))
        from--;
    name = str_make(s.p + from, at - from);
    *ret_web = (name.n >= 4 && str_case_eq_c(str_skip(name, name.n - 4), "http")) ||
               (name.n >= 5 && str_case_eq_c(str_skip(name, name.n - 5), "https"));
    return name.n > 0;
}

/* The authority that begins at `at`: up to a slash, a query, a fragment, a blank or a quote.  A
 * backslash belongs to it: readers disagree whether it ends there, so nobody may use one. */
static struct str authority_at(struct str s, size_t at)
{
    size_t end = at;

    while (end < s.n && (unsigned char)s.p[end] > ' ' && !strchr("/?#\"'<>`", s.p[end]))
        end++;
    return str_make(s.p + at, end - at);
}

static bool is_ipv4_of_team(struct str host)
{
    struct str rest = host;
    uint64_t part[4];

    for (int i = 0; i < 4; i++) {
        struct str digits = str_cut(rest, '.', &rest);

        if (digits.n == 0 || digits.n > 3 || (digits.n > 1 && digits.p[0] == '0') ||
            str_parse_u64(digits, &part[i]) < 0 || part[i] > 255)
            return false;
    }
    return rest.n == 0 && host.p[host.n - 1] != '.' && part[0] == 172 && part[1] == 28;
}

/* A single label names a machine of the team's network; digits alone (or 0x…) are an address. */
static bool is_plain_name(struct str host)
{
    bool letter = false;

    if (host.n == 0 || isdigit((unsigned char)host.p[0]))
        return false;
    for (size_t i = 0; i < host.n; i++) {
        if (!isalnum((unsigned char)host.p[i]) && host.p[i] != '-' && host.p[i] != '_')
            return false;
        letter = letter || isalpha((unsigned char)host.p[i]);
    }
    return letter;
}

static bool is_safe_authority(struct str authority)
{
    struct str host = authority, port;
    ptrdiff_t at;

    if (str_index(authority, '\\') >= 0)
        return false;
    while ((at = str_index(host, '@')) >= 0)
        host = str_skip(host, (size_t)at + 1);
    if (str_starts(host, STR("[::1]")))
        return true;
    host = str_cut(host, ':', &port);
    /* A sentence's end is not the host's. */
    while (host.n > 0 && strchr(",;!)", host.p[host.n - 1]))
        host.n--;
    return is_plain_name(host) || str_eq_c(host, "127.0.0.1") ||
           (host.n > 0 && is_ipv4_of_team(host));
}

bool message_is_safe(struct str s)
{
    for (size_t i = 0; i + 1 < s.n; i++) {
        size_t at = i + 1;
        bool web;

        if (s.p[i] != ':' || !is_slash(s.p[at]) || !scheme_before(s, i, &web))
            continue;
        while (at < s.n && is_slash(s.p[at]))
            at++;
        if (!web && at - i < 3)
            continue;
        if (!is_safe_authority(authority_at(s, at)))
            return false;
    }
    return true;
}
