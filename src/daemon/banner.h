/* banner: what a person reads when holtd has started: where it listens, how to log in, what to try.
 * On standard output; the log goes to standard error. */
#pragma once

#include "conf/conf.h"
#include "net/server.h"

struct banner {
    const struct config *conf;
    const struct server *server;
    const char *version;
    const char *token_file;
    const char *login_code;
};
void banner_print(const struct banner *b);
/* "http://127.0.0.1:8122", "unix:/run/holt.sock": the address a client uses. */
struct buf;
void banner_url(const struct listener_info *l, struct buf *to);
