/* vm: virtual machines, as a client of holt-virt (docs/protocol-virt.md), which alone talks to
 * libvirt.  It works where holt-virt was built and a base of machines was made (docs/vm.md); else
 * open says what is missing.  Machines go on without holtd and without holt-virt.
 * Thread: the loop's. */
#pragma once

#include "core/sandbox/driver.h"

extern const struct driver_ops driver_vm;
