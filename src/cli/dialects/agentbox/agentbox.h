/* agentbox: what this dialect has of the command line: a check of `holt doctor`. */
#pragma once

#include "cli/doctor.h"

extern const struct check agentbox_check;
