/* err: the error value.  Fixed size, no heap: it works after clone() and in a child before exec.
 * A failing function returns -1 and has set *e; a function logs or returns an error, never
 * both.  Code that crosses a module border wraps the error with what it was doing: "open store 'x':
 * disk is full".  Thread: values, no shared state. */
#pragma once

#include <stdint.h>

#include "base/macro.h"

enum err_code {
    ERR_NONE,
    ERR_INVALID,         /* the request is malformed or a field is out of range */
    ERR_UNAUTHENTICATED, /* not authenticated: no token, or a wrong one */
    ERR_FORBIDDEN,       /* authenticated, but not permitted */
    ERR_NOT_FOUND,
    ERR_METHOD,       /* the path exists, the method does not */
    ERR_CONFLICT,     /* the object's state does not allow it, or it exists already */
    ERR_GONE,         /* it existed and has been removed for good */
    ERR_PRECONDITION, /* If-Match and the like failed */
    ERR_TOO_LARGE,    /* a body, message or file over its limit */
    ERR_URI_TOO_LONG,
    ERR_HEADERS_TOO_LARGE,
    ERR_MEDIA_TYPE,
    ERR_RANGE, /* a byte range outside the object */
    ERR_EXPECTATION,
    ERR_LIMIT, /* too many or too fast: retry later */
    ERR_TIMEOUT,
    ERR_CANCELLED,   /* the client disconnected */
    ERR_UNAVAILABLE, /* a component holt depends on does not reply */
    ERR_FULL,        /* out of disk or of a quota */
    ERR_UNSUPPORTED, /* not possible with this build or on this host */
    ERR_INTERNAL,
    ERR_CODE_COUNT
};

struct err {
    enum err_code code;
    int sys; /* errno, or 0 */
    char msg[256];
    char object[96]; /* "token/tk_…", or "" */
    char hint[160];  /* what the user can do, or "" */
    bool is_private; /* msg is for the log: it names what clients should not learn */
};

struct err_info {
    const char *name; /* as in {"error": {"code": …}} */
    int http;         /* HTTP status */
    int grpc;         /* grpc-status */
    int exit;         /* exit status of the command line */
    bool retry;       /* the same request may succeed later */
};
extern const struct err_info err_table[ERR_CODE_COUNT];

/* Both return -1.  With sys, strerror's text is appended.  err_wrap puts its text before the cause.
 */
int err_set(struct err *e, enum err_code code, int sys, const char *fmt, ...) PRINTF_LIKE(4, 5);
int err_wrap(struct err *e, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* Both return -1, for `return err_hint(e, …)`. */
int err_object(struct err *e, const char *kind, const char *id);
int err_hint(struct err *e, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* Marks it private until the next err_set; err_wrap keeps the mark.  Returns -1. */
int err_private(struct err *e);
/* Sets the hint of a refusal by one of our limits: a remedy, and the setting that raises the limit
 * with its value; err_limit_fixed is for limits without a setting.  Both return -1. */
int err_limit(struct err *e, const char *setting, int64_t value, const char *fmt, ...)
    PRINTF_LIKE(4, 5);
int err_limit_fixed(struct err *e, int64_t value, const char *fmt, ...) PRINTF_LIKE(3, 4);

/* The code of this name, or ERR_INTERNAL: for errors received from another process. */
enum err_code err_code_from_name(const char *name);
/* The code for a reply with this HTTP status and no body. */
enum err_code err_code_from_http(int status);
/* ERR_FULL for ENOSPC, ERR_NOT_FOUND for ENOENT and so on; ERR_INTERNAL for the rest. */
enum err_code err_code_from_errno(int sys);
