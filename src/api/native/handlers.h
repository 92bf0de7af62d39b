/* handlers: private to src/api: the handlers of the native operations; one file per object.
 * A handler gets valid, typed input in r->in and a caller with permission; it replies by
 * request_send* or request_fail, at once or after a request_wait. */
#pragma once

#include "api/request.h"

void server_info_run(struct request *r);
void healthz_run(struct request *r);
void readyz_run(struct request *r);
void openapi_run(struct request *r);
void settings_list_run(struct request *r);
void token_create_run(struct request *r);
void token_list_run(struct request *r);
void token_get_run(struct request *r);
void token_revoke_run(struct request *r);
void token_self_run(struct request *r);
void event_list_run(struct request *r);
void audit_list_run(struct request *r);
void audit_verify_run(struct request *r);
void image_list_run(struct request *r);
void image_get_run(struct request *r);
void image_pull_run(struct request *r);
void image_import_run(struct request *r);
void image_remove_run(struct request *r);
void secret_create_run(struct request *r);
void secret_set_run(struct request *r);
void secret_list_run(struct request *r);
void secret_get_run(struct request *r);
void secret_remove_run(struct request *r);
void ca_run(struct request *r);
void volume_create_run(struct request *r);
void rule_list_run(struct request *r);
void rule_remove_run(struct request *r);
void volume_list_run(struct request *r);
void volume_get_run(struct request *r);
void volume_update_run(struct request *r);
void volume_remove_run(struct request *r);
void login_run(struct request *r);
void login_code_run(struct request *r);
void logout_run(struct request *r);
void sandbox_create_run(struct request *r);
void sandbox_list_run(struct request *r);
void sandbox_get_run(struct request *r);
void sandbox_update_run(struct request *r);
void sandbox_destroy_run(struct request *r);
void sandbox_start_run(struct request *r);
void sandbox_stop_run(struct request *r);
void sandbox_restart_run(struct request *r);
void sandbox_pause_run(struct request *r);
void sandbox_resume_run(struct request *r);
void sandbox_stats_run(struct request *r);
void sandbox_logs_run(struct request *r);
void run_run(struct request *r);
void run_attach_run(struct request *r);
void exec_create_run(struct request *r);
void exec_list_run(struct request *r);
void exec_get_run(struct request *r);
void exec_output_run(struct request *r);
void exec_attach_run(struct request *r);
void exec_signal_run(struct request *r);
void exec_stdin_run(struct request *r);
void exec_resize_run(struct request *r);
void exec_wait_run(struct request *r);
void exec_cancel_run(struct request *r);
void file_read_run(struct request *r);
void file_stat_run(struct request *r);
void file_write_run(struct request *r);
void file_remove_run(struct request *r);
void file_list_run(struct request *r);
void file_mkdir_run(struct request *r);
void file_move_run(struct request *r);
void file_watch_run(struct request *r);
void archive_read_run(struct request *r);
void archive_write_run(struct request *r);
void port_proxy_run(struct request *r);
void port_tunnel_run(struct request *r);
void port_preview_run(struct request *r);
void team_run(struct request *r); /* any of team_op.h's rows */
void project_file_read_run(struct request *r);
void project_file_write_run(struct request *r);
