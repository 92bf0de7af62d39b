/* sbx: the HTTP and WebSocket interface of sbx, below /sandboxes (docs/sbx.md).
 * A sandbox has two aliases here, ID and sbx-ID (its "namespace"); the rules are core's.  Errors
 * are {"error": "text"}.  Thread: the loop's. */
#pragma once

#include "api/dialects/dialect.h"
#include "api/dialects/sbx/body.h"
#include "conf/dialects/sbx/settings.h"
#include "core/exec/exec.h"

#define SBX_DIALECT "sbx"
#define SBX_POD "sandbox"
#define SBX_PREFIX "sbx-" /* prefix of namespaces */
#define SBX_PORT 8080     /* its clients expect sbx's replies where a path exists in two dialects */
#define SBX_EXEC_ID 17    /* 16 hex digits and a NUL */

extern const struct dialect dialect_sbx;

struct sbx {
    struct map channels;  /* of a sandbox's id to struct channel */
    struct list sidecars; /* struct sidecar */
    struct map scanned;   /* ids of sandboxes whose commands sidecar.c looks at */
    bool ending;
    /* counts since start-up */
    int64_t creates, warm_hits, deletes;
    int64_t execs; /* started in the background, or awaited successfully */
    int64_t ready_ms_sum, ready_ms_last, ready_count;
};
struct sbx *sbx_of(const struct api *a);

/* --- replies (routes.c) --- */

void sbx_add_request_id(struct request *r);   /* each of its replies has one */
void sbx_send(struct request *r, int status); /* sends the output of request_json's writer */
void sbx_error(struct request *r, int status, const char *fmt, ...) PRINTF_LIKE(3, 4);

/* --- sandboxes (sandbox.c, create.c) --- */

void sbx_create(struct request *r);
void sbx_list(struct request *r);
void sbx_get(struct request *r);
void sbx_delete(struct request *r);
/* phase, or the token for its sidecars, which only the creator gets, once; or NULL. */
void sbx_send_names(struct request *r, const struct sandbox *s, const char *phase,
                    const char *token);
void sbx_refuse(struct request *r, const struct err *e);
/* The live sandbox of the path that the caller may use; NULL: none. */
struct sandbox *sbx_find(struct request *r);
struct str sbx_namespace(const struct sandbox *s);
/* Its directory for commands; empty if the runtime has none of its own. */
struct str sbx_workdir(const struct sandbox *s);

void sbx_audit(struct request *r, const struct sandbox *s); /* records a read of its content */

/* --- streams (stream.c) --- */

void sbx_stream(struct request *r);

/* --- events of sidecars (ingest.c) --- */

#define SBX_INGEST_HASH 65
void sbx_ingest(struct request *r);
void sbx_ingest_by_path(struct request *r);
char *sbx_ingest_token(struct arena *a);
void sbx_ingest_hash(struct str token, char to[SBX_INGEST_HASH]); /* the stored form */

/* --- output of commands as files inside, for sidecars (sidecar.c) --- */

/* does nothing if its sandbox has no sidecar */
void sbx_sidecar_begin(struct sbx *sbx, struct exec *x);
/* Once a second: resumes after a restart or a lost connection. */
void sbx_sidecar_tick(struct sbx *sbx, struct sandboxes *all);
void sbx_sidecar_again(struct sbx *sbx); /* checks all again: a start was missed */
void sbx_sidecars_end(struct sbx *sbx);  /* none starts after it */

/* --- commands (exec.c) --- */

void sbx_exec(struct request *r);
void sbx_exec_get(struct request *r);
void sbx_exec_cancel(struct request *r);
void sbx_exec_id(const struct exec *x, char to[SBX_EXEC_ID]);
struct exec *sbx_exec_find(struct sandbox *s, struct str name); /* by that id, or by ours */
struct sbx_outcome { /* the result of a command, in this dialect's words */
    const char *status;
    bool has_code;
    int code;
    struct str error;
};
/* The error's text is in the arena. */
void sbx_outcome(const struct exec_info *i, struct arena *a, struct sbx_outcome *ret);
