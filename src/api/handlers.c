#include "api/handlers.h"

#include "api/metrics.h"
#include "ops/event.h"
#include "ops/login.h"
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
};
/* clang-format on */
const size_t op_handler_count = ARRAY_LEN(op_handlers);
