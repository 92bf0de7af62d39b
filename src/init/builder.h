/* builder: the process that makes this sandbox's root, if init was loaded ahead of the request
 * (src/spawn/setup.c).  It is init's only child until it ends.  Before that the sandbox has no
 * root: open nothing by path, run no command. */
#pragma once

/* barrier: "files" or "scopes", raised once the root is set up (barrier.h); NULL: none */
void builder_expect(const char *barrier);
void builder_await(void); /* until it has ended; if it failed, init exits too */
