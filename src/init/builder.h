/* builder: the process that makes this sandbox's root, where init was loaded ahead of the request
 * (src/spawn/setup.c).  It is init's only child until it has ended, and before that there is no
 * root of ours: nothing is opened by its path, and no command runs. */
#pragma once

/* barrier: "files" or "scopes", raised once the root stands (barrier.h); NULL: none */
void builder_expect(const char *barrier);
void builder_await(void); /* until it is gone; if it failed, init ends too */
