/* hosts: the allowed hosts of agentbox sessions. */
#include "api/dialects/agentbox/agentbox.h"
#include "proto/json.h"
#include "proto/policy.h"

static const char *const defaults[] = {
    "pypi.org",   "files.pythonhosted.org",    "registry.npmjs.org",
    "github.com", "raw.githubusercontent.com", "objects.githubusercontent.com",
    "crates.io",  "static.crates.io",
};

int agentbox_hosts_check(const struct str *hosts, size_t count, struct err *e)
{
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < hosts[i].n; k++)
            if ((unsigned char)hosts[i].p[k] < ' ')
                return err_set(e, ERR_INVALID, 0,
                               "allowed_hosts: a control character in number %zu", i + 1);
    return 0;
}

/* One per line, exactly as requested: echoing them is part of the contract. */
void agentbox_hosts_note(const struct str *hosts, size_t count, struct buf *to)
{
    for (size_t i = 0; i < count; i++)
        buf_printf(to, STR_FMT "\n", STR_ARG(hosts[i]));
    for (size_t i = 0; count == 0 && i < ARRAY_LEN(defaults); i++)
        buf_printf(to, "%s\n", defaults[i]);
}

static bool is_default(struct str host)
{
    for (size_t i = 0; i < ARRAY_LEN(defaults); i++)
        if (str_eq_c(host, defaults[i]))
            return true;
    return false;
}

bool agentbox_hosts_are_preset(const struct str *hosts, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!is_default(hosts[i]))
            return false;
    return true;
}

void agentbox_hosts(const struct sandbox *s, struct arena *a, struct str **ret, size_t *ret_count)
{
    struct sandbox_info i;
    struct str left;
    size_t n = 0;

    sandbox_info(s, &i);
    for (size_t k = 0; k < i.note.n; k++)
        n += i.note.p[k] == '\n';
    *ret = arena_alloc(a, size_max(n, 1) * sizeof **ret);
    *ret_count = n;
    left = i.note;
    for (size_t k = 0; k < n; k++)
        (*ret)[k] = str_cut(left, '\n', &left);
}

/* A host that is not a valid rule can be requested, but never reached. */
void agentbox_hosts_policy(struct str note, struct buf *to)
{
    struct jw w = {.to = to};

    jw_object(&w);
    jw_kc(&w, "mode", "allowlist");
    jw_key(&w, "allow");
    jw_array(&w);
    while (note.n > 0) {
        struct str host = str_cut(note, '\n', &note);

        if (policy_is_rule(host, true))
            jw_str(&w, host);
    }
    jw_array_end(&w);
    jw_object_end(&w);
}

static bool has_host(struct str note, const char *host)
{
    while (note.n > 0)
        if (str_eq_c(str_cut(note, '\n', &note), host))
            return true;
    return false;
}

bool agentbox_may_pip(const struct sandbox *s, struct buf *why)
{
    struct sandbox_info i;

    sandbox_info(s, &i);
    if (has_host(i.note, defaults[0]) && has_host(i.note, defaults[1]))
        return true;
    buf_printf(why, "pip install requires %s and %s in allowed_hosts", defaults[0], defaults[1]);
    return false;
}
