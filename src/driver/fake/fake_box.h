/* fake_box: one sandbox of the fake driver: a directory and a process, without isolation.
 * DIR/ID holds init.sock, meta (pid, start time, confirmed, installation) and root/, init's working
 * directory.  A pid alone names nothing for long: with its start time, and a pidfd, it does.
 * Errors: -1 with *e set, or -errno where there is no *e. */
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

struct box_home { /* where the boxes are */
    int dir;
    const char *installation;
    const char *init; /* the program */
};

/* Makes it anew, or with `again` on the files of an earlier life.  After a failure nothing is left
 * that was not there before. */
CHECKED int box_start(const struct box_home *h, bool again, struct box *b, struct err *e);
/* Reads what is there.  ERR_NOT_FOUND: nothing, or another installation's. */
CHECKED int box_load(const struct box_home *h, const char *id, struct box *ret, struct err *e);
CHECKED int box_save(const struct box_home *h, const struct box *b);
int box_connect(const struct box_home *h, const char *id); /* a non-blocking socket, or -errno */
/* Kills what runs; true: a look found nothing more.  `patient`: init may still reap. */
bool box_kill(struct box *b, enum driver_scope scope, bool patient);
/* Its end: 1, with its status where we are its parent (else *ret_known is false); 0: it lives. */
int box_reap(struct box *b, int *ret_status, bool *ret_known);
void box_done(struct box *b);
CHECKED int box_pause(struct box *b, bool on, struct err *e);
CHECKED int box_stats(const struct box_home *h, const struct box *b, struct driver_stats *ret,
                      struct err *e);
