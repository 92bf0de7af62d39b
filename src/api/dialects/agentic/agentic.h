/* agentic: the HTTP interface of agentic-sandbox, below /api (docs/agentic.md).
 * Its agents, virtual machines and containers are sandboxes, by name or id: machines those of the
 * runtime "vm", containers the others.  Its sessions are our sessions, its HITL requests approvals
 * of kind "prompt".  Operations are in memory, for an hour after their end.
 * Errors are {"error": "text"}, of machines {"error": {"code", "message"}}.  Thread: the loop's. */
#pragma once

#include "api/dialects/dialect.h"
#include "api/share/sandbox.h"
#include "base/clock.h"
#include "core/exec/exec.h"

#define AGENTIC_DIALECT "agentic"
#define AGENTIC_VM "vm"         /* the runtime of its virtual machines */
#define AGENTIC_REMOTE "remote" /* … and of agents on other machines */

extern const struct dialect dialect_agentic;

struct agentic {
    struct list operations; /* struct operation */
    size_t operation_count;
    struct list sockets; /* struct socket_client */
    struct list links;   /* struct link: agents on other machines */
    int64_t ticks;
};
struct agentic *agentic_of(const struct api *a);

void agentic_print_metrics(const struct api *a, struct buf *to); /* metrics.c */
/* agent.c: "Ready", "Busy" … */
const char *agentic_status(const struct api *a, const struct sandbox_info *i);

/* --- replies (routes.c) --- */

void agentic_error(struct request *r, int status, const char *fmt, ...) PRINTF_LIKE(3, 4);
void agentic_code(struct request *r, int status, const char *code, const char *fmt, ...)
    PRINTF_LIKE(4, 5);
void agentic_fail(struct request *r, int status, const struct err *e);
/* Collects a JSON object (an empty body is {}) and calls the route's next function. */
typedef void (*agentic_body)(struct request *r, const json_t *body);
void agentic_collect(struct request *r, agentic_body next);
struct str agentic_member(const json_t *o, const char *key); /* a text; else empty */
struct str agentic_query(const struct request *r, const char *key);
bool agentic_query_is(const struct request *r, const char *key, bool preset);

/* --- instances (instance.c, make.c) --- */

enum agentic_kind { AGENTIC_ANY, AGENTIC_VMS, AGENTIC_CONTAINERS };
struct str agentic_name(const struct sandbox_info *i); /* its name, or its id */
bool agentic_is(const struct sandbox_info *i, enum agentic_kind kind);
/* The instance of the path; NULL: it is not there, and the reply is sent. */
struct sandbox *agentic_find(struct request *r, enum agentic_kind kind);
bool agentic_name_is_valid(struct str name);
void agentic_vms(struct request *r);
void agentic_vm(struct request *r);
void agentic_vm_create(struct request *r);
void agentic_vm_start(struct request *r);
void agentic_vm_stop(struct request *r);
void agentic_vm_destroy(struct request *r);
void agentic_vm_restart(struct request *r);
void agentic_vm_delete(struct request *r);
void agentic_containers(struct request *r);
void agentic_container(struct request *r);
void agentic_container_create(struct request *r);
void agentic_container_start(struct request *r);
void agentic_container_stop(struct request *r);
void agentic_container_delete(struct request *r);
void agentic_images(struct request *r);

/* --- operations (operation.c) --- */

struct operation;
/* done: a sandbox_cb whose argument is the operation ends it. */
struct operation *operation_begin(struct request *r, const char *type, struct str target);
const char *operation_id(const struct operation *o);
void operation_end(void *operation, struct sandbox *s, const struct err *e);
void operation_write(struct jw *w, const struct operation *o);
void operations_done(struct agentic *g);
void operations_tick(struct agentic *g);
void agentic_operation(struct request *r);

/* --- agents (agent.c) --- */

void agentic_agents(struct request *r);
void agentic_agent(struct request *r);
void agentic_agent_start(struct request *r);
void agentic_agent_stop(struct request *r);
void agentic_agent_destroy(struct request *r);
void agentic_agent_delete(struct request *r);
/* stats NULL: unknown. */
void agentic_write_agent(struct jw *w, const struct api *a, const struct sandbox *s,
                         const struct driver_stats *stats);
/* The members of an agent's metrics, without the braces. */
void agentic_write_metrics(struct jw *w, const struct api *a, const struct sandbox_info *i,
                           const struct driver_stats *s);
void agentic_counts(const struct request *r, int64_t *ret_connected, int64_t *ret_ready);

/* --- loadouts (loadout.c) --- */

void agentic_loadouts(struct request *r);
void agentic_loadout(struct request *r);
void agentic_loadout_registry(struct request *r);

/* --- made anew (remake.c) --- */

void agentic_agent_reprovision(struct request *r);
void agentic_deploy_agent(struct request *r);

/* --- sessions (session.c, screen.c) --- */

/* The terminal of this id that the caller may use; NULL: there is none. */
struct exec *agentic_session_of(struct api *a, const struct principal *who, struct str id);
struct exec *agentic_session(struct request *r, struct str id);
void agentic_write_command(struct jw *w, const struct exec_info *i); /* "command": one line */
void agentic_sessions(struct request *r);
void agentic_session_kill(struct request *r);
void agentic_session_screen(struct request *r);
void agentic_agent_sessions(struct request *r);
void agentic_agent_session_create(struct request *r);
void agentic_agent_session_kill(struct request *r);
void agentic_orchestrate(struct request *r);

/* --- people (hitl.c) --- */

void agentic_hitl(struct request *r);
void agentic_hitl_create(struct request *r);
void agentic_hitl_respond(struct request *r);

/* --- events (event.c) --- */

void agentic_events(struct request *r);

/* --- the WebSocket (socket.c) --- */

bool agentic_is_socket(const struct xchg *x);
void agentic_socket(struct request *r);
void agentic_sockets_tick(struct agentic *g);

/* --- secrets (secret.c) --- */

void agentic_secrets(struct request *r);
void agentic_secret_create(struct request *r);
void agentic_secret_delete(struct request *r);
void agentic_secrets_delete(struct request *r);
void agentic_agent_rotate(struct request *r);

/* --- tasks and their files (task.c, storage.c) --- */

void agentic_task_submit(struct request *r);
void agentic_tasks(struct request *r);
void agentic_task(struct request *r);
void agentic_task_cancel(struct request *r);
void agentic_task_logs(struct request *r);
void agentic_task_artifacts(struct request *r);
void agentic_task_artifact(struct request *r);
void agentic_storage_global(struct request *r);
void agentic_storage_inbox(struct request *r);
void agentic_storage_outbox(struct request *r);
void agentic_download_global(struct request *r);
void agentic_download_inbox(struct request *r);
void agentic_download_outbox(struct request *r);
void agentic_upload_global(struct request *r);
void agentic_upload_inbox(struct request *r);
