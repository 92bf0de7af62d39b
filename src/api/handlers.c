#include "api/handlers.h"

#include "api/metrics.h"
#include "ops/event.h"
#include "ops/exec.h"
#include "ops/file.h"
#include "ops/image.h"
#include "ops/login.h"
#include "ops/port.h"
#include "ops/server.h"
#include "ops/token.h"

/* clang-format off */
const struct op_handler op_handlers[] = {
    {&op_server_info,   server_info_run},
    {&op_settings_list, settings_list_run},
    {&op_healthz,       healthz_run},
    {&op_readyz,        readyz_run},
    {&op_metrics,       metrics_run},
    {&op_openapi_json,  openapi_run},
    {&op_token_create,  token_create_run},
    {&op_token_list,    token_list_run},
    {&op_token_get,     token_get_run},
    {&op_token_revoke,  token_revoke_run},
    {&op_token_self,    token_self_run},
    {&op_event_list,    event_list_run},
    {&op_audit_list,    audit_list_run},
    {&op_audit_verify,  audit_verify_run},
    {&op_login,         login_run},
    {&op_login_code,    login_code_run},
    {&op_logout,        logout_run},
    {&op_sandbox_create,    sandbox_create_run},
    {&op_sandbox_list,      sandbox_list_run},
    {&op_sandbox_get,       sandbox_get_run},
    {&op_sandbox_update,    sandbox_update_run},
    {&op_sandbox_destroy,   sandbox_destroy_run},
    {&op_sandbox_start,     sandbox_start_run},
    {&op_sandbox_stop,      sandbox_stop_run},
    {&op_sandbox_restart,   sandbox_restart_run},
    {&op_sandbox_pause,     sandbox_pause_run},
    {&op_sandbox_resume,    sandbox_resume_run},
    {&op_sandbox_stats,     sandbox_stats_run},
    {&op_sandbox_logs,      sandbox_logs_run},
    {&op_run,               run_run},
    {&op_run_attach,        run_attach_run},
    {&op_exec_create,       exec_create_run},
    {&op_exec_list,         exec_list_run},
    {&op_exec_get,          exec_get_run},
    {&op_exec_output,       exec_output_run},
    {&op_exec_attach,       exec_attach_run},
    {&op_exec_signal,       exec_signal_run},
    {&op_exec_stdin,        exec_stdin_run},
    {&op_exec_resize,       exec_resize_run},
    {&op_exec_wait,         exec_wait_run},
    {&op_exec_cancel,       exec_cancel_run},
    {&op_file_read,         file_read_run},
    {&op_file_stat,         file_stat_run},
    {&op_file_write,        file_write_run},
    {&op_file_remove,       file_remove_run},
    {&op_file_list,         file_list_run},
    {&op_file_mkdir,        file_mkdir_run},
    {&op_file_move,         file_move_run},
    {&op_file_watch,        file_watch_run},
    {&op_archive_read,      archive_read_run},
    {&op_archive_write,     archive_write_run},
    {&op_port_proxy,        port_proxy_run},
    {&op_image_list,    image_list_run},
    {&op_image_get,     image_get_run},
    {&op_image_pull,    image_pull_run},
    {&op_image_import,  image_import_run},
    {&op_image_remove,  image_remove_run},
    {&op_port_tunnel,       port_tunnel_run},
};
/* clang-format on */
const size_t op_handler_count = ARRAY_LEN(op_handlers);
