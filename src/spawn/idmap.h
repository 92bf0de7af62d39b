/* idmap: which ids of the host a sandbox's users are. */
#pragma once

#include "base/macro.h"

/* The host id of root in the sandbox with this slot; 0 where there is but one id to map. */
uint32_t idmap_base(uint32_t slot);
