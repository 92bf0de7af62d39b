/* grant: a person's leave for an action: for one exact action (the hash of its operation and
 * arguments) and one use, or wider, as that person said: for a while, for a sandbox, for what a
 * pattern matches.  It belongs to the asker of its approval and to nobody else.  Every change is an
 * event ("grant.made", "grant.used", "grant.revoked"); its expiry is none.
 * Thread, ownership, errors: core/team/team.h. */
#pragma once

#include "core/team/team.h"

#define GRANT_HASH 65                      /* hex digits of SHA-256 and a NUL */
#define GRANT_ONCE_MS (24LL * 3600 * 1000) /* an exact grant waits this long for its use */
#define GRANT_WIDE_MS (3600LL * 1000)      /* a wider one, unless the person says otherwise */
#define GRANT_MAX_MS (30LL * 24 * 3600 * 1000)

struct grant {
    struct str id, approval, asker, operation;
    struct str hash;    /* empty: any arguments, within sandbox and pattern */
    struct str sandbox; /* empty: any */
    struct str pattern; /* of the command line or path; empty: any */
    int64_t uses;       /* left; -1: any number */
    int64_t used;
    int64_t expires_ms, created_ms;
    struct str created_by;
};
struct grant_list {
    struct grant *v;
    size_t n;
};

struct grant_action { /* what somebody wants to do */
    struct str asker, operation, hash;
    struct str sandbox; /* empty: none */
    struct str text;    /* the command line or path; empty: none */
};

/* The hash of an operation and its arguments, which are a JSON object: its keys are sorted. */
void grant_hash(struct str operation, const json_t *arguments, char ret[GRANT_HASH]);
/* The live ones, oldest first; after: an id. */
CHECKED int grant_all(struct team *t, struct str after, int64_t limit, struct grant_list *ret,
                      struct err *e);
CHECKED int grant_revoke(struct team *t, struct str id, struct err *e);
/* Uses a grant for this action: 1, and it is counted; 0: there is none. */
CHECKED int grant_use(struct team *t, const struct grant_action *a, struct grant *ret,
                      struct err *e);
