/* scrub: puts placeholders back where values would come through a stream of bytes, in the forms in
 * which values come: bare, base64 of it alone or within other text, hexadecimal; what is neither
 * letter nor digit in any of these may be escaped, as in URLs, JSON and HTML.  Values have no line
 * ends.  Splitting the input anywhere changes nothing of the outcome; up to the longest form's
 * bytes behind the last line end wait for more.  Zero-initialised is empty and lets everything
 * through. scrub_done wipes. */
#pragma once

#include "base/buf.h"

struct scrub_form;
struct scrub {
    struct scrub_form *forms; /* the longest first, once it is indexed */
    size_t count, longest;    /* longest: bytes of a form with all of it escaped */
    size_t hits;              /* how often something was put back */
    bool indexed;
    uint16_t *order; /* of forms, those that start with one byte together */
    struct {
        uint16_t at, n;
    } starts[256];   /* in order, by that byte */
    struct buf held; /* not decided yet */
};

void scrub_add(struct scrub *s, struct str value, struct str placeholder);
void scrub_feed(struct scrub *s, struct str in, struct buf *to);
void scrub_end(struct scrub *s, struct buf *to); /* what was held; ready for another stream */
void scrub_all(struct scrub *s, struct str in, struct buf *to); /* one whole text */
/* Is a value in this text, which may have lost its capitals? */
bool scrub_finds_any_case(const struct scrub *s, struct str text);
void scrub_done(struct scrub *s);
static inline UNUSED void scrub_done_p(struct scrub *s)
{
    scrub_done(s);
}
