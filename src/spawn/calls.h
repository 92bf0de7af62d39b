/* calls: the system calls a sandbox may make, as tables for base/filter.h.
 * Two kinds: narrow, the default, allows the listed ones; wide allows everything in Linux 5.17
 * except those refused by name.  Both check the arguments of calls that can do more than one
 * thing.  To allow one more call: add a row to its group in calls.c; the tests walk the table. */
#pragma once

#include "base/filter.h"

enum calls_kind { CALLS_NARROW, CALLS_WIDE, CALLS_KIND_COUNT };

#define CALLS_TABLES_MAX 4
struct calls {
    struct filter_table tables[CALLS_TABLES_MAX];
    size_t count;
    uint32_t otherwise;
};
/* For init and everything it starts; never freed. */
struct calls calls_of(enum calls_kind kind, bool nesting);
/* For commands, in addition: refuses what init itself needs and they must not have. */
struct calls calls_of_commands(void);
