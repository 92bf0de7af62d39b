/* request: one request to the chosen server, from start to end, with its errors in words for
 * people.
 * Blocking: runs a loop of its own. */
#pragma once

#include "base/buf.h"
#include "cli/context.h"
#include "net/client.h"

#define REQUEST_CONNECT_MS 10000
#define REQUEST_HEADERS 6
#define REPLY_MAX (64 * 1024 * 1024) /* of a collected body */

struct request {
    const char *method;
    const char *target; /* path and query, encoded */
    const char *accept; /* NULL: JSON */
    struct str body;    /* JSON, or empty */
    const char *type;   /* of the body; NULL: JSON */
    /* A streamed body: adds a part; 1: more follows, 0: that was the end, -1: *e has the reason. */
    int (*feed)(void *arg, struct buf *to, struct err *e);
    bool creates;           /* send an Idempotency-Key */
    const char *last_event; /* Last-Event-ID, or NULL */
    /* A streamed reply: called with each part of a successful reply; non-zero ends the
     * request.  NULL: the body is collected. */
    int (*part)(void *arg, struct str bytes);
    void *arg;
    int64_t timeout_ms; /* without progress; 0: none */
    int64_t connect_ms; /* 0: REQUEST_CONNECT_MS */
};

struct reply {
    int status;
    struct buf body;
};

/* An error reply is an error here too, with the server's code, message, object and hint.
 * 1: the callback ended a streamed reply. */
CHECKED int request_run(const struct target *t, const struct request *rq, struct reply *ret,
                        struct err *e);
/* A thread still waits for a name server: leave by _exit, which does not wait for it. */
bool request_abandoned(void);
CHECKED int reply_json(const struct reply *r, json_t **ret, struct err *e);
static inline UNUSED void reply_done_p(struct reply *r)
{
    buf_done(&r->body);
}

/* --- for other ways to talk to the server --- */

struct request_headers { /* identify the client: agent and token */
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
void request_loop_end(uv_loop_t *loop); /* a loop with a lookup in progress is abandoned */
/* All return -1 with *e in words for people: a connection's error; an error reply; an error
 * object. */
int request_failed(const struct target *t, const char *method, const char *path, struct err *e);
int request_refused(const struct target *t, int status, struct str body, struct err *e);
int request_error(const json_t *error, struct err *e);
