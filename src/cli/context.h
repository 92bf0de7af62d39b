/* context: named servers in ~/.config/holt/contexts.json (0600, replaced atomically), and the
 * choice of the one that a command talks to.
 * A token never goes to a server it was not given for: a context's token is used with that
 * context's server only, the local admin token with a loopback or Unix server only. */
#pragma once

#include "base/err.h"
#include "cli/cli.h"

#define CONTEXT_SERVER_DEFAULT "http://127.0.0.1:8122"

/* {"current": NAME or null, "contexts": {NAME: {"server", "token", "cacert"}}} */
CHECKED int contexts_read(json_t **ret, struct err *e); /* an absent file is an empty set */
CHECKED int contexts_write(const json_t *all, struct err *e);
char *contexts_path(void); /* heap; NULL: no home directory */

struct target { /* texts are owned */
    char *server;
    char *token;        /* NULL: none */
    char *cacert;       /* NULL: the system's authorities */
    const char *chosen; /* by what: for messages and `holt status` */
};

CHECKED int target_choose(const struct cli *c, struct target *ret, struct err *e);
void target_done(struct target *t);
static inline UNUSED void target_done_p(struct target *t)
{
    target_done(t);
}
/* Nobody from outside can be at the other end: 127/8, ::1, localhost, unix. */
bool server_is_local(const char *server);
/* The state directory a holtd of this user would have: HOLT_STATE, else the settings' default. */
char *state_dir(void); /* heap */
