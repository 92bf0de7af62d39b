/* table: the runtimes of this build, written out in one list. */
#pragma once

#include "core/sandbox/driver.h"

extern const struct driver_ops *const driver_table[]; /* NULL at the end */
