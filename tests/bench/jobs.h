/* jobs: what can be timed: one thing done from its beginning to its end, by holt, the floor or a
 * peer.  Each runs in a worker process of its own (the floor moves through namespaces). */
#pragma once

#include "base/str.h"

struct jobs_config {
    uint16_t port;          /* holtd's */
    const char *token_file; /* and its admin's token */
    uint16_t cold_port;     /* of a holtd that makes nothing ahead; 0: none */
    const char *cold_token_file;
    const char *dir; /* for state, and oci/{run,idle}: bundles of crun and runc */
};

struct job {
    const char *name;
    /* NULL: nothing to prepare.  A failure ends the worker, with its reason on stderr. */
    void (*begin)(void);
    void (*run)(void);
    void (*end)(void);
    void (*after)(void); /* each run, and not timed */
};

extern struct jobs_config jobs_config;
extern const struct job jobs[];
extern const size_t jobs_count;
