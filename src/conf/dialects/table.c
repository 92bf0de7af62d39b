/* The dialects that have settings, or names for ours: one row each. */
#include "conf/dialects/agentbox/settings.h"
#include "conf/dialects/agentic/settings.h"
#include "conf/dialects/fluid/settings.h"
#include "conf/dialects/sbx/settings.h"
#include "conf/setting.h"

const struct setting_group *const setting_groups[] = {
    &agentic_setting_group, /* LISTEN_ADDR replaces the addresses: before names that add some */
    &agentbox_setting_group, &fluid_setting_group, &sbx_setting_group, NULL,
};
