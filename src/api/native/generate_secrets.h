/* generate_secrets: the values of the secrets that a sandbox uses, to find them in its files. */
#pragma once

#include "api/request.h"

struct scrub;
/* to: what is exported; only a sandbox has some.  (playbook_generate.c) */
void generate_read_secrets(struct request *r, struct str to, struct scrub *ret);
