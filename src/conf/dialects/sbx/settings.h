/* settings: the settings of sbx's interface (docs/settings.md, "sbx_…"); each member is a row of
 * settings.c.  Ownership: the config's. */
#pragma once

#include "conf/conf.h"

struct sbx_settings {
    char *runtime, *volume_mode, *cache_mode, *cache_hostpath;
    int64_t cache_pvc_bytes;
    int64_t idle_ttl_ms, cpu_millis, memory_bytes;
    struct conf_list allowed_hosts, disallowed_hosts, env;
    int64_t stream_buffer;
    char *stream_endpoint, *stream_mode, *events_dir;
    int64_t exec_keep_ms, exec_timeout_ms, exec_max_timeout_ms;
    bool async_exec;
};

extern const struct setting_group sbx_setting_group;
const struct sbx_settings *sbx_settings(const struct config *c);
