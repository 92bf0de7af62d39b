/* user: the user a command runs as, from the sandbox's own /etc/passwd and /etc/group (read without
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

/* "", or a name or uid, with an optional ":" and a group's name or gid. */
CHECKED int user_find(struct str text, struct user *ret, struct err *e);
