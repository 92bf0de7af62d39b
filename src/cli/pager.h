/* pager: a program that shows long output page by page: HOLT_PAGER, PAGER, or less.  From
 * pager_start to pager_end standard output goes to it. */
#pragma once

#include "base/macro.h"

#include <sys/types.h>

struct pager { /* zero-initialised: none */
    pid_t pid;
};
void pager_start(struct pager *p); /* without one, output goes on as it was */
void pager_end(struct pager *p);   /* waits until the person has read it */
