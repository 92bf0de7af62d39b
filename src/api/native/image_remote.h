/* image_remote: private to src/api: the source of pulls: net/registry.h behind the interface of
 * core/image/image.h.  The argument of its open is the api. */
#pragma once

#include "core/image/image.h"

extern const struct image_remote_ops image_remote;
