/* term: pseudo-terminals. */
#pragma once

#include "base/err.h"

#include <sys/types.h>

CHECKED int term_open(unsigned rows, unsigned cols, int *ret_master, int *ret_slave, struct err *e);
void term_resize(int master, unsigned rows, unsigned cols);
