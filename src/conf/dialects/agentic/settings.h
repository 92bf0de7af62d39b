/* settings: the settings of agentic-sandbox's interface (docs/settings.md, "agentic_…"), and its
 * names for ours.  Ownership: the config's. */
#pragma once

#include "conf/conf.h"

struct agentic_settings {
    char *vm_image;
};

extern const struct setting_group agentic_setting_group;
const struct agentic_settings *agentic_settings(const struct config *c);
