/* oci: sandboxes made by a container runtime, behind holt-spawn as the native ones are: the row of
 * wire/oci.h says which program and how.  Nothing but the last part of a create differs; so a
 * driver here is a name, its capabilities, and native's functions. */
#pragma once

#include "core/sandbox/driver.h"

extern const struct driver_ops driver_runc, driver_crun, driver_runsc;
/* Those of the setting oci_runtimes, by their index; NULL: no more. */
const struct driver_ops *oci_driver_more(size_t i);
