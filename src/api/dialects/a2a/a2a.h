/* a2a: the Agent2Agent protocol, one agent per sandbox, below /agents/INSTANCE (docs/a2a.md).
 * Three forms of the same calls: agentic-sandbox's own paths (SEED), and version 1.0 of the
 * protocol as HTTP+JSON (REST) and as JSON-RPC (RPC), both below /agents/INSTANCE/a2a.
 * A task is one of ours (core/task) that names this sandbox; its output and the files of its outbox
 * are the artifacts.  What a message runs is set by labels of the sandbox, never by the message.
 * Thread: the loop's.  Errors: a2a_fail with a row of a2a_errors, or a2a_err with ours. */
#pragma once

#include "api/dialects/dialect.h"
#include "base/list.h"
#include "core/sandbox/sandbox.h"
#include "core/task/task.h"
#include "proto/ed25519.h"

#define A2A_DIALECT "a2a"
#define A2A_VERSION "1.0"
#define A2A_EXTENSION_RUNTIME "https://agentic-sandbox.aiwg.io/extensions/runtime/v1"
#define A2A_EXTENSION_IDEMPOTENCY "https://agentic-sandbox.aiwg.io/extensions/idempotency/v1"

#define A2A_CHUNK (32 * 1024)     /* bytes of output in one artifact of agentic-sandbox's form */
#define A2A_TEXT_MAX (256 * 1024) /* … and in the one artifact of version 1.0 */

enum a2a_form { A2A_SEED, A2A_REST, A2A_RPC };

struct a2a {
    struct api *api;
    struct ed25519 key;
    char kid[48];       /* its thumbprint (RFC 7638) */
    struct list waits;  /* struct a2a_wait */
    struct list pushes; /* struct push */
    size_t push_count;
};
struct a2a *a2a_of(const struct api *a);

struct a2a_call { /* in the exchange's arena; r->in */
    struct request *r;
    enum a2a_form form;
    const struct a2a_method *method;
    char instance[ID_SIZE]; /* the sandbox's id */
    struct str as;          /* … as the path names it */
    const json_t *rpc_id;   /* RPC: of r->body */
    const json_t *params;   /* an object; REST and SEED: the body, or NULL */
    struct str task, item;  /* ids of the path or of params; item: of an artifact or a push */
};

/* --- replies (reply.c) --- */

enum a2a_error {
    A2A_INSTANCE_NOT_FOUND,
    A2A_TASK_NOT_FOUND,
    A2A_ARTIFACT_NOT_FOUND,
    A2A_PUSH_NOT_FOUND,
    A2A_NOT_CANCELABLE,
    A2A_UNSUPPORTED,
    A2A_CONTENT_TYPE,
    A2A_NO_EXTENSION,
    A2A_NO_VERSION,
    A2A_BAD_JSON,
    A2A_BAD_REQUEST,
    A2A_BAD_PARAMS,
    A2A_NO_METHOD,
    A2A_NOT_READY,
    A2A_NO_TEXT,
    A2A_IN_PROGRESS,
    A2A_ERRORS
};
void a2a_fail(struct a2a_call *c, enum a2a_error what, const char *fmt, ...) PRINTF_LIKE(3, 4);
void a2a_err(struct a2a_call *c, const struct err *e); /* ours */
/* The dialect's and the routes' fail: a request that was refused before its handler. */
void a2a_route_fail(struct request *r, int status, const struct err *e);
/* A reply is opened, its value written, and sent; RPC: inside its envelope. */
struct jw a2a_open(struct a2a_call *c);
void a2a_send(struct a2a_call *c, struct jw *w, int status);
void a2a_open_at(const struct a2a_call *c, struct jw *w); /* … of an event of a stream */
void a2a_close_at(const struct a2a_call *c, struct jw *w);

/* --- calls (routes.c) --- */

struct a2a_method {
    const char *name; /* of JSON-RPC */
    enum perm perm;
    void (*run)(struct a2a_call *c);
};
struct str a2a_text(const json_t *o, const char *key); /* a text; else empty */
/* A parameter: of the query, or of params. */
struct str a2a_param(const struct a2a_call *c, const char *query, const char *key);
int64_t a2a_number(const struct a2a_call *c, const char *query, const char *key, int64_t preset);
bool a2a_flag(const struct a2a_call *c, const char *query, const char *key);
/* "https://host:port/agents/NAME", in the arena. */
const char *a2a_base(const struct a2a_call *c);
/* The instance; NULL: it is not the caller's, and the reply is sent. */
struct sandbox *a2a_sandbox(struct a2a_call *c);
/* The call's task, of this instance; NULL: … */
struct task *a2a_task(struct a2a_call *c, bool change);
/* Whether the request has activated an extension. */
bool a2a_activated(const struct a2a_call *c, const char *uri);

/* --- the card (card.c) --- */

CHECKED int a2a_key_open(struct a2a *a, struct err *e); /* reads or makes the key */
void a2a_card(struct a2a_call *c);
void a2a_keys(struct request *r);
/* A detached signature (RFC 7515, appendix F) of a body: "HEADER..SIGNATURE". */
CHECKED int a2a_sign(const struct a2a *a, struct str body, struct buf *to, struct err *e);

/* --- messages (message.c) --- */

void a2a_message_send(struct a2a_call *c);
void a2a_message_stream(struct a2a_call *c);
void a2a_waits_tick(struct a2a *a);
void a2a_waits_end(struct a2a *a);

/* --- tasks (task.c) --- */

const char *a2a_state(const struct a2a_call *c, enum task_state s);
const char *a2a_label(const struct task_info *i, const char *key); /* "": none */
void a2a_write_status(struct jw *w, const struct a2a_call *c, const struct task_info *i);
/* files NULL: without artifacts. */
struct a2a_files;
void a2a_write_task(struct jw *w, const struct a2a_call *c, const struct task *t,
                    const struct a2a_files *files);
void a2a_task_get(struct a2a_call *c);
void a2a_task_list(struct a2a_call *c);
void a2a_task_cancel(struct a2a_call *c);
void a2a_task_reply(struct a2a_call *c, struct task *t, int status); /* with its artifacts */

/* --- artifacts (artifact.c) --- */

struct a2a_files { /* what the task left in its outbox */
    struct task_artifact *v;
    size_t n, room;
    struct arena arena;
};
/* Reads them; then is called once.  Its files are valid during the call. */
typedef void (*a2a_files_cb)(void *arg, const struct a2a_files *files, const struct err *e);
void a2a_files_read(struct task *t, a2a_files_cb then, void *arg);
/* Output from an offset on, whole characters, lines ending in \n; returns the bytes used. */
int64_t a2a_output(const struct task *t, int64_t offset, size_t max, bool ended, struct buf *to);
void a2a_write_artifacts(struct jw *w, const struct a2a_call *c, const struct task *t,
                         const struct a2a_files *files);
void a2a_write_file(struct jw *w, const struct a2a_call *c, const struct task_info *i,
                    const struct a2a_files *files, size_t at);
void a2a_artifacts(struct a2a_call *c);
void a2a_artifact(struct a2a_call *c);

/* --- streams (stream.c) --- */

void a2a_stream_begin(struct a2a_call *c, struct task *t);
void a2a_subscribe(struct a2a_call *c);

/* --- push notifications (push.c) --- */

void a2a_push_open(struct a2a *a);
void a2a_push_tick(struct a2a *a);
void a2a_push_close(struct a2a *a);
void a2a_push_create(struct a2a_call *c);
void a2a_push_get(struct a2a_call *c);
void a2a_push_list(struct a2a_call *c);
void a2a_push_delete(struct a2a_call *c);
/* For a message that brings its own; false: refused, the reply is sent. */
bool a2a_push_check(struct a2a_call *c, const json_t *config);
struct a2a_receiver { /* of whose form, about what; the request may be gone */
    struct a2a *all;
    enum a2a_form form;
    char instance[ID_SIZE];
};
struct a2a_receiver a2a_receiver_of(const struct a2a_call *c);
/* Made before its task, written in the task's transaction by the hook; then it begins (or, without
 * a task, is dropped). */
struct push;
extern const struct tx_hook a2a_push_hook;
struct push *a2a_push_new(const struct a2a_receiver *to, const char *task, const json_t *config,
                          void **ret_hook_arg);
void a2a_push_begin(struct push *p);
void a2a_push_drop(struct push *p); /* takes NULL */

extern const struct dialect dialect_a2a;
