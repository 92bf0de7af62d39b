/* page: private to src/api: pages of holtd's own.  The one at "/" turns the code of a login link
 * into a session and shows who is logged in and how the daemon is.  None has a part from elsewhere
 * or may load one (CSP). */
#pragma once

#include "api/request.h"

extern const struct route page_route;
/* HTML up to and with "<script>", then the one script that may run in it. */
void page_send(struct request *r, const char *html, const char *code);
