/* ceiling: how much an agent may have.  Limits that its sandboxes get where it names none, those
 * that it cannot go beyond, and how many sandboxes, commands and volumes it has at a time; who is
 * inside a sandbox (a relay) counts as an agent.  People have a share of all only, so that one
 * cannot take everything.  0 is no limit.  Pure.  Thread: the loop's.  Errors: 0, or -1 with *e
 * set: what is asked, what is allowed, and by which setting. */
#pragma once

#include "core/identity/identity.h"
#include "core/sandbox/driver.h"

struct ceilings { /* as the settings of these names */
    int64_t agent_memory, agent_memory_max;
    int64_t agent_cpu, agent_cpu_max;
    int64_t agent_pids, agent_pids_max;
    int64_t agent_disk, agent_disk_max;
    int64_t agent_sandboxes, agent_commands, agent_volumes;
    int64_t agent_output; /* bytes of its commands' logs: core/exec/output_share.h */
    int64_t owner_sandboxes, owner_volumes; /* of anybody else */
};

bool ceiling_binds(const struct principal *by);
/* Fills in what is absent and refuses what is too much. */
CHECKED int ceiling_limits(const struct ceilings *c, const struct principal *by,
                           struct sandbox_limits *l, struct err *e);
/* A size that is asked for besides: of a mount, of a volume in memory. */
CHECKED int ceiling_disk(const struct ceilings *c, const struct principal *by, const char *field,
                         int64_t bytes, struct err *e);
CHECKED int ceiling_memory(const struct ceilings *c, const struct principal *by, const char *field,
                           int64_t bytes, struct err *e);

enum ceiling_kind { CEILING_SANDBOXES, CEILING_COMMANDS, CEILING_VOLUMES };
/* One more, where it has this many? */
CHECKED int ceiling_count(const struct ceilings *c, const struct principal *by,
                          enum ceiling_kind kind, size_t has, struct err *e);
bool ceiling_counts(const struct ceilings *c, const struct principal *by,
                    enum ceiling_kind kind); /* false: it need not be counted */
