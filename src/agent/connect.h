/* connect: makes a TCP connection on a thread of its own, since looking up a name may block. */
#pragma once

/* Returns a descriptor that becomes readable when the result is there; -1: not possible now. */
int connect_begin(const char *host, const char *port);
/* Then: the connection (non-blocking), or -1 and the reason.  The descriptor stays the caller's. */
int connect_take(int watched, char *why, unsigned long size);
