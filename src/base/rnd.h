/* rnd: random bytes from the kernel. */
#pragma once

#include "base/macro.h"

void rnd_bytes(void *to, size_t n); /* fit for keys; aborts if the kernel provides none */
uint64_t rnd_u64(void);
