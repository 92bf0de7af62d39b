/* publish: commits a file and pushes it to a git remote, on a branch of its own, for people to
 * review.  git runs in a throw-away sandbox that reaches the remote's host alone; a password is a
 * secret (core/network/secret.h), which holt-egress fills in.
 * Ownership: a publication frees itself after done.  Thread: the loop's. */
#pragma once

#include "base/err.h"
#include "base/str.h"

struct sandboxes;

struct publish_spec {        /* valid during the call */
    struct str url;          /* of the remote: http or https */
    struct str base, branch; /* branch begins where base is, unless it is there already */
    struct str user, secret; /* secret: its name; empty: no password */
    struct str author, email;
    struct str path;    /* of the file, in the repository */
    struct str content; /* of the file */
    struct str message; /* of the commit */
};
struct publish_result {
    struct str commit; /* its id */
    bool changed;      /* false: the branch had this file already */
};
typedef void (*publish_done)(void *arg, const struct publish_result *r, const struct err *e);
/* Whether git can be asked to push there. */
CHECKED int publish_check_url(struct str url, struct err *e);
/* -1 with *e, and done is not called; or 0, and it is called later. */
CHECKED int publish(struct sandboxes *l, const struct publish_spec *s, publish_done done, void *arg,
                    struct err *e);
