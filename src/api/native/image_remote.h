/* image_remote: private to src/api: where pulls come from: net/registry.h as core/image/image.h
 * wants it. The argument of its open is the api. */
#pragma once

#include "core/image/image.h"

extern const struct image_remote_ops image_remote;
