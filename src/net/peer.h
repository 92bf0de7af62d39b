/* peer: private to src/net: identifies the peer of an accepted connection. */
#pragma once

#include "net/xchg.h"

#include <uv.h>

void peer_name_tcp(const uv_tcp_t *h, struct peer *to);
void peer_name_unix(const uv_pipe_t *h, struct peer *to);
