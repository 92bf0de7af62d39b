/* port_proxy: private to src/api: a request passed on to a server inside a sandbox, with its reply,
 * a WebSocket too.  Credentials are not passed in (api/share/port_head.h).  It takes the exchange
 * over and ends when the caller loses its rights. */
#pragma once

#include "api/request.h"

struct guest;

struct port_target {
    struct str name; /* of the sandbox, for errors */
    int port;
    struct str path;   /* for the server inside, as sent, without its first slash */
    struct str prefix; /* our own path before it, hidden from the server inside; may be empty */
};

/* Whether this request may be passed on at all; false: the reply is sent. */
bool port_proxy_check(struct request *r);
/* path and prefix must live as long as the exchange. */
void port_proxy(struct request *r, struct guest *g, const struct port_target *t);
