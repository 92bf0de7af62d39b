/* sshd: one sshd inside a sandbox, for one connection: in inetd mode, so that nothing listens
 * there. Before each start its files are written into the sandbox: the sandbox's own host key, the
 * authority's public key, the list of revoked certificates as it is at that moment.  Nothing that
 * could sign a certificate ever enters.  sshd runs with the rights of the sandbox's root; what it
 * reports is a claim of the sandbox, to be checked by the caller.
 * Life: start; calls of `events`; `ended` is the last one, comes exactly once and never from inside
 * a call, unless sshd_kill came before.  Thread: the loop's. */
#pragma once

#include "core/access/access.h"

struct sshd;

struct sshd_events {
    /* For the client; sshd_took when they are on their way. */
    void (*bytes)(void *arg, struct str bytes);
    void (*room)(void *arg); /* sshd_give took less than offered, and there is room again */
    void (*accepted)(void *arg, int64_t serial, struct str username);
    /* why: of a failure, or sshd's last words; "": none. */
    void (*ended)(void *arg, const char *why);
};

/* id: names its files inside.  NULL: *e has the reason. */
struct sshd *sshd_start(struct access *a, struct sandbox *s, const char *id,
                        const struct sshd_events *events, void *arg, struct err *e);
size_t sshd_give(struct sshd *d, struct str bytes); /* from the client; returns how many it took */
void sshd_eof(struct sshd *d);                      /* the client sends no more */
void sshd_took(struct sshd *d, size_t n);
/* No call after it.  all: kills what the session has started, too; else its daemons stay. */
void sshd_kill(struct sshd *d, bool all);
