/* store_suite: what every engine of the store must do, written once.
 * An engine's own program makes a struct store_place and runs store_suite() on it. */
#pragma once

#include "core/event/event.h"

struct store_place {
    const char *url;
    void (*wipe)(void);                  /* makes it an empty database */
    void (*run_sql)(const char *script); /* behind the store's back, while it is closed */
};

int store_suite(const struct store_place *p); /* how many tests failed */
