/* own_rights: the rights that holt-spawn gives up once it has started; its helper children give up
 * more (docs/hardening.md).  Errors: -1 with *e set. */
#pragma once

#include "base/err.h"

CHECKED int own_rights_give_up(struct err *e);
/* In a child that walks files of a sandbox below `dir`: access to nothing else, with few
 * capabilities.  If the kernel lacks this, the child continues without. */
void own_rights_of_walker(int dir);
/* The same in a child that copies the tree `from` into `to`; moves: and removes the source. */
void own_rights_of_copier(int from, int to, bool moves);
