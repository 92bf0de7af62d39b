/* oci_ref: parses image references and registry challenges. */
#include "proto/oci.h"

#include "proto/json.h"

/* --- references (the grammar of the distribution project's reference package) --- */

static bool is_lower(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

/* Lower-case parts between single '.', one or two '_', or any number of '-'. */
static bool is_path_component(struct str s)
{
    if (s.n == 0 || !is_lower(s.p[0]) || !is_lower(s.p[s.n - 1]))
        return false;
    for (size_t i = 1; i < s.n; i++) {
        if (is_lower(s.p[i]))
            continue;
        if (!strchr("._-", s.p[i]) || s.p[i] == '\0')
            return false;
        if (s.p[i] == '.' && !is_lower(s.p[i - 1]))
            return false;
        if (s.p[i] == '_' && s.p[i - 1] != '_' && !is_lower(s.p[i - 1]))
            return false;
        if (s.p[i] == '_' && i >= 2 && s.p[i - 1] == '_' && s.p[i - 2] == '_')
            return false;
        if (s.p[i] == '-' && s.p[i - 1] != '-' && !is_lower(s.p[i - 1]))
            return false;
    }
    return true;
}

static bool is_repository(struct str s)
{
    if (s.n == 0)
        return false;
    while (s.p) {
        ptrdiff_t slash = str_index(s, '/');

        if (!is_path_component(slash < 0 ? s : str_make(s.p, (size_t)slash)))
            return false;
        if (slash < 0)
            return true;
        s = str_skip(s, (size_t)slash + 1);
    }
    return false;
}

static bool is_tag(struct str s)
{
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        bool word = is_lower(c) || (c >= 'A' && c <= 'Z') || c == '_';

        if (!word && (i == 0 || (c != '.' && c != '-')))
            return false;
    }
    return s.n > 0 && s.n <= 128;
}

static bool is_host(struct str s)
{
    uint64_t port = 0;
    ptrdiff_t colon = s.n > 0 && s.p[0] == '[' ? -1 : str_index(s, ':');
    struct str name = colon < 0 ? s : str_make(s.p, (size_t)colon);

    if (colon >= 0 &&
        (str_parse_u64(str_skip(s, (size_t)colon + 1), &port) < 0 || port == 0 || port > 65535))
        return false;
    for (size_t i = 0; i < name.n; i++)
        if (!is_lower(name.p[i]) && !(name.p[i] >= 'A' && name.p[i] <= 'Z') &&
            (!strchr(".-", name.p[i]) || i == 0))
            return false;
    return name.n > 0;
}

static int refuse(struct str text, const char *why, struct err *e)
{
    err_set(e, ERR_INVALID, 0, "'%.*s' is not an image reference: %s", (int)size_min(text.n, 100),
            text.p ? text.p : "", why);
    return err_hint(e, "write HOST[:PORT]/NAME[:TAG], as in registry.example.org/team/app:1.2");
}

static void copy(struct str s, char *to)
{
    memcpy(to, s.p ? s.p : "", s.n);
    to[s.n] = '\0';
}

/* The first component is a host if it has a dot or a port, or is "localhost". */
static struct str cut_host(struct str *rest)
{
    ptrdiff_t slash = str_index(*rest, '/');
    struct str first = slash < 0 ? (struct str){0} : str_make(rest->p, (size_t)slash);

    if (slash < 0 ||
        (str_index(first, '.') < 0 && str_index(first, ':') < 0 && !str_eq_c(first, "localhost")))
        return (struct str){0};
    *rest = str_skip(*rest, (size_t)slash + 1);
    return first;
}

int oci_ref_parse(struct str text, struct oci_ref *ret, struct err *e)
{
    struct oci_ref r = {0};
    struct str digest = {0}, tag = {0}, rest = text, host;
    ptrdiff_t at = str_index(text, '@'), colon;

    if (text.n == 0 || text.n > 500 || memchr(text.p, '\0', text.n))
        return refuse(text, "it is empty or too long", e);
    if (at >= 0) {
        rest = str_make(text.p, (size_t)at);
        digest = str_skip(text, (size_t)at + 1);
        if (!oci_digest_is_valid(digest))
            return refuse(text, "the text after '@' is not a SHA-256 digest", e);
    }
    host = cut_host(&rest);
    if (host.n >= sizeof r.host || (host.n > 0 && !is_host(host)))
        return refuse(text, "its host is malformed", e);
    colon = str_index(rest, ':');
    if (colon >= 0) {
        tag = str_skip(rest, (size_t)colon + 1);
        rest = str_make(rest.p, (size_t)colon);
        if (!is_tag(tag))
            return refuse(text, "its tag is malformed", e);
    }
    if (rest.n >= sizeof r.repository || !is_repository(rest))
        return refuse(text, "its name must be lower case, without special characters", e);
    copy(host, r.host);
    copy(rest, r.repository);
    copy(tag.n == 0 && digest.n == 0 ? STR("latest") : tag, r.tag);
    copy(digest, r.digest);
    *ret = r;
    return 0;
}

/* --- challenges --- */

static struct str skip_spaces(struct str s)
{
    while (s.n > 0 && (s.p[0] == ' ' || s.p[0] == '\t' || s.p[0] == ','))
        s = str_skip(s, 1);
    return s;
}

/* One value: a token, or a quoted string (escapes are refused: nobody uses them). */
static int cut_value(struct str *s, struct str *ret)
{
    size_t n = 0;

    if (s->n > 0 && s->p[0] == '"') {
        *s = str_skip(*s, 1);
        while (n < s->n && s->p[n] != '"') {
            if (s->p[n] == '\\' || (unsigned char)s->p[n] < ' ')
                return -1;
            n++;
        }
        if (n == s->n)
            return -1;
        *ret = str_make(s->p, n);
        *s = str_skip(*s, n + 1);
        return 0;
    }
    while (n < s->n && !strchr(" \t,\"", s->p[n]))
        n++;
    *ret = str_make(s->p, n);
    *s = str_skip(*s, n);
    return 0;
}

static int keep(struct oci_challenge *c, struct str key, struct str value)
{
    const struct {
        const char *name;
        char *to;
        size_t size;
    } known[] = {{"realm", c->realm, sizeof c->realm},
                 {"service", c->service, sizeof c->service},
                 {"scope", c->scope, sizeof c->scope}};

    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        if (!str_case_eq_c(key, known[i].name))
            continue;
        if (value.n >= known[i].size || memchr(value.p, '\0', value.n))
            return -1;
        copy(value, known[i].to);
    }
    return 0;
}

int oci_challenge_parse(struct str header, struct oci_challenge *ret, struct err *e)
{
    struct oci_challenge c = {0};
    struct str rest = str_trim(header), key, value;

    if (rest.n < 7 || !str_case_eq(str_make(rest.p, 6), STR("bearer")) || rest.p[6] != ' ')
        return 0;
    rest = skip_spaces(str_skip(rest, 7));
    while (rest.n > 0) {
        ptrdiff_t equals = str_index(rest, '=');

        if (equals <= 0)
            break; /* another scheme follows */
        key = str_trim(str_make(rest.p, (size_t)equals));
        rest = str_skip(rest, (size_t)equals + 1);
        if (cut_value(&rest, &value) < 0 || keep(&c, key, value) < 0)
            return err_set(e, ERR_INVALID, 0, "the registry's challenge is malformed");
        rest = skip_spaces(rest);
    }
    if (!c.realm[0])
        return err_set(e, ERR_INVALID, 0, "the registry's challenge has no token server");
    *ret = c;
    return 1;
}

int oci_token_read(struct str doc, struct buf *to, struct err *e)
{
    AUTO(json_decref) json_t *v = NULL;
    const json_t *t;

    if (json_read(doc, &v, e) < 0)
        return err_wrap(e, "the token server's reply");
    t = json_object_get(v, "token");
    if (!json_is_string(t))
        t = json_object_get(v, "access_token");
    if (!json_is_string(t) || json_string_length(t) == 0 || json_string_length(t) > 16384)
        return err_set(e, ERR_INVALID, 0, "the token server's reply has no token");
    for (const char *p = json_string_value(t); *p; p++)
        if (*p <= ' ' || *p > '~') /* it becomes part of a header */
            return err_set(e, ERR_INVALID, 0, "the token server's token has invalid characters");
    buf_add(to, json_string_value(t), json_string_length(t));
    return 0;
}
