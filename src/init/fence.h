/* fence: holds commands to the path rules of the sandbox's policies (init/rules.h) by Landlock, one
 * ruleset for each policy, made anew for every command.  Landlock allows trees and has no
 * exceptions: around a denied path it allows every neighbour by itself, so of a directory above one
 * nothing can be listed, and nothing made or removed in it.  Files that appear later beside a
 * rule's path are not reachable for a command that runs already. */
#pragma once

#include "init/rules.h"

int fence_version(void); /* of Landlock, if it can hold the rules; 0: it cannot */

struct fence {
    int set[GUEST_LAYERS_MAX];
    size_t n;
};
/* Nothing without rules, or where the kernel has no Landlock (holtd was told). */
CHECKED int fence_make(struct fence *f, struct err *e);
void fence_done(struct fence *f);
static inline void fence_done_p(struct fence *f)
{
    fence_done(f);
}
CHECKED int fence_enter(const struct fence *f); /* in the child; -errno */
