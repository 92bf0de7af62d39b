/* page: the page at "/": turns the code of a login link into a session and shows who is logged in
 * and how the daemon is.  It has no part from elsewhere and may load none (CSP). */
#pragma once

#include "api/router.h"

extern const struct route page_route;
