/* copy: copies a whole tree, as the writable layer of a sandbox becomes a layer.  The tree is
 * hostile: nothing follows a link or opens a node; memory does not grow with it.  Kept: types,
 * modes, stored owners, times, holes, hard links, whiteouts, opaque directories, capabilities,
 * access lists and user attributes.  Device nodes are left out.  For a child (own_rights.h).
 * Errors: -errno; -ELOOP: it nests too deeply; -EDQUOT: it is larger than allowed. */
#pragma once

#include "base/macro.h"

#include <stdint.h>

struct copy {
    int links;          /* an empty directory beside the target, for names of hard links */
    uint64_t bytes_max; /* 0: any */
    uint64_t entries, bytes;
};
bool copy_keeps_xattr(const char *name);
/* Into an existing directory, which gets the mode, owner and attributes of `from` too. */
CHECKED int copy_tree(struct copy *c, int from, int to);
