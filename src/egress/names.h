/* names: the made-up addresses of one sandbox's resolver: each name it asked for has one from
 * 198.18.0.0/15, which the proxy maps back.  Bounded: the name that was not used for longest gives
 * way, and its address is not given to another before all others were.  Thread: the loop's. */
#pragma once

#include "base/macro.h"

#define NAMES_MAX 4096 /* of one sandbox */

struct names;
struct names *names_new(void);
struct names *names_free(struct names *n);                 /* takes NULL; returns NULL */
uint32_t names_address(struct names *n, const char *name); /* host order */
const char *names_find(struct names *n, uint32_t address); /* NULL: it stands for nobody */
bool names_is_made_up(uint32_t address);
