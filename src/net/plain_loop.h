/* plain_loop: a libuv loop that works by epoll alone.  libuv makes an io_uring in every loop (1.45
 * and later: Debian 13, Ubuntu 24.04), which does what calls do past every filter; once our
 * filter refuses it, libuv aborts.  So it must never get one. */
#pragma once

#include "base/macro.h"

#include <uv.h>

CHECKED int
plain_loop_init(uv_loop_t *loop); /* as uv_loop_init: 0 or a negative error of libuv's */
