/* web: the dashboard, embedded.  Its files are built by `make web`, checked in compressed below
 * web/dist and turned into web_files by tools/embed-web.  Public: they hold no data; all data comes
 * through the API.  Pages load nothing from elsewhere and run no inline script (CSP). */
#pragma once

#include "api/request.h"

struct web_file {
    const char *path; /* "assets/index-x.js"; the page itself is "index.html" */
    const char *type;
    const char *etag; /* with its quotes */
    const unsigned char *packed;
    size_t packed_size; /* gzip */
    size_t size;        /* unpacked */
};
extern const struct web_file web_files[];
extern const size_t web_file_count;

extern const struct route web_routes[];
extern const size_t web_route_count;
