/* own_rights: what holt-spawn itself gives up once it has started, and its helper children more
 * (docs/hardening.md).  Errors: -1 with *e set. */
#pragma once

#include "base/err.h"

CHECKED int own_rights_give_up(struct err *e);
/* In a child that walks files of a sandbox below `dir`: nothing but those, with few capabilities.
 * Where the kernel lacks it, the child goes on without. */
void own_rights_of_walker(int dir);
