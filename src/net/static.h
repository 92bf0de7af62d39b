/* static: replies with the content of a file: ETag, If-None-Match, single byte ranges, If-Range and
 * HEAD (RFC 9110 sections 8.8.3, 13, 14).
 * Takes the exchange over and always replies.  Worker threads read the file, a piece at a time at
 * the peer's pace.  Thread: the loop's. */
#pragma once

#include "net/xchg.h"

struct static_info {
    const char *type;                    /* content-type */
    const char *cache;                   /* cache-control, or NULL */
    const char *etag;                    /* with its quotes; NULL: made from size and time */
    void (*ended)(void *arg, bool done); /* the exchange has closed; may be NULL */
    void *arg;
};

/* Takes fd over; the info's texts must stay valid until the exchange has ended. */
void static_fd(struct xchg *x, int fd, const struct static_info *i);

enum static_range { RANGE_NONE, RANGE_OK, RANGE_BAD };
/* Parses a Range header for an object of that size: NONE to ignore it (absent, another form,
 * several ranges), BAD if the range lies outside the object. */
enum static_range static_parse_range(struct str value, int64_t size, int64_t *ret_start,
                                     int64_t *ret_length);
/* Whether If-None-Match names this tag. */
bool static_etag_matches(struct str list, struct str etag);
