/* request: one request to the chosen server, from start to end, and its errors in words for people.
 * Blocking: runs a loop of its own. */
#pragma once

#include "base/buf.h"
#include "cli/context.h"
#include "net/client.h"

#define REQUEST_CONNECT_MS 10000
#define REQUEST_HEADERS 6
#define REPLY_MAX (64 * 1024 * 1024) /* of a body that is kept */

struct request {
    const char *method;
    const char *target; /* path and query, encoded */
    const char *accept; /* NULL: JSON */
    struct str body;    /* JSON, or empty */
    const char *type;   /* of the body; NULL: JSON */
    /* A streamed body: adds a part; 1: there is more, 0: that was the end, -1: *e says why not. */
    int (*feed)(void *arg, struct buf *to, struct err *e);
    bool creates;           /* gets an Idempotency-Key */
    const char *last_event; /* Last-Event-ID, or NULL */
    /* A streamed reply: called with each part of a success; non-zero ends the request.  NULL: the
     * body is kept. */
    int (*part)(void *arg, struct str bytes);
    void *arg;
    int64_t timeout_ms; /* without progress; 0: none */
    int64_t connect_ms; /* 0: REQUEST_CONNECT_MS */
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

/* --- for who talks to the server in other ways --- */

struct request_headers { /* who asks: agent and token */
    struct http_header v[REQUEST_HEADERS];
    size_t n;
    char key[33], agent[32];
    char *bearer;
};
void request_headers_make(const struct target *t, struct request_headers *h);
void request_headers_done(struct request_headers *h);
static inline UNUSED void request_headers_done_p(struct request_headers *h)
{
    request_headers_done(h);
}
uv_loop_t *request_loop(struct err *e); /* NULL: *e is set */
void request_loop_end(uv_loop_t *loop); /* one with a look-up under way is left behind */
/* All return -1 with *e in words for people: the connection's error; a reply's; an error object. */
int request_failed(const struct target *t, const char *method, const char *path, struct err *e);
int request_refused(const struct target *t, int status, struct str body, struct err *e);
int request_error(const json_t *error, struct err *e);
