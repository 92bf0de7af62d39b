/* plain_loop: a libuv loop that uses epoll only.  libuv makes an io_uring in every loop (1.45 and
 * later: Debian 13, Ubuntu 24.04).  A ring bypasses every seccomp filter, and once our filter
 * refuses its calls, libuv aborts.  So the loop must never get one. */
#pragma once

#include "base/macro.h"

#include <uv.h>

CHECKED int plain_loop_init(uv_loop_t *loop); /* as uv_loop_init: 0 or a libuv error */
