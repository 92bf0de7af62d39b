/* trace: a place in a distributed trace, as W3C Trace Context writes it (the field traceparent).
 * Codec without I/O.  Thread: any. */
#pragma once

#include "base/str.h"

#define TRACE_TEXT 56 /* "00-", 32 digits, '-', 16 digits, "-01", NUL */
#define TRACE_HEX 33
#define SPAN_HEX 17

struct trace_place {
    unsigned char trace[16], span[8];
    bool sampled; /* whoever is above records it */
};

/* False: it is not one (no error: a wrong field is ignored, as the specification wants). */
bool trace_parse(struct str text, struct trace_place *ret);
char *trace_print(const struct trace_place *p, char to[TRACE_TEXT]); /* returns to */
