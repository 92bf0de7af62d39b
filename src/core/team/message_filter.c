/* message_filter: finds external URLs in messages, however they are written. */
#include "core/team/message.h"

#include "base/enc.h"

#include <ctype.h>

/* Longer ones are not needed; and a text made only of schemes is not scanned again from each. */
#define AUTHORITY_MAX 2048

static bool is_scheme_char(char c)
{
    return isalnum((unsigned char)c) || c == '+' || c == '-' || c == '.';
}

static bool is_slash(char c)
{
    return c == '/' || c == '\\';
}

/* Whether a scheme ends right before the colon at `at`; letters that only look like one
 * count.  *ret_web: its URLs are read by browsers even with one slash or none (WHATWG URL, "special
 * scheme"). */
static bool scheme_before(struct str s, size_t at, bool *ret_web)
{
    size_t from = at;
    struct str name;

    while (from > 0 && is_scheme_char(s.p[from - 1]))
        from--;
    name = str_make(s.p + from, at - from);
    *ret_web = (name.n >= 4 && str_case_eq_c(str_skip(name, name.n - 4), "http")) ||
               (name.n >= 5 && str_case_eq_c(str_skip(name, name.n - 5), "https"));
    return name.n > 0 || (at > 0 && (unsigned char)s.p[at - 1] >= 0x80);
}

/* The authority that begins at `at`: up to a slash, a query, a fragment, a blank or a quote.  A
 * backslash belongs to it: parsers disagree whether it ends there, so it is not allowed. */
static struct str authority_at(struct str s, size_t at)
{
    size_t end = at;

    while (end < s.n && end - at <= AUTHORITY_MAX && (unsigned char)s.p[end] > ' ' &&
           !strchr("/?#\"'<>`", s.p[end]))
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

/* Digits, followed by the punctuation that ends a sentence. */
static bool is_port(struct str port)
{
    size_t n = 0;

    while (n < port.n && isdigit((unsigned char)port.p[n]))
        n++;
    for (; n < port.n; n++)
        if (!strchr(",;!).", port.p[n]))
            return false;
    return true;
}

static bool is_safe_authority(struct str authority)
{
    struct str host = authority, port;
    ptrdiff_t at;

    if (authority.n > AUTHORITY_MAX || str_index(authority, '\\') >= 0)
        return false;
    while ((at = str_index(host, '@')) >= 0)
        host = str_skip(host, (size_t)at + 1);
    if (str_starts(host, STR("[::1]")))
        return host.n == 5 || (host.p[5] == ':' && is_port(str_skip(host, 6))) ||
               (host.p[5] != ':' && is_port(str_skip(host, 5)));
    host = str_cut(host, ':', &port);
    if (!is_port(port))
        return false;
    /* Punctuation at the end belongs to the sentence, not the host. */
    while (host.n > 0 && strchr(",;!)", host.p[host.n - 1]))
        host.n--;
    return is_plain_name(host) || str_eq_c(host, "127.0.0.1") ||
           (host.n > 0 && is_ipv4_of_team(host));
}

/* A scheme alone, in a sentence or in quotes, is not a URL. */
static bool is_scheme_alone(struct str s, size_t at)
{
    return at == s.n || (s.p[at] && strchr(" \"'`)", s.p[at]));
}

/* "https:evil.com" is a URL, "http:8080" in a list of ports is not meant as one. */
static bool has_inner_dot(struct str s)
{
    for (size_t i = 1; i + 1 < s.n; i++)
        if (s.p[i] == '.' && isalnum((unsigned char)s.p[i + 1]))
            return true;
    return false;
}

static bool is_safe_text(struct str s)
{
    for (size_t i = 0; i + 1 < s.n; i++) {
        size_t at = i + 1;
        struct str authority;
        bool web;

        if (s.p[i] != ':' || !scheme_before(s, i, &web))
            continue;
        while (at < s.n && is_slash(s.p[at]))
            at++;
        if (!web && at - i < 3)
            continue;
        authority = authority_at(s, at);
        if (authority.n == 0 && is_scheme_alone(s, at))
            continue;
        if ((at > i + 1 || authority.n > AUTHORITY_MAX || has_inner_dot(authority)) &&
            !is_safe_authority(authority))
            return false;
    }
    return true;
}

/* --- other spellings --- */

/* Invisible characters that parsers drop: soft hyphen, zero width, word joiner. */
static size_t unseen_at(struct str s, size_t i)
{
    static const char *const unseen[] = {"\xc2\xad",     "\xe2\x80\x8b", "\xe2\x80\x8c",
                                         "\xe2\x80\x8d", "\xe2\x81\xa0", "\xef\xbb\xbf"};

    for (size_t k = 0; k < ARRAY_LEN(unseen); k++)
        if (str_starts(str_skip(s, i), str_of(unseen[k])))
            return strlen(unseen[k]);
    return 0;
}

/* Characters that look like those of a URL. */
static const struct {
    const char *text;
    char is;
} lookalikes[] = {
    {"\xe2\x88\xb6", ':'}, /* U+2236 ratio */
    {"\xea\x9e\x89", ':'}, /* U+A789 modifier letter colon */
    {"\xcb\x90", ':'},     /* U+02D0 triangular colon */
    {"\xd6\x89", ':'},     /* U+0589 Armenian full stop */
    {"\xd7\x83", ':'},     /* U+05C3 Hebrew sof pasuq */
    {"\xef\xb8\x93", ':'}, /* U+FE13 vertical colon */
    {"\xef\xb9\x95", ':'}, /* U+FE55 small colon */
    {"\xe2\x81\x84", '/'}, /* U+2044 fraction slash */
    {"\xe2\x88\x95", '/'}, /* U+2215 division slash */
    {"\xe2\xa7\xb8", '/'}, /* U+29F8 big solidus */
    {"\xe3\x80\x82", '.'}, /* U+3002 ideographic full stop */
    {"\xe2\x80\xa4", '.'}, /* U+2024 one dot leader */
    {"\xef\xb9\x92", '.'}, /* U+FE52 small full stop */
    {"\xef\xbd\xa1", '.'}, /* U+FF61 half-width ideographic full stop */
};

static char lookalike_at(struct str left, size_t *ret_n)
{
    for (size_t i = 0; i < ARRAY_LEN(lookalikes); i++) {
        *ret_n = strlen(lookalikes[i].text);
        if (str_starts(left, str_of(lookalikes[i].text)))
            return lookalikes[i].is;
    }
    return 0;
}

/* HTML's numeric ("&#47;", "&#x2f") and named references to characters of a URL; a number needs no
 * semicolon. */
static char entity_at(struct str left, size_t *ret_n)
{
    static const struct {
        const char *name;
        char is;
    } names[] = {{"&colon;", ':'}, {"&sol;", '/'},    {"&period;", '.'}, {"&bsol;", '\\'},
                 {"&amp;", '&'},   {"&commat;", '@'}, {"&Tab;", '\t'},   {"&NewLine;", '\n'}};
    bool hex = left.n > 2 && (left.p[2] == 'x' || left.p[2] == 'X');
    size_t at = hex ? 3 : 2;
    unsigned point = 0, digit;

    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        *ret_n = strlen(names[i].name);
        if (str_starts(left, str_of(names[i].name)))
            return names[i].is;
    }
    if (!str_starts(left, STR("&#")))
        return 0;
    for (; at < left.n && point < 0x80; at++) {
        char c = (char)tolower((unsigned char)left.p[at]);

        if (!(hex ? isxdigit((unsigned char)c) : isdigit((unsigned char)c)))
            break;
        digit = (unsigned)(c <= '9' ? c - '0' : c - 'a' + 10);
        point = point * (hex ? 16 : 10) + digit;
    }
    *ret_n = at + (at < left.n && left.p[at] == ';');
    return point > 0 && point < 0x7f ? (char)point : 0;
}

/* The ASCII character for a full-width form (U+FF01 to U+FF5E) or an escape; 0: none.  Unicode's
 * compatibility mapping, which host names go through (UTS #46). */
static char stands_for(struct str s, size_t i, size_t *ret_n)
{
    struct str left = str_skip(s, i);
    const unsigned char *p = (const unsigned char *)left.p;
    unsigned char byte;
    char c = left.n > 0 && left.p[0] == '&' ? entity_at(left, ret_n) : lookalike_at(left, ret_n);

    if (c)
        return c;
    *ret_n = 3;
    if (left.n < 3)
        return 0;
    if (p[0] == 0xef && p[1] == 0xbc && p[2] >= 0x81 && p[2] <= 0xbf)
        return (char)(p[2] - 0x60);
    if (p[0] == 0xef && p[1] == 0xbd && p[2] >= 0x80 && p[2] <= 0x9e)
        return (char)(p[2] - 0x20);
    if (p[0] == '%' && dec_hex(str_make(left.p + 1, 2), &byte, 1) == 0 && byte > ' ' && byte < 0x7f)
        return (char)byte;
    return 0;
}

/* Whether plain_text could change anything: most texts are plain, and are scanned only once. */
static bool may_be_other(struct str s)
{
    bool blank = false, between = false;

    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];

        if (c >= 0x80 || c == '%' || c == '&')
            return true;
        blank = blank || c == ' ';
        between = between || c < ' ';
    }
    return between && !blank;
}

/* URL parsers remove tabs and line ends inside a text (WHATWG URL §4.4). */
static void plain_text(struct str s, struct buf *to)
{
    bool one_word = s.n > 0 && !memchr(s.p, ' ', s.n);

    for (size_t i = 0, n; i < s.n;) {
        char c = stands_for(s, i, &n);
        size_t unseen = unseen_at(s, i);

        if (c) {
            buf_add_char(to, c);
            i += n;
        } else if (unseen > 0 || (one_word && strchr("\t\r\n", s.p[i]))) {
            i += unseen > 0 ? unseen : 1;
        } else {
            buf_add_char(to, s.p[i++]);
        }
    }
}

bool message_is_safe(struct str s)
{
    AUTO(buf_done) struct buf plain = {0}, plainer = {0};

    if (!is_safe_text(s))
        return false;
    if (!may_be_other(s))
        return true;
    plain_text(s, &plain);
    if (!is_safe_text(buf_str(&plain)))
        return false;
    /* For text that was escaped twice. */
    plain_text(buf_str(&plain), &plainer);
    return is_safe_text(buf_str(&plainer));
}
