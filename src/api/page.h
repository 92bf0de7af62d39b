/* page: private to src/api: pages of holtd's own.  The one at "/" exchanges the code of a login
 * link for a session and shows the session and the daemon's state.  Pages load nothing from
 * elsewhere (CSP). */
#pragma once

#include "api/request.h"

extern const struct route page_route;
/* HTML up to and including "<script>", then the only script that may run in it. */
void page_send(struct request *r, const char *html, const char *code);
