/* dialect: what dialects bring to the command line, one row each in table.c; nothing else in
 * src/cli names one. */
#pragma once

#include "cli/cli.h"
#include "cli/doctor.h"

struct cli_dialect {
    const struct verb *verb;   /* a link to holt of that name is this verb; NULL: none */
    const struct check *check; /* of `holt doctor`; NULL: none */
};
extern const struct cli_dialect cli_dialects[];
extern const size_t cli_dialect_count;
