/* banner: the text for people when holtd has started: its addresses, how to log in, what to try.
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
/* At the end: what keeps running without holtd, and how to end that too. */
void banner_goodbye(const struct config *conf, size_t sandboxes);
