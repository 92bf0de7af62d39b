/* account: which user of the system one of our processes runs as.  Errors: -errno. */
#pragma once

#include "base/macro.h"

#include <sys/types.h>

/* Where the system has no such users: below the ids of stored files (wire/spawn.h), above those of
 * people, of packages and of subordinate ranges.  See docs/hardening.md. */
#define ACCOUNT_HOLT 999990U
#define ACCOUNT_EGRESS 999991U

struct account {
    uid_t uid;
    gid_t gid;
};
/* `said` is a name or a number; empty: the user `preset`, or the number `otherwise` if the system
 * has none.  -ENOENT: there is no such user. */
CHECKED int account_find(const char *said, const char *preset, uid_t otherwise,
                         struct account *ret);
