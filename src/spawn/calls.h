/* calls: which system calls a sandbox may make, as tables for base/filter.h.
 * Two kinds: narrow, the usual one, allows what is listed; wide allows all that Linux 5.17 had but
 * for what is refused by name.  Both check the arguments of calls that can do more than one thing.
 * To allow one more call: a row in its group of calls.c; the tests walk the table by themselves. */
#pragma once

#include "base/filter.h"

enum calls_kind { CALLS_NARROW, CALLS_WIDE, CALLS_KIND_COUNT };

#define CALLS_TABLES_MAX 4
struct calls {
    struct filter_table tables[CALLS_TABLES_MAX];
    size_t count;
    uint32_t otherwise;
};
/* Of init and all that it starts; valid for ever. */
struct calls calls_of(enum calls_kind kind, bool nesting);
/* Of commands, on top: what init itself needs and they must not have. */
struct calls calls_of_commands(void);
