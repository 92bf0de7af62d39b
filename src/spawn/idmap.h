/* idmap: which ids of the host a sandbox's users are, and how stored files get them.
 * Layers, uppers and volumes are stored with one canonical range of ids; an idmapped mount shows
 * them in the sandbox's own range (mount_setattr(2)), so that nothing on disk carries the ids of a
 * sandbox that is gone.  Without root there is one range, and it is both.  Errors: -errno. */
#pragma once

#include "base/macro.h"

#include <sys/types.h>

#define IDMAP_SLOTS 30000U

struct idmap {
    uint32_t slot; /* 0: none taken, the stored ids are its own */
    int userns;    /* maps the stored ids to this range; -1: not made yet */
};

void idmap_take(struct idmap *m); /* a range that no live sandbox has */
void idmap_give(struct idmap *m);
void idmap_give_ready(void);            /* at the end: those that were kept for the next sandbox */
void idmap_mark(const struct idmap *m); /* an adopted sandbox has it */
/* The host id of root in the sandbox with this slot; 0 where we are no host's root ourselves. */
uint32_t idmap_base(uint32_t slot);
uint32_t idmap_stored(void);         /* the host id of a stored file of root */
void idmap_prepare(struct idmap *m); /* what the first idmap_tree would do, ahead of it */
/* Shows a detached tree in the sandbox's ids: from the canonical ones, or, where owner is another,
 * from that one alone, which is root inside. */
CHECKED int idmap_tree(struct idmap *m, int tree, uid_t owner, gid_t group);
CHECKED int idmap_probe(int dir); /* can a tree of this filesystem be shown so? */
