/* quantity: amounts as Kubernetes writes them: a decimal number, then a power of ten ("500m", "2k",
 * "1e3") or of 1024 ("512Mi").  Fractions are rounded up, as in Kubernetes. */
#pragma once

#include "base/err.h"
#include "base/str.h"

/* In units of 1/scale (1000: thousandths); at most 2^50 of them, never negative. */
CHECKED int quantity_parse(struct str text, int64_t scale, int64_t *ret, struct err *e);
