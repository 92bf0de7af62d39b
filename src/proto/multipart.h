/* multipart: multipart/form-data (RFC 7578, RFC 2046 section 5.1) without I/O: bytes in, parts out.
 * Strict: every line ends with CRLF, each part has one Content-Disposition of form-data with a
 * name, nothing is encoded.  The outcome does not depend on how the input is split.  It holds the
 * input not yet consumed, and one part's head.
 * Ownership: multipart_done frees; views are valid until the next call.  Errors: -1 with *e set. */
#pragma once

#include "base/buf.h"
#include "base/err.h"

#define MULTIPART_BOUNDARY_MAX 70 /* RFC 2046 section 5.1.1 */
#define MULTIPART_HEAD_MAX 8192   /* bytes of a part's head, and of the preamble */
#define MULTIPART_PARTS_MAX 64

enum multipart_event {
    MULTIPART_MORE,     /* needs more input */
    MULTIPART_PART,     /* a part begins: name, filename */
    MULTIPART_DATA,     /* some of its bytes */
    MULTIPART_PART_END, /* the part is complete */
    MULTIPART_END,      /* the last part was complete; ignore what follows */
};

struct multipart {
    char delimiter[MULTIPART_BOUNDARY_MAX + 4]; /* CRLF "--" boundary; no NUL */
    size_t delimiter_len;
    int state;
    size_t parts;
    struct buf in;   /* input */
    size_t used;     /* bytes of `in` used by the previous event */
    struct buf head; /* the part's head, which the views point into */
    struct str name;
    struct str filename; /* p is NULL: a field, not a file */
    struct str data;
};

/* Begins, with the boundary of a Content-Type. */
CHECKED int multipart_init(struct multipart *m, struct str content_type, struct err *e);
void multipart_done(struct multipart *m);
void multipart_feed(struct multipart *m, struct str bytes);
bool multipart_has_ended(const struct multipart *m); /* MULTIPART_END was returned */
CHECKED int multipart_next(struct multipart *m, enum multipart_event *ret, struct err *e);
