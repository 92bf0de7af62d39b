/* banner: the text printed when holtd has started and ended. */
#include "daemon/banner.h"

#include "base/buf.h"
#include "base/fd.h"
#include "base/mem.h"

#include <limits.h>
#include <unistd.h>

/* The host part for a client on this machine: "all addresses" is not one. */
static struct str client_host(struct str address)
{
    size_t n = address.n;

    while (n > 0 && address.p[n - 1] != ':')
        n--;
    address.n = n > 0 ? n - 1 : address.n;
    if (address.n == 0 || str_eq_c(address, "0.0.0.0"))
        return STR("127.0.0.1");
    return str_eq_c(address, "[::]") ? STR("[::1]") : address;
}

/* "http://127.0.0.1:8122", "unix:/run/holt.sock": the address for clients. */
static void banner_url(const struct listener_info *l, struct buf *to)
{
    struct str address = str_of(l->address);
    bool tls = str_starts(address, STR("tls://"));
    struct str host;

    if (tls)
        address = str_skip(address, strlen("tls://"));
    if (str_starts(address, STR("unix:"))) {
        buf_add_str(to, address);
        return;
    }
    host = client_host(address);
    buf_printf(to, "%s://" STR_FMT ":%d", tls ? "https" : "http", STR_ARG(host), l->port);
}

static void add_listeners(struct buf *to, const struct server *s)
{
    static const char *const notes[] = {[LISTEN_API] = "\n",
                                        [LISTEN_SEED] = "  (no token needed)\n",
                                        [LISTEN_RELAY] = "\n",
                                        [LISTEN_PROCESS] = "\n",
                                        [LISTEN_PREVIEW] = "  (previews: holt preview)\n"};

    for (size_t i = 0; i < server_listener_count(s); i++) {
        const struct listener_info *l = server_listener(s, i);

        buf_add_c(to, i == 0 ? "  listening  " : "             ");
        banner_url(l, to);
        buf_add_c(to, notes[l->role]);
    }
}

/* How to call the holt of this holtd: by its name if the shell certainly finds it. */
static void add_command(struct buf *to, const char *args)
{
    char exe[PATH_MAX] = "", here[PATH_MAX] = "";
    ssize_t n = readlink("/proc/self/exe", exe, sizeof exe - 1);
    struct str dir = str_make(exe, n > 0 ? (size_t)n : 0);

    while (dir.n > 0 && dir.p[dir.n - 1] != '/')
        dir.n--;
    if (getcwd(here, sizeof here) && here[1] && str_starts(dir, str_of(here)) &&
        dir.n > strlen(here) && dir.p[strlen(here)] == '/')
        dir = str_skip(dir, strlen(here) + 1);
    if (dir.n == 0)
        dir = STR("./");
    if (str_eq_c(dir, "/usr/bin/") || str_eq_c(dir, "/usr/local/bin/"))
        dir = STR("");
    buf_printf(to, "  " STR_FMT "holt %s\n", STR_ARG(dir), args);
}

/* Whether the holt command finds the token there by itself. */
static bool is_usual_state(const struct config *c)
{
    AUTO(mem_free) char *usual = conf_default_state();

    return strcmp(c->state, usual) == 0;
}

static void add_try(struct buf *to, const struct banner *b, struct str url)
{
    bool off = b->conf->auth == CONF_AUTH_OFF;
    bool server = !str_eq_c(url, "http://127.0.0.1:8122"), token = !is_usual_state(b->conf);

    buf_add_c(to, "\nTry, in another terminal:\n");
    if (server || token)
        buf_add_c(to, "  export");
    if (server)
        buf_printf(to, " HOLT_SERVER=" STR_FMT, STR_ARG(url));
    if (token)
        buf_printf(to, " HOLT_TOKEN=$(cat %s)", b->token_file);
    if (server || token)
        buf_add_char(to, '\n');
    add_command(to, "run -- python3 -c 'print(1)'");
    add_command(to, "create --name box");
    add_command(to, "shell box");
    add_command(to, "events -f");
    if (off)
        buf_printf(to, "  curl " STR_FMT "/holt/v1/info\n", STR_ARG(url));
    else
        buf_printf(to, "  curl -H \"Authorization: Bearer $(cat %s)\" " STR_FMT "/holt/v1/info\n",
                   b->token_file, STR_ARG(url));
}

void banner_print(const struct banner *b)
{
    AUTO(buf_done) struct buf text = {0}, url = {0};

    banner_url(server_listener(b->server, 0), &url);
    buf_printf(&text, "holtd %s is ready.\n", b->version);
    add_listeners(&text, b->server);
    if (!str_starts(buf_str(&url), STR("unix:")))
        buf_printf(&text, "  log in     " STR_FMT "/#login=%s  (works once, for an hour)\n",
                   STR_ARG(buf_str(&url)), b->login_code);
    buf_printf(&text, "  token      %s%s\n", b->token_file,
               is_usual_state(b->conf) ? "  (the holt command reads it)" : "");
    if (b->conf->auth == CONF_AUTH_OFF)
        buf_add_c(&text, "\n  WARNING: auth = off. Every program and every user of this machine is "
                         "an admin here.\n");
    add_try(&text, b, buf_str(&url));
    /* A closed standard output is no reason to stop. */
    if (fd_write_all(STDOUT_FILENO, buf_data(&text), buf_len(&text)) < 0)
        return;
}

void banner_goodbye(const struct config *conf, size_t sandboxes)
{
    AUTO(buf_done) struct buf text = {0};
    AUTO(mem_free)
    char *down = is_usual_state(conf) ? xstrdup("down") : xasprintf("down --state %s", conf->state);

    if (sandboxes == 0) {
        buf_add_c(&text, "\nholtd has ended; no sandbox is running.\n");
    } else {
        buf_printf(&text,
                   "\nholtd has ended. %zu sandbox%s running, with commands and network; the next "
                   "holtd adopts %s.\nTo end %s:\n",
                   sandboxes, sandboxes == 1 ? " is" : "es are", sandboxes == 1 ? "it" : "them",
                   sandboxes == 1 ? "it as well" : "them as well");
        add_command(&text, down);
    }
    (void)!fd_write_all(STDOUT_FILENO, buf_data(&text), buf_len(&text));
}
