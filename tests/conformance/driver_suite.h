/* driver_suite: what every driver must do, seen through core/sandbox/driver.h and link/guest.h
 * alone. */
#pragma once

#include "core/sandbox/driver.h"

struct driver_suite {
    const struct driver_ops *ops;
    const char *bindir;
    /* A path inside, of a file that a stop keeps. */
    void (*kept_path)(const char *state, const char *id, char *to, size_t size);
    const struct driver_host *host;         /* with DRIVER_HAS_HOSTS: where */
    const char *pool_dir;                   /* where it leaves files besides the state, or NULL */
    int64_t memory_bytes;                   /* of each sandbox; 0: none is asked for */
    int many;                               /* sandboxes at once; 0: fifty */
    bool keyed;                             /* what it makes ahead has its limits for good */
    bool inside;                            /* its processes are no processes of the host */
    bool counts;                            /* stats tell of processes, memory and time */
    void (*prepare)(const char *state);     /* what it needs there, before it is opened; or NULL */
    void (*kill_helper)(const char *state); /* kills its helper process, or NULL: it has none */
    void (*leave)(const char *state);       /* ends what outlives a driver on purpose, or NULL */
};

int driver_suite_run(const struct driver_suite *s); /* how many tests failed */
