/* client_url: parses http, https and unix URLs. */
#include "net/client.h"

#include "base/mem.h"

static int bad(const char *text, const char *why, struct err *e)
{
    (void)err_set(e, ERR_INVALID, 0, "'%.120s' is not a server: %s", text, why);
    return err_hint(e, "write http://HOST:PORT, https://HOST:PORT or unix:/PATH");
}

static bool is_printable(struct str s)
{
    for (size_t i = 0; i < s.n; i++)
        if ((unsigned char)s.p[i] <= ' ' || (unsigned char)s.p[i] >= 0x7f)
            return false;
    return true;
}

static int parse_unix(const char *text, struct client_url *ret, struct err *e)
{
    const char *path = text + 5;

    if (strncmp(path, "//", 2) == 0) /* unix:///path */
        path += 2;
    if (path[0] != '/')
        return bad(text, "the socket's path must start with '/'", e);
    if (strlen(path) > 107) /* sun_path of unix(7) */
        return bad(text, "a socket's path has at most 107 bytes", e);
    *ret = (struct client_url){
        .path = xstrdup(path), .prefix = xstrdup(""), .authority = xstrdup("localhost")};
    return 0;
}

/* "host", "host:80", "[::1]:80" */
static bool split_authority(struct str authority, struct str *host, struct str *port)
{
    struct str after;

    if (authority.n > 0 && authority.p[0] == '[') {
        *host = str_cut(str_skip(authority, 1), ']', &after);
        if (host->n + 1 >= authority.n || (after.n > 0 && after.p[0] != ':'))
            return false;
        *port = str_skip(after, after.n ? 1 : 0);
        return host->n > 0 && (after.n == 0 || port->n > 0);
    }
    *host = str_cut(authority, ':', port);
    if (host->n != authority.n && port->n == 0)
        return false;
    return host->n > 0 && str_index(*port, ':') < 0;
}

int client_url_parse(const char *text, struct client_url *ret, struct err *e)
{
    bool tls = strncmp(text, "https://", 8) == 0;
    struct str rest = str_of(text), authority, host, port, prefix;
    uint64_t number = tls ? 443 : 80;

    if (strncmp(text, "unix:", 5) == 0)
        return parse_unix(text, ret, e);
    if (!tls && strncmp(text, "http://", 7) != 0)
        return bad(text, "it does not start with http://, https:// or unix:", e);
    if (!is_printable(rest) || str_index(rest, '?') >= 0 || str_index(rest, '#') >= 0)
        return bad(text, "it must not contain a space, '?' or '#'", e);
    authority = str_cut(str_skip(rest, tls ? 8 : 7), '/', &rest);
    if (str_index(authority, '@') >= 0)
        return bad(text, "a user name does not belong there; tokens go into HOLT_TOKEN", e);
    if (!split_authority(authority, &host, &port))
        return bad(text, "it has no host", e);
    if (port.n > 0 && (str_parse_u64(port, &number) < 0 || number < 1 || number > 65535))
        return bad(text, "a port is a number from 1 to 65535", e);
    prefix = rest;
    while (prefix.n > 0 && prefix.p[prefix.n - 1] == '/')
        prefix.n--;
    *ret = (struct client_url){
        .tls = tls,
        .host = str_dup(host),
        .port = (int)number,
        .prefix = prefix.n ? xasprintf("/" STR_FMT, STR_ARG(prefix)) : xstrdup(""),
        .authority = str_dup(authority),
    };
    return 0;
}

void client_url_done(struct client_url *u)
{
    mem_free(u->host);
    mem_free(u->path);
    mem_free(u->prefix);
    mem_free(u->authority);
    *u = (struct client_url){0};
}
