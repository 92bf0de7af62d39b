/* ceiling: limits of what an agent may have: default and maximum limits of its sandboxes, and how
 * many sandboxes, commands and volumes it has at a time; a client inside a sandbox (a relay) counts
 * as an agent.  People are limited only in numbers, so that one cannot take everything; and in sums
 * (quotas), as are tenants and all together.  0 is no limit.  Pure.  Thread: the loop's.  Errors:
 * 0, or -1 with *e set: the requested and the allowed value, and the setting. */
#pragma once

#include "core/identity/identity.h"
#include "core/sandbox/driver.h"

enum ceiling_scope { CEILING_OWNER, CEILING_TENANT, CEILING_ALL, CEILING_SCOPES };
enum ceiling_sum { /* of all sandboxes; cpu and memory: of those that are not off */
                   CEILING_SUM_SANDBOXES,
                   CEILING_SUM_RUNNING,
                   CEILING_SUM_CPU,
                   CEILING_SUM_MEMORY,
                   CEILING_SUM_DISK,
                   CEILING_SUM_TASKS, /* not ended */
                   CEILING_SUMS
};

struct ceilings { /* the settings of these names */
    int64_t agent_memory, agent_memory_max;
    int64_t agent_cpu, agent_cpu_max;
    int64_t agent_pids, agent_pids_max;
    int64_t agent_disk, agent_disk_max;
    int64_t agent_sandboxes, agent_commands, agent_volumes;
    int64_t agent_output; /* bytes of its commands' logs: core/exec/output_share.h */
    int64_t owner_sandboxes, owner_volumes; /* for people */
    int64_t sums[CEILING_SCOPES][CEILING_SUMS];
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

#define CEILING_UNLIMITED INT64_MAX /* asked: without a limit, so that it cannot be counted */
struct ceiling_asked {
    enum ceiling_scope scope;
    enum ceiling_sum sum;
    const char *who; /* the owner or tenant */
    int64_t used, asked;
};
bool ceiling_sums(const struct ceilings *c, enum ceiling_scope scope); /* any is set */
/* ERR_LIMIT with what is used, asked and allowed; ERR_INVALID: it needs a limit of its own. */
CHECKED int ceiling_sum(const struct ceilings *c, const struct ceiling_asked *a, struct err *e);
/* "memory"; its setting, NULL: it has none in this scope. */
const char *ceiling_sum_name(enum ceiling_sum s);
const char *ceiling_sum_setting(enum ceiling_scope scope, enum ceiling_sum s);
