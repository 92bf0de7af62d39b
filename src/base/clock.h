/* clock: time as int64_t, and its text form.  Both clocks can be replaced by a test. */
#pragma once

#include "base/str.h"

int64_t clock_wall_ms(void); /* milliseconds since 1970, UTC */
int64_t clock_wall_us(void);
int64_t clock_mono_ms(void); /* never jumps */
int64_t clock_mono_ns(void);

struct clock_fake { /* the values of both clocks in tests */
    int64_t wall_ms;
    int64_t mono_ns;
};
void clock_set_fake(const struct clock_fake *f); /* NULL: the real clocks again */

#define CLOCK_TEXT 32
/* RFC 3339, UTC, milliseconds: "2026-01-02T03:04:05.678Z".  to has CLOCK_TEXT bytes; returns it. */
char *clock_text(int64_t wall_ms, char *to);
/* RFC 3339 with any offset; fractions past the millisecond are cut.  -EINVAL. */
int clock_parse(struct str s, int64_t *ret_wall_ms) CHECKED;
