/* width: how many columns of a terminal a character takes. */
#pragma once

#include <stdint.h>

/* 0: it combines with the one before; 1; or 2: East Asian wide and full width, and emoji. */
int char_width(uint32_t point);
