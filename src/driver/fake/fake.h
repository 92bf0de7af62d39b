/* fake: a runtime without isolation: holt-init is an ordinary process.  For tests of the code above
 * the guest protocol. */
#pragma once

#include "core/sandbox/driver.h"

extern const struct driver_ops driver_fake;
