/* fake_box: one sandbox of the fake driver: a directory and a process, without isolation.
 * DIR/ID holds init.sock, meta (pid, start time, confirmed, installation) and root/, init's working
 * directory.  A pid may be reused: it is checked with its start time, and held by a pidfd.
 * Errors: -1 with *e set, or -errno for functions without *e. */
#pragma once

#include "base/err.h"
#include "base/id.h"
#include "core/sandbox/driver.h"

#include <sys/types.h>

struct box {
    char id[ID_SIZE];
    pid_t pid; /* of init; 0: it has ended */
    uint64_t start;
    int pidfd;
    bool confirmed;
};

struct box_home { /* the directory of the boxes */
    int dir;
    const char *installation;
    const char *init; /* the program */
};

/* Makes it, or with `again` uses the files of an earlier run.  After a failure nothing new is
 * left. */
CHECKED int box_start(const struct box_home *h, bool again, struct box *b, struct err *e);
/* Reads its state.  ERR_NOT_FOUND: there is none, or it is another installation's. */
CHECKED int box_load(const struct box_home *h, const char *id, struct box *ret, struct err *e);
CHECKED int box_save(const struct box_home *h, const struct box *b);
int box_connect(const struct box_home *h, const char *id); /* a non-blocking socket, or -errno */
/* Kills its processes; true: no process was found.  `patient`: init may still reap. */
bool box_kill(struct box *b, enum driver_scope scope, bool patient);
/* Whether it has ended: 1, with its status if we are its parent (else *ret_known is false); 0: it
 * is alive. */
int box_reap(struct box *b, int *ret_status, bool *ret_known);
void box_done(struct box *b);
CHECKED int box_pause(struct box *b, bool on, struct err *e);
CHECKED int box_stats(const struct box_home *h, const struct box *b, struct driver_stats *ret,
                      struct err *e);
