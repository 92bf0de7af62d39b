/* ssh_session: one record per SSH connection into a sandbox: who, from where, how long, how much;
 * and the loopback port of each sandbox.  The bytes are relayed elsewhere (api/share/ssh_door.h).
 * Records are kept for a week, SSH_SESSIONS_MAX at most; connections that were refused go first.
 * Ownership: the registry's; a record is borrowed until the loop turns, one that has not ended
 * until ssh_session_end.  Thread: the loop's. */
#pragma once

#include "core/access/access.h"

#define SSH_SESSIONS_MAX 10000

struct ssh_sessions;
struct ssh_session;

enum ssh_session_state { SSH_CONNECTING, SSH_ACTIVE, SSH_ENDED, SSH_REFUSED };

struct ssh_session_info {
    const char *id;
    struct str sandbox, owner, tenant, peer, certificate, holder, person, username, reason;
    int64_t serial, started_ms, ended_ms, bytes_in, bytes_out; /* ended_ms 0: it goes on */
    enum ssh_session_state state;
};

/* Reads the rows.  Blocking: at start-up only.  Sessions of an earlier holtd have ended. */
CHECKED int ssh_sessions_open(struct store *store, struct ssh_sessions **ret, struct err *e);
struct ssh_sessions *ssh_sessions_free(struct ssh_sessions *l); /* takes NULL; returns NULL */

struct ssh_session *ssh_session_begin(struct ssh_sessions *l, const struct sandbox_info *s,
                                      const char *peer);
/* Its sshd has accepted a certificate, for a user inside. */
void ssh_session_accept(struct ssh_session *s, const struct certificate_info *c, struct str person,
                        struct str username);
void ssh_session_count(struct ssh_session *s, size_t in, size_t out);
void ssh_session_end(struct ssh_session *s, const char *reason); /* NULL: the client left */
void ssh_session_info(const struct ssh_session *s, struct ssh_session_info *ret);
/* Those of sandboxes that the caller may see, in order of id; NULL at the end. */
const struct ssh_session *ssh_session_next(struct ssh_sessions *l, const struct principal *by,
                                           struct str after);
void ssh_sessions_tick(struct ssh_sessions *l); /* now and then: forgets old ones */

/* --- ports --- */

#define SSH_PORTS_MAX 4096
/* The sandbox after this id that has a port; NULL at the end. */
const char *ssh_port_next(struct ssh_sessions *l, struct str after, int *ret_port);
void ssh_port_keep(struct ssh_sessions *l, const char *sandbox, int port); /* 0: none any more */
