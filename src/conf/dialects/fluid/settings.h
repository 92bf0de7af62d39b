/* settings: the settings of fluid's interface (docs/settings.md, "fluid_…"), and its names for
 * ours.  Ownership: the config's. */
#pragma once

#include "conf/conf.h"

struct fluid_settings {
    char *runtime, *network, *agent_sandbox, *agent_policy;
    bool file_delete;
    int64_t cpus, memory_bytes, command_timeout_ms;
    struct conf_list key_dirs;
};

extern const struct setting_group fluid_setting_group;
const struct fluid_settings *fluid_settings(const struct config *c);
