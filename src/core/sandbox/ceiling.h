/* ceiling: limits of what an agent may have: default and maximum limits of its sandboxes, and how
 * many sandboxes, commands and volumes it has at a time; a client inside a sandbox (a relay) counts
 * as an agent.  People are limited only in numbers, so that one cannot take everything.  0 is no
 * limit.  Pure.  Thread: the loop's.  Errors: 0, or -1 with *e set: the requested and the allowed
 * value, and the setting. */
#pragma once

#include "core/identity/identity.h"
#include "core/sandbox/driver.h"

struct ceilings { /* the settings of these names */
    int64_t agent_memory, agent_memory_max;
    int64_t agent_cpu, agent_cpu_max;
    int64_t agent_pids, agent_pids_max;
    int64_t agent_disk, agent_disk_max;
    int64_t agent_sandboxes, agent_commands, agent_volumes;
    int64_t agent_output; /* bytes of its commands' logs: core/exec/output_share.h */
    int64_t owner_sandboxes, owner_volumes; /* for people */
};

bool ceiling_binds(const struct principal *by);
/* Fills in missing limits and refuses excessive ones. */
CHECKED int ceiling_limits(const struct ceilings *c, const struct principal *by,
                           struct sandbox_limits *l, struct err *e);
/* Checks another requested size: of a mount, of a volume in memory. */
CHECKED int ceiling_disk(const struct ceilings *c, const struct principal *by, const char *field,
                         int64_t bytes, struct err *e);
CHECKED int ceiling_memory(const struct ceilings *c, const struct principal *by, const char *field,
                           int64_t bytes, struct err *e);

enum ceiling_kind { CEILING_SANDBOXES, CEILING_COMMANDS, CEILING_VOLUMES };
/* Whether it may have one more than this many. */
CHECKED int ceiling_count(const struct ceilings *c, const struct principal *by,
                          enum ceiling_kind kind, size_t has, struct err *e);
bool ceiling_counts(const struct ceilings *c, const struct principal *by,
                    enum ceiling_kind kind); /* false: it need not be counted */
