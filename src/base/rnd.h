/* rnd: random bytes from the kernel; a test may make them predictable. */
#pragma once

#include "base/macro.h"

void rnd_bytes(void *to, size_t n); /* fit for keys; aborts if the kernel has none */
uint64_t rnd_u64(void);
void rnd_set_fake(uint64_t seed); /* 0: the kernel's again */
