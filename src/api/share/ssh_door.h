/* ssh_door: private to src/api: SSH into sandboxes.  Each sandbox that was asked for has a port of
 * its own on loopback; each connection there gets an sshd inside (core/access/sshd.h), and its
 * bytes are passed on unread.  A session ends with its certificate, within CHECK_MS. Thread: the
 * loop's. */
#pragma once

#include "api/request.h"

struct ssh_doors *ssh_doors_new(struct api *a);
struct ssh_doors *ssh_doors_free(struct ssh_doors *l); /* takes NULL; returns NULL */
void ssh_doors_tick(
    struct ssh_doors *l); /* once a second: ports of an earlier holtd, and of late sandboxes */
void ssh_doors_check(struct ssh_doors *l); /* ends the sessions that lost their certificate */
void ssh_doors_end(struct ssh_doors *l);   /* the daemon is shutting down */
/* The sandbox's port, opened if it was not; < 0: *e has the reason. */
CHECKED int ssh_door_need(struct ssh_doors *l, struct sandbox *s, struct err *e);
bool ssh_door_close(struct ssh_doors *l, const char *sandbox); /* false: it had none */
