/* manifest_agent: what a manifest means for the sandbox: command line and network policy. */
#include "core/task/manifest.h"

#define ARGS_MAX 32

struct args {
    struct str *v;
    size_t n;
};

static void arg(struct args *to, struct str s)
{
    if (to->n < ARGS_MAX)
        to->v[to->n++] = s;
}

static void arg_with(struct args *to, const char *flag, struct str value)
{
    if (value.n == 0)
        return;
    arg(to, str_of(flag));
    arg(to, value);
}

static struct str joined(struct arena *a, const struct manifest_list *l, char by)
{
    AUTO(buf_done) struct buf text = {0};

    for (size_t i = 0; i < l->n; i++) {
        if (i > 0)
            buf_add_char(&text, by);
        buf_add_str(&text, l->v[i]);
    }
    return arena_str(a, buf_str(&text));
}

/* stream-json needs --verbose; with -p it prints and ends. */
static void claude_args(const struct manifest *m, struct arena *a, struct args *to)
{
    arg(to, STR("claude"));
    if (m->headless) {
        arg(to, STR("-p"));
        arg_with(to, "--output-format", m->output_format);
        if (str_eq_c(m->output_format, "stream-json"))
            arg(to, STR("--verbose"));
    }
    arg_with(to, "--model", m->model);
    if (m->skip_permissions)
        arg(to, STR("--dangerously-skip-permissions"));
    arg_with(to, "--allowedTools", joined(a, &m->allowed_tools, ','));
    arg_with(to, "--mcp-config", m->mcp_config);
    if (m->max_turns > 0)
        arg_with(to, "--max-turns", str_of(arena_printf(a, "%lld", (long long)m->max_turns)));
    arg(to, STR("--"));
    arg(to, m->prompt);
}

static void codex_args(const struct manifest *m, struct arena *a, struct args *to)
{
    (void)a;
    arg(to, STR("codex"));
    if (m->headless)
        arg(to, STR("exec"));
    arg_with(to, "--model", m->model);
    if (m->skip_permissions)
        arg(to, STR("--dangerously-bypass-approvals-and-sandbox"));
    arg(to, STR("--"));
    arg(to, m->prompt);
}

static void aider_args(const struct manifest *m, struct arena *a, struct args *to)
{
    (void)a;
    arg(to, STR("aider"));
    arg_with(to, "--model", m->model);
    if (m->skip_permissions)
        arg(to, STR("--yes-always"));
    arg(to, m->headless ? STR("--message") : STR("--"));
    arg(to, m->prompt);
}

static void opencode_args(const struct manifest *m, struct arena *a, struct args *to)
{
    (void)a;
    arg(to, STR("opencode"));
    arg(to, STR("run"));
    arg_with(to, "--model", m->model);
    arg(to, STR("--"));
    arg(to, m->prompt);
}

static const struct provider {
    const char *name;
    void (*args)(const struct manifest *m, struct arena *a, struct args *to);
    const char *host; /* of its model; NULL: it depends on the model */
} providers[] = {
    {"claude", claude_args, "api.anthropic.com:443"},
    {"codex", codex_args, "api.openai.com:443"},
    {"aider", aider_args, NULL},
    {"opencode", opencode_args, NULL},
};

static const struct provider *provider_of(const struct manifest *m)
{
    for (size_t i = 0; i < ARRAY_LEN(providers); i++)
        if (str_eq_c(m->provider, providers[i].name))
            return &providers[i];
    return NULL;
}

void manifest_argv(const struct manifest *m, struct arena *a, struct str **ret, size_t *ret_n)
{
    struct args to = {.v = arena_zalloc(a, (ARGS_MAX + 1) * sizeof *to.v)};
    const struct provider *p = provider_of(m);

    *ret = m->command.v;
    *ret_n = m->command.n;
    if (!p)
        return;
    p->args(m, a, &to);
    *ret = to.v;
    *ret_n = to.n;
}

/* --- network --- */

/* "https://user@git.example.com:8443/x" → "git.example.com:8443"; "git@host:path" → "host:22". */
static struct str clone_host(struct str url, struct arena *a)
{
    struct str rest;
    const char *at = str_find(url, STR("://"));
    bool plain = str_starts(url, STR("http://"));

    if (!at) {
        (void)str_cut(url, '@', &rest);
        return str_of(arena_printf(a, STR_FMT ":22", STR_ARG(str_cut(rest, ':', &url))));
    }
    rest = str_skip(url, (size_t)(at - url.p) + 3);
    rest = str_cut(rest, '/', &url);
    if (str_index(rest, '@') >= 0)
        (void)str_cut(rest, '@', &rest);
    if (str_index(rest, ':') >= 0)
        return arena_str(a, rest);
    return str_of(arena_printf(a, STR_FMT ":%d", STR_ARG(rest), plain ? 80 : 443));
}

static struct str allowlist(const struct str *hosts, size_t n, struct arena *a)
{
    AUTO(buf_done) struct buf text = {0};
    struct jw w = {.to = &text};

    jw_object(&w);
    jw_kc(&w, "mode", "allowlist");
    jw_key(&w, "allow");
    jw_array(&w);
    for (size_t i = 0; i < n; i++)
        jw_str(&w, hosts[i]);
    jw_array_end(&w);
    jw_object_end(&w);
    return arena_str(a, buf_str(&text));
}

/* An isolated agent still needs its model: without that host it could only fail. */
struct str manifest_policy(const struct manifest *m, struct arena *a)
{
    const struct provider *p = provider_of(m);
    size_t n = m->network == MANIFEST_OUTBOUND ? m->allowed_hosts.n : 0;
    struct str *hosts = arena_zalloc(a, (n + 1) * sizeof *hosts);

    if (m->network == MANIFEST_FULL)
        return STR("\"open\"");
    if (n > 0)
        memcpy(hosts, m->allowed_hosts.v, n * sizeof *hosts);
    if (p && p->host)
        hosts[n++] = str_of(p->host);
    return n > 0 ? allowlist(hosts, n, a) : STR("\"none\"");
}

struct str manifest_clone_policy(const struct manifest *m, struct arena *a)
{
    struct str host = m->url.n > 0 ? clone_host(m->url, a) : STR("");

    return m->url.n > 0 ? allowlist(&host, 1, a) : STR("\"none\"");
}
