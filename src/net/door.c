/* door: a listener whose connections are given away. */
#include "net/door.h"

#include "base/log.h"
#include "base/mem.h"
#include "net/conn.h"
#include "net/listener.h"

struct door {
    struct server *server;
    struct listener *l;
    door_accepted accepted;
    void *arg;
};

static void connection_waits(struct listener *l)
{
    struct door *d = l->arg;
    struct err e = {0};
    struct stream *s = stream_accept(server_streams(d->server), &l->h.stream, NULL, &e);

    if (s)
        d->accepted(d->arg, s);
    else
        log_warn("a connection could not be accepted", LOG_E(&e));
}

int door_open(struct server *s, const char *address, door_accepted accepted, void *arg,
              struct door **ret, struct err *e)
{
    struct door *d = xzalloc(sizeof *d);

    *d = (struct door){.server = s, .accepted = accepted, .arg = arg};
    if (listener_new(server_loop(s), address, connection_waits, d, &d->l, e) < 0) {
        mem_free(d);
        return -1;
    }
    *ret = d;
    return 0;
}

int door_port(const struct door *d)
{
    return d->l->info.port;
}

static void listener_closed(struct listener *l)
{
    mem_free(l->arg);
    listener_free(l);
}

void door_close(struct door *d)
{
    if (d)
        listener_close(d->l, listener_closed);
}
