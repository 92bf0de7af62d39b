/* session: joins a command inside a sandbox to the descriptors of this process, by an attach
 * WebSocket (docs/protocol-attach.md).  Standard input, output and error pass through byte for
 * byte, signals are forwarded, a terminal becomes raw while the command has one.
 * Blocking: runs a loop of its own. */
#pragma once

#include "cli/context.h"
#include "cli/detach.h"

struct session_spec {
    const char *target;    /* path and query of the WebSocket */
    struct str first;      /* the first message, JSON; empty: none */
    bool input;            /* read standard input */
    bool tty;              /* the command has a terminal */
    bool owns;             /* the command ends with this process … */
    bool kills;            /* … by a signal: it does not end with the connection */
    bool observes;         /* read-only */
    struct detach detach;  /* with tty */
    const json_t *made_by; /* the command line's arguments if this makes the sandbox; or NULL */
};

enum session_how { SESSION_EXITED, SESSION_DETACHED, SESSION_CUT, SESSION_PIPE };

struct session_end {
    enum session_how how;
    int status;   /* for the shell: the command's, 128 + n for a signal */
    json_t *exec; /* owned; NULL: not received */
};
static inline UNUSED void session_end_p(struct session_end *e)
{
    json_decref(e->exec);
}

CHECKED int session_run(const struct target *t, const struct session_spec *s,
                        struct session_end *ret, struct err *e);
/* The status a shell would report for an ended command, as decided by the daemon; -1: the exec
 * object has none. */
int session_status(const json_t *exec);
