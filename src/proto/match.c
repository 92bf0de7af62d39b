/* match: matches host names, methods and paths of rules. */
#include "proto/match.h"

#include "base/mem.h"
#include "proto/http.h"

#define PATH_MAX_LEN 1024

void match_done(struct match *m)
{
    mem_free(TAKE(m->path));
    while (m->method_count > 0)
        mem_free(m->methods[--m->method_count]);
}

/* ---- paths ---- */

static bool is_upper_hex(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'F');
}

static int hex_value(char c)
{
    return c <= '9' ? c - '0' : c - 'A' + 10;
}

/* RFC 3986 section 6.2.2: whether the path has only one form.  An escaped letter, digit or "-._~"
 * could be written bare; some servers take an escaped slash or a backslash for a slash; others
 * unescape an escaped '%' twice; ';' starts parameters that some cut off. */
static bool is_plain(struct str path)
{
    if (!http_path_is_normal(path) || str_index(path, '\\') >= 0 || str_index(path, ';') >= 0)
        return false;
    for (size_t i = 0; i < path.n; i++) {
        int c;

        if (path.p[i] != '%')
            continue;
        if (path.n - i < 3 || !is_upper_hex(path.p[i + 1]) || !is_upper_hex(path.p[i + 2]))
            return false;
        c = hex_value(path.p[i + 1]) << 4 | hex_value(path.p[i + 2]);
        if (c < 0x20 || (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') ||
            (c >= 'a' && c <= 'z') || (c < 0x80 && strchr("-._~/\\%;", c)))
            return false;
        i += 2;
    }
    return true;
}

/* ---- reading and writing ---- */

int match_methods(struct match *m, const json_t *v, struct err *e)
{
    size_t n = json_array_size(v);

    if (!json_is_array(v) || n == 0 || n > MATCH_METHODS_MAX)
        return err_set(e, ERR_INVALID, 0, "'methods' is not a list of 1 to %d methods",
                       MATCH_METHODS_MAX);
    for (size_t i = 0; i < n; i++) {
        const char *name = json_string_value(json_array_get(v, i));

        if (!name || !name[0] || strlen(name) > 32 ||
            name[strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ-")] != '\0')
            return err_set(e, ERR_INVALID, 0,
                           "'methods' must contain names like 'GET', in capitals");
        m->methods[m->method_count++] = xstrdup(name);
    }
    return 0;
}

int match_path(struct match *m, const json_t *v, struct err *e)
{
    const char *p = json_string_value(v), *star = p ? strchr(p, '*') : NULL;

    if (!p || p[0] != '/' || strlen(p) > PATH_MAX_LEN || (star && star[1] != '\0'))
        return err_set(e, ERR_INVALID, 0, "'path' is not like '/v1/models' or '/v1/*'");
    if (!is_plain(str_make(p, star ? (size_t)(star - p) : strlen(p)))) {
        (void)err_set(e, ERR_INVALID, 0, "'path' is not in its normal form");
        return err_hint(e,
                        "without '..', '//', ';', escaped letters and slashes; %%XX in capitals");
    }
    m->path = xstrdup(p);
    return 0;
}

void match_print(const struct match *m, struct jw *w)
{
    if (m->method_count > 0) {
        jw_key(w, "methods");
        jw_array(w);
        for (size_t i = 0; i < m->method_count; i++)
            jw_c(w, m->methods[i]);
        jw_array_end(w);
    }
    if (m->path)
        jw_kc(w, "path", m->path);
}

/* ---- requests ---- */

bool match_is_narrow(const struct match *m)
{
    return m->method_count > 0 || m->path;
}

/* Some servers accept "delete" for DELETE. */
static bool method_fits(const struct match *m, struct str method, bool forbids)
{
    for (size_t i = 0; i < m->method_count; i++)
        if (forbids ? str_case_eq_c(method, m->methods[i]) : str_eq_c(method, m->methods[i]))
            return true;
    return m->method_count == 0;
}

static bool path_fits(const struct match *m, struct str path, bool forbids)
{
    size_t n = m->path ? strlen(m->path) : 0;

    if (n == 0)
        return true;
    if (!is_plain(path))
        return forbids;
    if (m->path[n - 1] == '*')
        return path.n >= n - 1 && memcmp(path.p, m->path, n - 1) == 0;
    return str_eq_c(path, m->path);
}

bool match_fits(const struct match *m, struct str method, struct str path, bool forbids)
{
    return method_fits(m, method, forbids) && path_fits(m, path, forbids);
}

/* ---- names ---- */

int match_name_parse(struct str s, char name[static HOST_NAME_MAX_LEN + 1], bool *ret_wild,
                     struct err *e)
{
    bool wild = str_starts(s, STR("*."));

    if (host_name_canonical(wild ? str_skip(s, 2) : s, name, e) < 0)
        return -1;
    if (wild && !strchr(name, '.')) {
        (void)err_set(e, ERR_INVALID, 0, "'*.%s' would match a whole top-level domain", name);
        return err_hint(e, "name the domain below it, as in *.example.%s", name);
    }
    *ret_wild = wild;
    return 0;
}

bool match_name(const char *name, bool wild, const struct host *h)
{
    size_t n = strlen(h->name), suffix = strlen(name);

    if (h->is_ip)
        return false;
    if (strcmp(name, h->name) == 0)
        return true;
    return wild && n > suffix + 1 && h->name[n - suffix - 1] == '.' &&
           strcmp(h->name + n - suffix, name) == 0;
}
