/* digest: the SHA-256 of a tree, by which a layer is addressed: of every entry, in the order of the
 * bytes of its names, its name, type, mode, owner, number of names, attributes, and the content of
 * a file or the target of a link.  Times do not count.  For a child.  Errors: -errno. */
#pragma once

#include "base/sha256.h"

struct digest {
    struct hash hash;
    uint32_t root; /* the stored id of root: owners are counted from it */
    uint64_t entries, bytes;
};
CHECKED int digest_tree(struct digest *d, int dir, char to[2 * HASH_SIZE + 1]);
