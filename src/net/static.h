/* static: replies whose bytes are a file's, with ETag, If-None-Match, single byte ranges, If-Range
 * and HEAD (RFC 9110 sections 8.8.3, 13, 14).
 * Takes the exchange over and always answers it.  Files are read by worker threads, a piece at a
 * time as the peer takes it.  Thread: the loop's. */
#pragma once

#include "net/xchg.h"

struct static_info {
    const char *type;                    /* content-type */
    const char *cache;                   /* cache-control, or NULL */
    const char *etag;                    /* with its quotes; NULL: made of size and time */
    void (*ended)(void *arg, bool done); /* the exchange has closed; may be NULL */
    void *arg;
};

/* fd is taken over; the info's texts stay valid until the exchange has ended. */
void static_fd(struct xchg *x, int fd, const struct static_info *i);

enum static_range { RANGE_NONE, RANGE_OK, RANGE_BAD };
/* Reads a Range header for an object of that size: NONE when it is to be ignored (absent, not of
 * this form, several ranges), BAD when nothing of it lies within the object. */
enum static_range static_parse_range(struct str value, int64_t size, int64_t *ret_start,
                                     int64_t *ret_length);
