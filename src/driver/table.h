/* table: the runtimes of this build, in one list; the first is the default.
 * To add one: its folder, its row in table.c, its line in tests/conformance/meson.build. */
#pragma once

#include "core/sandbox/driver.h"

extern const struct driver_ops *const driver_table[]; /* NULL at the end */
/* Those of the table, then those of the setting oci_runtimes; NULL: no more. */
const struct driver_ops *driver_at(size_t i);
const struct driver_ops *driver_find(const char *name); /* NULL: this build does not have it */
/* The names, NULL-terminated: the choices of the setting `runtime`. */
const char *const *driver_names(void);
