/* idmap: the host ids of a sandbox's users, and how stored files get them.
 * Layers, uppers and volumes are stored with one canonical range of ids; an idmapped mount shows
 * them in the sandbox's own range (mount_setattr(2)), so that nothing on disk carries the ids of a
 * removed sandbox.  Without root there is one range, used for both.  Errors: -errno. */
#pragma once

#include "base/macro.h"

#include <sys/types.h>

#define IDMAP_SLOTS 30000U

struct idmap {
    uint32_t slot; /* 0: none taken, it uses the stored ids */
    int userns;    /* maps the stored ids to this range; -1: not made yet */
};

void idmap_take(struct idmap *m); /* a range that no live sandbox has */
void idmap_give(struct idmap *m);
void idmap_give_ready(void);            /* at the end: gives up ranges kept for the next sandbox */
void idmap_mark(const struct idmap *m); /* an adopted sandbox has it */
/* The host id of root in the sandbox with this slot; 0 if we are not the host's root. */
uint32_t idmap_base(uint32_t slot);
uint32_t idmap_stored(void);         /* the host id of root's stored files */
void idmap_prepare(struct idmap *m); /* does the first part of idmap_tree in advance */
/* Maps a detached tree into the sandbox's ids: from the canonical ones, or, if owner is another,
 * from that one alone, which becomes root inside. */
CHECKED int idmap_tree(struct idmap *m, int tree, uid_t owner, gid_t group);
CHECKED int idmap_probe(int dir); /* whether a tree of this filesystem can be mapped */
