/* err: error values with context, and the closed table of codes. */
#include "base/err.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#define LONGEST_WORD 32 /* longer words are cut inside */

/* clang-format off */
const struct err_info err_table[ERR_CODE_COUNT] = {
    /*                          name                 HTTP gRPC exit retry */
    [ERR_NONE]              = {"ok",                 200,  0,  0, false},
    [ERR_INVALID]           = {"invalid",            400,  3,  1, false},
    [ERR_UNAUTHENTICATED]   = {"unauthenticated",    401, 16,  4, false},
    [ERR_FORBIDDEN]         = {"forbidden",          403,  7,  4, false},
    [ERR_NOT_FOUND]         = {"not_found",          404,  5,  2, false},
    [ERR_METHOD]            = {"method_not_allowed", 405, 12,  1, false},
    [ERR_CONFLICT]          = {"conflict",           409,  9,  3, false},
    [ERR_GONE]              = {"gone",               410,  5,  2, false},
    [ERR_PRECONDITION]      = {"precondition",       412,  9,  3, false},
    [ERR_TOO_LARGE]         = {"too_large",          413,  8,  1, false},
    [ERR_URI_TOO_LONG]      = {"uri_too_long",       414,  3,  1, false},
    [ERR_HEADERS_TOO_LARGE] = {"headers_too_large",  431,  8,  1, false},
    [ERR_MEDIA_TYPE]        = {"media_type",         415,  3,  1, false},
    [ERR_RANGE]             = {"range",              416, 11,  1, false},
    [ERR_EXPECTATION]       = {"expectation",        417,  3,  1, false},
    [ERR_LIMIT]             = {"limit",              429,  8,  4, true},
    [ERR_TIMEOUT]           = {"timeout",            504,  4,  5, true},
    [ERR_CANCELLED]         = {"cancelled",          499,  1,  1, false},
    [ERR_UNAVAILABLE]       = {"unavailable",        503, 14,  1, true},
    [ERR_FULL]              = {"full",               507,  8,  1, true},
    [ERR_UNSUPPORTED]       = {"unsupported",        501, 12,  1, false},
    [ERR_INTERNAL]          = {"internal",           500, 13,  1, false},
};
/* clang-format on */

/* Ends a text of n bytes that did not fit with "…", after a whole word or at least a whole
 * character. */
static void mark_cut(char *text, size_t size, int n)
{
    static const char mark[] = "…";
    size_t last = size - sizeof mark, at = last;

    if (n < 0 || (size_t)n < size)
        return;
    while (at > last - LONGEST_WORD && text[at - 1] != ' ')
        at--;
    if (text[at - 1] != ' ')
        for (at = last; (text[at] & 0xC0) == 0x80;) /* inside a character: RFC 3629 */
            at--;
    memcpy(text + at, mark, sizeof mark);
}

/* Appends the cause, if there is one, after the n bytes of text. */
static void add_cause(char *text, size_t size, int n, const char *cause)
{
    if (cause && n >= 0 && (size_t)n < size)
        n += snprintf(text + n, size - (size_t)n, ": %s", cause);
    mark_cut(text, size, n);
}

int err_set(struct err *e, enum err_code code, int sys, const char *fmt, ...)
{
    va_list ap;
    int n;

    assert(e && code > ERR_NONE && code < ERR_CODE_COUNT);
    *e = (struct err){.code = code, .sys = sys};
    va_start(ap, fmt);
    n = vsnprintf(e->msg, sizeof e->msg, fmt, ap);
    va_end(ap);
    add_cause(e->msg, sizeof e->msg, n, sys != 0 ? strerror(sys) : NULL);
    return -1;
}

int err_wrap(struct err *e, const char *fmt, ...)
{
    char cause[sizeof e->msg];
    va_list ap;
    int n;

    assert(e && e->code != ERR_NONE);
    memcpy(cause, e->msg, sizeof cause);
    va_start(ap, fmt);
    n = vsnprintf(e->msg, sizeof e->msg, fmt, ap);
    va_end(ap);
    add_cause(e->msg, sizeof e->msg, n, cause);
    return -1;
}

int err_object(struct err *e, const char *kind, const char *id)
{
    (void)snprintf(e->object, sizeof e->object, "%s/%s", kind, id);
    return -1;
}

int err_hint(struct err *e, const char *fmt, ...)
{
    va_list ap;
    int n;

    va_start(ap, fmt);
    n = vsnprintf(e->hint, sizeof e->hint, fmt, ap);
    va_end(ap);
    mark_cut(e->hint, sizeof e->hint, n);
    return -1;
}

int err_private(struct err *e)
{
    assert(e->code != ERR_NONE);
    e->is_private = true;
    return -1;
}

/* Sets the hint to the remedy (fmt), followed by the limit. */
static int hint_limit(struct err *e, const char *limit, const char *fmt, va_list ap)
{
    char remedy[sizeof e->hint];

    (void)vsnprintf(remedy, sizeof remedy, fmt, ap);
    return err_hint(e, "%s; %s", remedy, limit);
}

int err_limit(struct err *e, const char *setting, int64_t value, const char *fmt, ...)
{
    char limit[96];
    va_list ap;

    (void)snprintf(limit, sizeof limit, "the setting '%s' (%" PRId64 ") is the limit", setting,
                   value);
    va_start(ap, fmt);
    (void)hint_limit(e, limit, fmt, ap);
    va_end(ap);
    return -1;
}

int err_limit_fixed(struct err *e, int64_t value, const char *fmt, ...)
{
    char limit[96];
    va_list ap;

    (void)snprintf(limit, sizeof limit, "the limit of %" PRId64 " is fixed", value);
    va_start(ap, fmt);
    (void)hint_limit(e, limit, fmt, ap);
    va_end(ap);
    return -1;
}

enum err_code err_code_from_name(const char *name)
{
    for (int i = ERR_NONE + 1; i < ERR_CODE_COUNT; i++)
        if (strcmp(err_table[i].name, name) == 0)
            return (enum err_code)i;
    return ERR_INTERNAL;
}

enum err_code err_code_from_http(int status)
{
    for (int i = ERR_NONE + 1; i < ERR_CODE_COUNT; i++)
        if (err_table[i].http == status)
            return (enum err_code)i;
    return status >= 500 ? ERR_INTERNAL : ERR_INVALID;
}

enum err_code err_code_from_errno(int sys)
{
    switch (sys) {
    case ENOSPC:
    case EDQUOT:
        return ERR_FULL;
    case ENOENT:
    case ESRCH:
        return ERR_NOT_FOUND;
    case EACCES:
    case EPERM:
    case EROFS:
        return ERR_FORBIDDEN;
    case EEXIST:
    case EBUSY:
    case EADDRINUSE:
        return ERR_CONFLICT;
    case ETIMEDOUT:
        return ERR_TIMEOUT;
    case EMFILE:
    case ENFILE:
    case ENOMEM:
    case EAGAIN:
        return ERR_LIMIT;
    case ECONNREFUSED:
    case ECONNRESET:
    case EPIPE:
    case EHOSTUNREACH:
    case ENETUNREACH:
        return ERR_UNAVAILABLE;
    default:
        return ERR_INTERNAL;
    }
}
