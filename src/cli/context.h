/* context: named servers in ~/.config/holt/contexts.json (0600, replaced atomically), and the
 * choice of the server for a command.
 * A token is only sent to the server it belongs to: a context's token to that context's server, the
 * local admin token to a loopback or Unix server. */
#pragma once

#include "base/err.h"
#include "cli/cli.h"

#define CONTEXT_SERVER_DEFAULT "http://127.0.0.1:8122"

/* {"current": NAME or null, "contexts": {NAME: {"server", "token", "cacert"}}} */
CHECKED int contexts_read(json_t **ret, struct err *e); /* an absent file is an empty set */
CHECKED int contexts_write(const json_t *all, struct err *e);
char *contexts_path(void); /* heap; NULL: no home directory */

struct target { /* owns its texts */
    char *server;
    char *token;        /* NULL: none */
    char *cacert;       /* NULL: the system's authorities */
    const char *chosen; /* the source of the choice, for messages and `holt status` */
};

CHECKED int target_choose(const struct cli *c, struct target *ret, struct err *e);
void target_done(struct target *t);
static inline UNUSED void target_done_p(struct target *t)
{
    target_done(t);
}
/* Whether the server is on this machine: 127/8, ::1, localhost, unix. */
bool server_is_local(const char *server);
/* The state directory of this user's holtd: HOLT_STATE, else the settings' default. */
char *state_dir(void); /* heap */
