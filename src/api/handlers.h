/* handlers: private to src/api: what runs each native operation; one file per object.
 * A handler sees valid, typed input in r->in and an asker who may; it answers by request_send* or
 * request_fail, at once or after a request_wait. */
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
void login_run(struct request *r);
void login_code_run(struct request *r);
void logout_run(struct request *r);
