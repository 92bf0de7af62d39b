/* settings: the settings of agentbox's interface (docs/settings.md); each member is a row of
 * settings.c.  Ownership: the config's. */
#pragma once

#include "conf/conf.h"

struct agentbox_settings {
    int64_t session_timeout_ms;
    char *runtime;
    char *storage_path; /* "": tenants have no storage */
    bool process_api;
};

extern const struct setting_group agentbox_setting_group;
const struct agentbox_settings *agentbox_settings(const struct config *c);
