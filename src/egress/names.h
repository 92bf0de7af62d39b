/* names: the made-up addresses of one sandbox's DNS: each name it looked up has one from
 * 198.18.0.0/15, which the proxy maps back.  Bounded: the least recently used name is dropped, and
 * its address is reused only after all others.  Thread: the loop's. */
#pragma once

#include "base/macro.h"

#define NAMES_MAX 4096 /* of one sandbox */

struct names;
struct names *names_new(void);
struct names *names_free(struct names *n);                 /* takes NULL; returns NULL */
uint32_t names_address(struct names *n, const char *name); /* host order */
const char *names_find(struct names *n, uint32_t address); /* NULL: not assigned */
bool names_is_made_up(uint32_t address);
