/* user: who a command runs as, by the sandbox's own /etc/passwd and /etc/group (read without
 * libc's name service). */
#pragma once

#include "base/err.h"
#include "base/str.h"

#include <sys/types.h>

struct user {
    uid_t uid;
    gid_t gid;
    char home[256];
};

/* "", or a name or uid, and behind a colon a group's name or gid. */
CHECKED int user_find(struct str text, struct user *ret, struct err *e);
