/* term: pseudo-terminals and sessions. */
#pragma once

#include "base/err.h"

#include <sys/types.h>

CHECKED int term_open(unsigned rows, unsigned cols, int *ret_master, int *ret_slave, struct err *e);
void term_resize(int master, unsigned rows, unsigned cols);
/* Signals every process of the session, and what they have become parents of; where there is no
 * cgroup to kill, this is all there is. */
void term_session_signal(pid_t session, int signal);
