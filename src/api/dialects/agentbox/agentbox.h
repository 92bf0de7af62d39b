/* agentbox: the gRPC interface sandbox.v1.SandboxService (api/sandbox/v1/sandbox.proto).
 * A session is a sandbox whose alias in this dialect is the session's id; the rules are
 * core's.  Failures of a command or a file are reported in the reply, with status OK, as its
 * clients expect.  Thread: the loop's. */
#pragma once

#include "api/dialects/dialect.h"
#include "api/sandbox.pb.h"
#include "conf/dialects/agentbox/settings.h"
#include "core/exec/exec.h"

#define AGENTBOX_DIALECT "agentbox"

extern const struct dialect dialect_agentbox;

struct agentbox {        /* its state */
    const char *runtime; /* of sessions; NULL: the usual one */
    const char *weaker;  /* if that one does not work; NULL: it was tried, or was named */
};
struct agentbox *agentbox_of(const struct api *a);

#define AGENTBOX_NO_SESSION "Session not found"
#define AGENTBOX_NOT_ALLOWED "Path not allowed"

/* The live session with this id that the caller may use; NULL: none. */
struct sandbox *agentbox_session(struct request *r, struct str id);

/* The hosts a session may reach: the requested ones, else the eight default ones for packages and
 * sources. */
void agentbox_hosts(const struct sandbox *s, struct arena *a, struct str **ret, size_t *ret_count);
/* Each host must fit on one line of the note. */
CHECKED int agentbox_hosts_check(const struct str *hosts, size_t count, struct err *e);
/* Whether the hosts of Python packages are among them; else *why names the missing ones. */
bool agentbox_may_pip(const struct sandbox *s, struct buf *why);
/* The note in which a session stores them. */
void agentbox_hosts_note(const struct str *hosts, size_t count, struct buf *to);
/* Whether they are only the default ones. */
bool agentbox_hosts_are_preset(const struct str *hosts, size_t count);
/* The network policy for them. */
void agentbox_hosts_policy(struct str note, struct buf *to);

void agentbox_create_session(struct request *r, const void *in);
void agentbox_destroy_session(struct request *r, const void *in);
void agentbox_get_session(struct request *r, const void *in);
void agentbox_list_sessions(struct request *r, const void *in);
void agentbox_exec(struct request *r, const void *in);
void agentbox_exec_stream(struct request *r, const void *in);
void agentbox_write_file(struct request *r, const void *in);
void agentbox_read_file(struct request *r, const void *in);
void agentbox_pip_install(struct request *r, const void *in);

#define AGENTBOX_TIMEOUT_MAX_MS (366LL * 24 * 3600 * 1000)

/* A shell line as this dialect runs it. */
struct agentbox_line {
    struct str command, stdin_bytes;
    struct str workdir; /* not empty; relative to /workspace */
    const struct pair *env;
    size_t env_count;
    int64_t timeout_ms; /* 0: none; negative: already expired */
};
/* Runs it and replies with an ExecResponse. */
void agentbox_run(struct request *r, struct sandbox *s, const struct agentbox_line *l);
/* Runs it and replies with ExecStreamResponses. */
void agentbox_run_stream(struct request *r, struct sandbox *s, const struct agentbox_line *l);
/* In a session; the path is not empty. */
void agentbox_write(struct request *r, struct sandbox *s,
                    const struct agentbox_write_file_request *q);
void agentbox_read(struct request *r, struct sandbox *s,
                   const struct agentbox_read_file_request *q);
void agentbox_spec(const struct agentbox_line *l, struct arena *a, struct exec_spec *ret);
/* Why the original's runtime could not even start it; NULL: it could. */
const char *agentbox_cannot_start(const struct agentbox_line *l);
/* Replies with an ExecResponse with the reason. */
void agentbox_refuse(struct request *r, const char *why);
/* Why a command did not start, in the words of the original's runtime; called when it is known. */
typedef void (*agentbox_why)(void *arg, const char *text);
void agentbox_explain(struct sandbox *s, struct str workdir, struct str failure, agentbox_why told,
                      void *arg);

/* In Python's words: "[Errno 2] No such file or directory: '/x'"; why bytes are not UTF-8 (false:
 * they are). */
void agentbox_say_errno(int sys, struct str path, struct buf *to);
bool agentbox_say_codec(struct str bytes, struct buf *to);

/* --- process_api (process.c): the same from inside a sandbox, over plain HTTP --- */

void process_handle(struct request *r); /* a request received on LISTEN_PROCESS */
void process_fail(struct request *r, int status, const struct err *e);
/* Replies to such a request, which is not a call: r->rpc is NULL. */
void process_tell_exec(struct request *r, const struct agentbox_exec_response *a);
void process_tell_write(struct request *r, const struct agentbox_write_file_response *a);
void process_tell_read(struct request *r, const struct agentbox_read_file_response *a);
/* One event of a stream, as text. */
void process_event(const struct agentbox_exec_stream_response *a, struct buf *to);
