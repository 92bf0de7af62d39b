/* listen: opens the addresses that holtd serves. */
#include "daemon/daemon_internal.h"

#include "api/dialects/dialect.h"
#include "core/task/share.h"

#include <errno.h>

static bool is_seed_address(const char *address)
{
    if (dialects_want_address(address))
        return true;
    for (size_t i = 0; conf_seed_listen[i]; i++)
        if (strcmp(address, conf_seed_listen[i]) == 0)
            return true;
    return false;
}

static bool is_loopback_port(const char *address)
{
    return conf_is_loopback(address) && !str_starts(str_of(address), STR("unix:"));
}

static bool is_open(const struct server *s, const char *address)
{
    if (str_ends(str_of(address), STR(":0"))) /* another port each time */
        return false;
    for (size_t i = 0; i < server_listener_count(s); i++)
        if (strcmp(server_listener(s, i)->address, address) == 0)
            return true;
    return false;
}

/* A busy port is logged and skipped: the seeds' clients use one or two of them. */
static void listen_if_free(struct daemon *d, const char *address, enum listener_role role)
{
    struct err e = {0};

    if (is_open(d->server, address) || server_listen(d->server, address, role, &e) == 0)
        return;
    if (e.sys == EADDRNOTAVAIL || e.sys == EAFNOSUPPORT) /* a host without IPv6 */
        log_info("this host does not have the address", LOG_C("address", address));
    else
        log_warn("address skipped", LOG_C("address", address), LOG_E(&e));
}

static void listen_for_previews(struct daemon *d)
{
    const struct conf_list *list = &d->conf->preview_listen;
    size_t before = server_listener_count(d->server);

    for (size_t i = 0; i < list->n; i++)
        listen_if_free(d, list->v[i], LISTEN_PREVIEW);
    if (list->n > 0 && server_listener_count(d->server) == before && conf_is_loopback(list->v[0]))
        listen_if_free(d, "127.0.0.1:0", LISTEN_PREVIEW);
}

static int check_auth_off(struct daemon *d, struct err *e)
{
    if (d->conf->auth != CONF_AUTH_OFF)
        return 0;
    for (size_t i = 0; i < server_listener_count(d->server); i++) {
        const struct listener_info *l = server_listener(d->server, i);

        if (l->loopback)
            continue;
        err_set(e, ERR_INVALID, 0, "auth = off, but other machines can reach '%s'", l->address);
        return err_hint(e, "listen on 127.0.0.1 only, or leave auth = token");
    }
    log_warn("AUTH IS OFF: every program and every user of this machine is an admin here");
    return 0;
}

static void listen_on_seed_ports(struct daemon *d)
{
    for (size_t i = 0; dialect_table[i]; i++)
        for (const char *const *a = dialect_table[i]->listen; a && *a; a++)
            listen_if_free(d, *a, LISTEN_SEED);
    for (size_t i = 0; conf_seed_listen[i]; i++)
        listen_if_free(d, conf_seed_listen[i], LISTEN_SEED);
}

/* An address named by a seed's own variable (GRPC_PORT) is like its port: its clients need no
 * token. */
int daemon_listen(struct daemon *d, struct err *e)
{
    for (size_t i = 0; i < d->conf->listen.n; i++) {
        const char *address = d->conf->listen.v[i];
        bool optional = d->conf->listen_optional && d->conf->listen_optional[i];
        bool seed = d->conf->seed_ports &&
                    (is_seed_address(address) || (optional && is_loopback_port(address)));
        enum listener_role role = seed ? LISTEN_SEED : LISTEN_API;

        if (optional)
            listen_if_free(d, address, role);
        else if (server_listen(d->server, address, role, e) < 0)
            return -1;
    }
    if (d->conf->seed_ports)
        listen_on_seed_ports(d);
    if (server_listener_count(d->server) == 0)
        return err_set(e, ERR_INVALID, 0, "there is no address to listen on: set 'listen'");
    listen_for_previews(d);
    return check_auth_off(d, e);
}
