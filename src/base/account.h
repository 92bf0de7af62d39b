/* account: the system user that one of our processes runs as.  Errors: -errno. */
#pragma once

#include "base/macro.h"

#include <sys/types.h>

/* Used where the system has no such users.  Above the ids of people, packages and subordinate
 * ranges, below the ids of stored files (wire/spawn.h).  See docs/hardening.md. */
#define ACCOUNT_HOLT 999990U
#define ACCOUNT_EGRESS 999991U

struct account {
    uid_t uid;
    gid_t gid;
};
/* `said` is a name or a number.  If it is empty: the user `preset`, or the number `otherwise` if
 * the system has no such user.  -ENOENT: there is no such user. */
CHECKED int account_find(const char *said, const char *preset, uid_t otherwise,
                         struct account *ret);
