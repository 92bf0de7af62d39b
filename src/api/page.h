/* page: a small page of one script: what opens a preview.  It loads nothing from elsewhere (CSP).
 */
#pragma once

#include "api/request.h"

/* HTML up to and including "<script>", then the only script that may run in it. */
void page_send(struct request *r, const char *html, const char *code);
