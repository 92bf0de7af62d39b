/* multipart: multipart/form-data (RFC 7578, RFC 2046 section 5.1) without I/O: bytes in, parts out.
 * Strict: every line ends with CRLF, each part has one Content-Disposition of form-data with a
 * name, nothing is encoded.  Splitting the input anywhere changes nothing of the outcome.  It holds
 * as much as was fed and not asked for, and one part's head.
 * Ownership: multipart_done frees; views are valid until the next call.  Errors: -1 with *e set. */
#pragma once

#include "base/buf.h"
#include "base/err.h"

#define MULTIPART_BOUNDARY_MAX 70 /* RFC 2046 section 5.1.1 */
#define MULTIPART_HEAD_MAX 8192   /* bytes of a part's head, and of what stands before the first */
#define MULTIPART_PARTS_MAX 64

enum multipart_event {
    MULTIPART_MORE,     /* nothing until more is fed */
    MULTIPART_PART,     /* a part begins: name, filename */
    MULTIPART_DATA,     /* some of its bytes */
    MULTIPART_PART_END, /* it is whole */
    MULTIPART_END,      /* the last part was whole; what follows does not count */
};

struct multipart {
    char delimiter[MULTIPART_BOUNDARY_MAX + 4]; /* CRLF "--" boundary; no NUL */
    size_t delimiter_len;
    int state;
    size_t parts;
    struct buf in;   /* fed */
    size_t used;     /* of in, by the event before */
    struct buf head; /* the part's, which the views point into */
    struct str name;
    struct str filename; /* p is NULL: a field, not a file */
    struct str data;
};

/* Begins, with the boundary of a Content-Type. */
CHECKED int multipart_init(struct multipart *m, struct str content_type, struct err *e);
void multipart_done(struct multipart *m);
void multipart_feed(struct multipart *m, struct str bytes);
bool multipart_has_ended(const struct multipart *m); /* MULTIPART_END has come */
CHECKED int multipart_next(struct multipart *m, enum multipart_event *ret, struct err *e);
