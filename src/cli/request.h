/* request: one request to the chosen server, from start to end, and its errors in words for people.
 * Blocking: runs a loop of its own. */
#pragma once

#include "base/buf.h"
#include "cli/context.h"

#define REPLY_MAX (64 * 1024 * 1024) /* of a body that is kept */

struct request {
    const char *method;
    const char *target;     /* path and query, encoded */
    const char *accept;     /* NULL: JSON */
    struct str body;        /* JSON, or empty */
    bool creates;           /* gets an Idempotency-Key */
    const char *last_event; /* Last-Event-ID, or NULL */
    /* A streamed reply: called with each part of a success; non-zero ends the request.  NULL: the
     * body is kept. */
    int (*part)(void *arg, struct str bytes);
    void *arg;
    int64_t timeout_ms; /* without progress; 0: none */
};

struct reply {
    int status;
    struct buf body;
};

/* A reply that is an error is one here too, with the server's code, message, object and hint.
 * 1: a streamed reply was ended by its callback. */
CHECKED int request_run(const struct target *t, const struct request *rq, struct reply *ret,
                        struct err *e);
/* A thread of ours still waits for a name server: leave by _exit, or the program waits for it. */
bool request_abandoned(void);
CHECKED int reply_json(const struct reply *r, json_t **ret, struct err *e);
static inline UNUSED void reply_done_p(struct reply *r)
{
    buf_done(&r->body);
}
