/* http1: HTTP/1.1 messages (RFC 9112) without I/O: finds the end of a head, parses it, removes the
 * framing of its body.  Strict: refuses everything that two parsers could read differently, so that
 * no proxy before us can disagree about where a request ends.
 * The outcome does not depend on how the input is split.
 * Errors: minus the HTTP status to reply with; *e has the reason. */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "proto/http.h"

struct http1_limits {
    size_t head_max;  /* bytes of a head */
    size_t count_max; /* fields of a head */
};

/* Finds the end of a head in growing input; zero-initialise it for each message. */
struct http1_scan {
    size_t at;    /* bytes seen; with the result 1, the length of the head */
    size_t line;  /* where the current line starts */
    size_t lines; /* complete lines */
    size_t skip;  /* length of an empty line before the message, RFC 9112 section 2.2 */
};

/* in: everything from the message's start.  1: the head is complete; 0: call again with more
 * bytes. */
int http1_scan(struct http1_scan *s, struct str in, const struct http1_limits *l, struct err *e)
    CHECKED;

enum http1_framing { HTTP1_NO_BODY, HTTP1_LENGTH, HTTP1_CHUNKED, HTTP1_UNTIL_CLOSE };

struct http1_request {
    struct http_req req;
    enum http1_framing framing;
    bool keep_alive;      /* keep the connection, as the peer requests */
    bool expect_continue; /* the client waits for 100 before it sends the body */
    bool wants_upgrade;   /* Connection: upgrade */
};

/* Parses the head that http1_scan found in `in`.  Views point into a copy in the arena. */
int http1_request(const struct http1_scan *s, struct str in, struct arena *a,
                  struct http1_request *ret, struct err *e) CHECKED;

/* The same for a proxy: accepts CONNECT, whose target is an authority; any other target must be an
 * absolute http URL. */
int http1_proxy_request(const struct http1_scan *s, struct str in, struct arena *a,
                        struct http1_request *ret, struct err *e) CHECKED;

struct http1_response {
    enum http_version version;
    int status;
    struct str reason;
    struct http_header *headers;
    size_t header_count;
    int64_t content_length; /* or HTTP_LENGTH_UNKNOWN */
    enum http1_framing framing;
    bool keep_alive;
};

/* head_only: the reply to a HEAD request, which has no body. */
int http1_response(const struct http1_scan *s, struct str in, bool head_only, struct arena *a,
                   struct http1_response *ret, struct err *e) CHECKED;

#define HTTP1_CHUNK_LINE_MAX 256 /* a chunk's size and extensions */
#define HTTP1_TRAILERS_MAX 8192  /* bytes */
#define HTTP1_TRAILERS_COUNT_MAX 64

/* Removes the framing of a body.  Initialised by http1_body_init; http1_body_done frees. */
struct http1_body {
    enum http1_framing framing;
    int state;
    uint64_t left;       /* of the length, or of this chunk */
    size_t line;         /* bytes of this chunk's line so far */
    struct buf trailers; /* raw lines, empty without any */
};

void http1_body_init(struct http1_body *b, enum http1_framing framing, int64_t length);
void http1_body_done(struct http1_body *b);
static inline UNUSED void http1_body_done_p(struct http1_body *b)
{
    http1_body_done(b);
}
/* Consumes *ret_used bytes of in; *ret_part (in place, maybe empty) is the content among them.
 * 1: the body is complete; 0: call again with the rest, or with more. */
int http1_body_next(struct http1_body *b, struct str in, size_t *ret_used, struct str *ret_part,
                    struct err *e) CHECKED;
bool http1_body_is_complete(const struct http1_body *b);
/* The trailer fields of a complete chunked body, in the arena. */
int http1_body_trailers(const struct http1_body *b, struct arena *a, struct http_header **ret,
                        size_t *ret_count, struct err *e) CHECKED;

/* Whether these are allowed in a head.  A field name is a token; a value has no control characters
 * but tab. */
bool http1_is_name(struct str s);
bool http1_is_value(struct str s);
