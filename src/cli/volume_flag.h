/* volume_flag: Docker's -v SRC:DST[:ro], for verbs that make sandboxes. */
#pragma once

#include "cli/cli.h"

/* Moves the flag's values from args to the fields 'mounts' (SRC is a path: a directory of the
 * server's machine) and 'volumes' (SRC is a name). */
CHECKED int volume_flag_apply(const struct cli *c, json_t *args, struct err *e);
