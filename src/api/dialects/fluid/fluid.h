/* fluid: the HTTP interface of fluid.sh (virsh-sandbox), below /v1 and /api/v1 (docs/fluid.md).
 * Its sandboxes are ours, under an alias SBX-…; its source machines are images, templates and
 * sandboxes; its commands are execs, its snapshots ours.  Ids of commands and snapshots are made of
 * ours, so they need no table.  What only this interface knows (agent, job, source) is the
 * sandbox's note.  Errors are {"error", "code"}.  Thread: the loop's. */
#pragma once

#include "api/dialects/dialect.h"
#include "api/dialects/fluid/body.h"
#include "api/share/sandbox.h"
#include "conf/dialects/fluid/settings.h"

#define FLUID_DIALECT "fluid"
#define FLUID_SANDBOX "SBX-"
#define FLUID_ID 40               /* the longest id with its prefix and a NUL */
#define FLUID_ADDRESS "127.0.0.1" /* where a sandbox is reached: by SSH, on a port of its own */

extern const struct dialect dialect_fluid;

/* One route: how its body is read, and its function, which finds the input in r->in. */
struct fluid_row {
    const char *method;
    const char *path, *api_path; /* below /v1 and /api/v1; NULL: not there */
    const char *name;
    enum perm perm;
    void (*run)(struct request *r);
    const struct fluid_form *form; /* NULL: it has no body */
    bool (*guard)(const struct xchg *x);
    bool agent; /* of the agent interface: replies are envelopes */
    void (*in_box)(struct request *r, struct sandbox *s); /* instead of run: in a sandbox */
};

/* --- replies (routes.c) --- */

void fluid_send(struct request *r, int status); /* sends the output of request_json's writer */
/* A reply of the agent interface: below /api/v1 inside an envelope; below /v1 bare, an object with
 * the members of the envelope. */
void fluid_reply(struct request *r, int status, struct str json);
void fluid_error(struct request *r, int status, const char *fmt, ...) PRINTF_LIKE(3, 4);
void fluid_fail(struct request *r, int status, const struct err *e);
void fluid_refuse(struct request *r, const struct err *e);        /* with the status of its code */
void fluid_blocked(struct request *r, const struct err *e);       /* a policy refuses the command */
struct str fluid_query(const struct request *r, const char *key); /* "": absent */
/* limit and offset; false: the reply is sent. */
struct fluid_page {
    int64_t limit, offset; /* limit 0: all */
};
bool fluid_read_page(struct request *r, struct fluid_page *ret);
bool fluid_on_page(const struct fluid_page *p, int64_t at); /* whether the at-th, from 0, is */

/* --- ids and times (words.c) --- */

char *fluid_id(const char *prefix, const char *of, char to[FLUID_ID]); /* "CMD-0a1b2c3d" */
char *fluid_new_id(const char *prefix, char to[FLUID_ID]);
char *fluid_uuid(const char *of, char to[FLUID_ID]);
void fluid_seconds(struct jw *w, const char *key, int64_t wall_ms);
bool fluid_is(struct str text, const char *prefix, const char *of); /* our id, or made of it */

/* --- sandboxes (sandbox.c, create.c) --- */

struct fluid_note { /* borrowed from the JSON */
    json_t *json;
    struct str agent, job, source;
    bool idle; /* it was made without being started */
};
void fluid_note_read(const struct sandbox_info *i, struct fluid_note *ret); /* json: decref */
void fluid_note_write(struct buf *to, const struct fluid_note *n);
/* The sandbox of the path; NULL: it is not there, and the reply is sent. */
struct sandbox *fluid_find(struct request *r);
struct sandbox *fluid_find_named(struct request *r, struct str ref);
struct str fluid_sandbox_id(const struct sandbox_info *i);
struct str fluid_sandbox_name(const struct sandbox_info *i);
const char *fluid_state(const struct sandbox_info *i, const struct fluid_note *n);
void fluid_write_sandbox(struct jw *w, const struct sandbox *s);
/* The address, with the port of SSH, which is opened; false: *e has the reason. */
bool fluid_write_address(struct request *r, struct sandbox *s, struct jw *w, struct err *e);
void fluid_create(struct request *r);
void fluid_list(struct request *r);
void fluid_get(struct request *r);
void fluid_destroy(struct request *r);
void fluid_start(struct request *r);
void fluid_stop(struct request *r);
void fluid_ip(struct request *r);
void fluid_vms(struct request *r);
extern const struct fluid_form fluid_create_form, fluid_start_form, fluid_stop_form;

/* --- commands (command.c, history.c) --- */

void fluid_run(struct request *r);
void fluid_sshkey(struct request *r);
void fluid_commands(struct request *r);
/* Replies with {sandbox, commands}. */
void fluid_get_with_commands(struct request *r, struct sandbox *s);
/* A Command object; env: JSON, or empty. */
struct collect;
void fluid_write_command(struct jw *w, const struct exec *x, const struct collect *c,
                         struct str env);
void fluid_command_text(const struct exec_info *i, struct buf *to);
bool fluid_is_command(const struct exec_info *i); /* it has ended, and is not a terminal */
extern const struct fluid_form fluid_run_form, fluid_sshkey_form;

/* --- snapshots (snapshot.c) --- */

void fluid_snapshot_create(struct request *r);
void fluid_snapshots(struct request *r);
void fluid_restore(struct request *r);
/* Of this sandbox, by its name or id; NULL: the reply is sent. */
struct snapshot;
struct snapshot *fluid_find_snapshot(struct request *r, const struct sandbox *s, struct str ref);
void fluid_diff(struct request *r); /* diff.c */
extern const struct fluid_form fluid_diff_form;
extern const struct fluid_form fluid_snapshot_form, fluid_restore_form;

/* --- the live stream (stream.c) --- */

void fluid_stream(struct request *r);
void fluid_streams_tick(struct api *a);

/* --- playbooks and jobs (playbook.c, ansible.c) --- */

void fluid_books(struct request *r);
void fluid_book_create(struct request *r);
void fluid_book(struct request *r);
void fluid_book_export(struct request *r);
void fluid_book_delete(struct request *r);
void fluid_book_task_add(struct request *r);
void fluid_book_task_change(struct request *r);
void fluid_book_task_delete(struct request *r);
void fluid_book_reorder(struct request *r);
void fluid_job_create(struct request *r);
void fluid_job(struct request *r);
void fluid_job_stream(struct request *r);
extern const struct fluid_form fluid_book_form, fluid_book_task_form, fluid_book_change_form,
    fluid_book_order_form, fluid_job_form;
void fluid_generate(struct request *r); /* generate.c */
void fluid_publish(struct request *r);  /* publish.c */
extern const struct fluid_form fluid_publish_form;

/* --- SSH certificates (access.c) --- */

void fluid_access_request(struct request *r);
void fluid_access_authority(struct request *r);
void fluid_certificate(struct request *r);
void fluid_certificates(struct request *r);
void fluid_certificate_revoke(struct request *r);
void fluid_session_start(struct request *r);
void fluid_session_end(struct request *r);
void fluid_access_sessions(struct request *r);
extern const struct fluid_form fluid_access_form, fluid_revoke_form, fluid_session_start_form,
    fluid_session_end_form;

/* --- people (human.c) --- */

void fluid_ask(struct request *r);
void fluid_ask_async(struct request *r);
void fluid_pending(struct request *r);
void fluid_pending_one(struct request *r);
void fluid_question(struct request *r);
void fluid_respond(struct request *r);
void fluid_cancel(struct request *r);
extern const struct fluid_form fluid_ask_form, fluid_respond_form;

/* --- the agent interface (control.c, tmux.c, tool.c, file.c, audit.c) --- */

void fluid_with_box(struct request *r); /* calls the row's in_box */
struct alias_name fluid_control_name(const struct request *r);
void fluid_tmux_sessions(struct request *r);
void fluid_tmux_windows(struct request *r);
void fluid_tmux_panes(struct request *r);
void fluid_tmux_session_create(struct request *r, struct sandbox *s);
void fluid_tmux_pane_create(struct request *r, struct sandbox *s);
void fluid_tmux_send(struct request *r);
void fluid_tmux_switch(struct request *r);
void fluid_tmux_read(struct request *r);
void fluid_tmux_pane_kill(struct request *r);
void fluid_tmux_session_kill(struct request *r);
void fluid_tmux_release(struct request *r);
void fluid_terminal_create(struct request *r);
void fluid_terminals(struct request *r);
void fluid_terminal(struct request *r);
void fluid_terminal_kill(struct request *r);
extern const struct fluid_form fluid_tmux_form, fluid_keys_form, fluid_read_form,
    fluid_terminal_form;
void fluid_tool_run(struct request *r, struct sandbox *s);
void fluid_tool_allowed(struct request *r);
extern const struct fluid_form fluid_tool_form;
/* The rules of commands and paths; NULL: none. */
const struct policy *fluid_rules(const struct request *r);
bool fluid_path_is_denied(const struct request *r, struct str path);
void fluid_file_read(struct request *r, struct sandbox *s);
void fluid_file_write(struct request *r, struct sandbox *s);
void fluid_file_edit(struct request *r, struct sandbox *s);
void fluid_file_copy(struct request *r, struct sandbox *s);
void fluid_file_delete(struct request *r, struct sandbox *s);
void fluid_file_list(struct request *r, struct sandbox *s);
void fluid_file_exists(struct request *r, struct sandbox *s);
void fluid_file_hash(struct request *r, struct sandbox *s);
extern const struct fluid_form fluid_file_form, fluid_copy_form;
void fluid_plan_create(struct request *r);
void fluid_plans(struct request *r);
void fluid_plan(struct request *r);
void fluid_plan_update(struct request *r);
void fluid_plan_advance(struct request *r);
void fluid_plan_abort(struct request *r);
void fluid_plan_delete(struct request *r);
extern const struct fluid_form fluid_plan_form;
void fluid_audit_query(struct request *r);
void fluid_audit_stats(struct request *r);
extern const struct fluid_form fluid_audit_form;

/* --- state --- */

struct fluid {
    struct list streams;  /* struct stream */
    struct list recorded; /* struct recorded: sessions that clients reported */
    size_t recorded_count;
    int64_t ticks;
};
struct fluid *fluid_of(const struct api *a);
void fluid_recorded_done(struct fluid *f);
