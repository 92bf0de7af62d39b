/* omit: the rule that a test leaves out. */
#include "base/omit.h"

#include <stdlib.h>
#include <string.h>

bool rule_is_omitted(const char *name)
{
    const char *omit = getenv("HOLTD_OMIT");

    return omit && strcmp(omit, name) == 0;
}
