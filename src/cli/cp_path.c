/* cp_path: parses SANDBOX:PATH arguments. */
#include "cli/cp_path.h"

#include "base/mem.h"
#include "base/str.h"

/* OWNER/NAME; an owner is recognised by its id: tk_…, token/tk_…, sandbox/sb_… */
static bool names_an_owner(const char *text)
{
    static const char *const owners[] = {"tk_", "token/tk_", "sandbox/sb_"};

    for (size_t i = 0; i < ARRAY_LEN(owners); i++)
        if (str_starts(str_of(text), str_of(owners[i])))
            return true;
    return false;
}

int cp_path_parse(const char *text, struct cp_path *ret, struct err *e)
{
    const char *colon = strchr(text, ':'), *slash = strchr(text, '/');

    if (!colon || (slash && slash < colon && !names_an_owner(text))) {
        if (!text[0])
            return err_set(e, ERR_INVALID, 0, "an empty path");
        *ret = (struct cp_path){.path = xstrdup(text)};
        return 0;
    }
    if (colon == text || !colon[1]) {
        (void)err_set(e, ERR_INVALID, 0, "'%.120s' is not SANDBOX:PATH", text);
        return err_hint(e, "write SANDBOX:/PATH, or ./%.60s for a file here", text);
    }
    *ret = (struct cp_path){.sandbox = xstrndup(text, (size_t)(colon - text)),
                            .path = xstrdup(colon + 1)};
    return 0;
}

void cp_path_done(struct cp_path *p)
{
    mem_free(p->sandbox);
    mem_free(p->path);
    *p = (struct cp_path){0};
}

static struct str path_trimmed(const char *path)
{
    struct str s = str_of(path);

    while (s.n > 1 && s.p[s.n - 1] == '/')
        s.n--;
    return s;
}

static size_t last_slash(struct str s) /* the index after it; 0: none */
{
    size_t n = s.n;

    while (n > 0 && s.p[n - 1] != '/')
        n--;
    return n;
}

char *path_name(const char *path)
{
    struct str s = path_trimmed(path), name = str_skip(s, last_slash(s));

    if (str_eq_c(name, ".") || str_eq_c(name, ".."))
        name.n = 0;
    return name.n ? str_dup(name) : xstrdup("");
}

char *path_parent(const char *path)
{
    struct str s = path_trimmed(path);
    size_t n = last_slash(s);

    if (n == 0)
        return xstrdup(".");
    while (n > 1 && s.p[n - 1] == '/')
        n--;
    return xstrndup(s.p, n);
}

bool path_means_content(const char *path)
{
    return strcmp(path, ".") == 0 || str_ends(str_of(path), STR("/."));
}
