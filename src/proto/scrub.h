/* scrub: replaces secret values by their placeholders in a stream of bytes.  It finds a value bare,
 * in base64 (alone or within other text) and in hexadecimal; any byte but letters and digits may be
 * escaped, as in URLs, JSON and HTML.  Values contain no line ends.  The outcome does not depend on
 * how the input is split; up to the longest form's bytes after the last line end are held
 * back.  Zero-initialised is empty and changes nothing.  scrub_done wipes. */
#pragma once

#include "base/buf.h"

struct scrub_form;
struct scrub {
    struct scrub_form *forms; /* the longest first, once indexed */
    size_t count, longest;    /* longest: bytes of the longest form with every byte escaped */
    size_t hits;              /* number of replacements */
    bool indexed;
    uint16_t *order; /* indexes of forms, grouped by their first byte */
    struct {
        uint16_t at, n;
    } starts[256];   /* the range in `order` for each byte */
    struct buf held; /* held back */
};

void scrub_add(struct scrub *s, struct str value, struct str placeholder);
void scrub_feed(struct scrub *s, struct str in, struct buf *to);
void scrub_end(struct scrub *s, struct buf *to); /* writes the rest; ready for another stream */
void scrub_all(struct scrub *s, struct str in, struct buf *to); /* one whole text */
/* Whether a value is in this text, ignoring case. */
bool scrub_finds_any_case(const struct scrub *s, struct str text);
void scrub_done(struct scrub *s);
static inline UNUSED void scrub_done_p(struct scrub *s)
{
    scrub_done(s);
}
