/* publish: private to src/api: publishes a playbook for a request, by the settings 'publish_*'. */
#pragma once

#include "api/request.h"
#include "core/playbook/publish.h"

struct playbook;

struct publish_request { /* valid during the call */
    struct playbook *playbook;
    struct str name; /* of the branch behind "holt/"; empty: the playbook's */
    struct str message;
    const struct str *reviewers;
    size_t reviewer_count;
};
struct published { /* in the callback */
    struct str remote, branch, path;
    const struct publish_result *result;
};
/* r: NULL if its client is gone. */
typedef void (*published_fn)(struct request *r, const struct published *p, const struct err *e);
/* 1: no remote is set; -1: *e; 0: the request waits, and done replies. */
CHECKED int publish_begin(struct request *r, const struct publish_request *q, published_fn done,
                          struct err *e);
