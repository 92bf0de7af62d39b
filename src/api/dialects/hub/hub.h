/* hub: the dialect of the agent hub: wire format only; docs/hub.md.
 * A row names a route and a function that runs on the store's thread, inside work, with the request
 * copied for it; its output is the reply.  The rules are in src/core (agent, board, message,
 * approval).  Errors are {"error": "text"}. */
#pragma once

#include "api/dialects/dialect.h"
#include "api/team/team_job.h"

struct hub_call { /* one request */
    struct team t;
    struct arena arena;
    struct op_params path;
    struct str query;
    json_t *body; /* an object, or NULL */
    struct buf reply;
    struct jw w;
    int status;   /* of the reply; 0: 200 */
    bool implied; /* no credentials: agents and people look the same */
    bool at_page; /* a person with a browser: the agent it names does not act */
};

struct hub_row {
    const char *method, *path, *name;
    enum perm perm;
    enum team_class class;
    int (*run)(struct hub_call *c, struct err *e);
    bool about_it;       /* about an agent, by people: not a sign of its activity */
    bool task_400;       /* a missing task is 400 "Task not found" here */
    bool audited;        /* a read of content */
    bool creates;        /* as in struct route */
    bool gives_token;    /* registers: the reply has a token for the agent */
    bool takes_tokens;   /* removes: its tokens are revoked */
    int64_t body_max;    /* as in struct route */
    const char *read_if; /* if the query sets this to true, it only reads */
};
extern const struct hub_row hub_rows[]; /* rows.c */
extern const size_t hub_row_count;

#define HUB_DIALECT "hub"
extern const struct dialect dialect_hub;
void hub_fail(struct request *r, int status, const struct err *e);

/* Fields of the body: p NULL if absent; another type is an error. */
CHECKED int hub_text(const struct hub_call *c, const char *key, struct str *ret, struct err *e);
CHECKED int hub_int(const struct hub_call *c, const char *key, int64_t preset, int64_t *ret,
                    struct err *e);
CHECKED int hub_bool(const struct hub_call *c, const char *key, bool preset, bool *ret,
                     struct err *e);
/* A list, or a text with commas. */
CHECKED int hub_tags(struct hub_call *c, const char *key, struct str *ret, struct err *e);
/* An object, as JSON text. */
CHECKED int hub_object(struct hub_call *c, const char *key, struct str *ret, struct err *e);
/* Fields of the query. */
CHECKED int hub_query(struct hub_call *c, const char *key, struct str *ret, struct err *e);
CHECKED int hub_limit(struct hub_call *c, int64_t preset, int64_t *ret, struct err *e);

void hub_ktime(struct jw *w, const char *key, int64_t ms); /* naive UTC, as the hub writes it */
void hub_ok(struct hub_call *c);                           /* {"status":"ok"} */
/* 202 {"status": "pending_approval", "proposal_id": …} */
void hub_pending(struct hub_call *c, struct str proposal);

void hub_events(struct request *r); /* GET /events */
void hub_file_upload(struct request *r);
void hub_file_upload_fail(struct request *r, int status, const struct err *e);
void hub_file_download(struct request *r);
void hub_file_download_fail(struct request *r, int status, const struct err *e);
int hub_file_list(struct hub_call *c, struct err *e);
int hub_audit_log(struct hub_call *c, struct err *e);

int hub_ping(struct hub_call *c, struct err *e);
int hub_agent_register(struct hub_call *c, struct err *e);
int hub_agent_heartbeat(struct hub_call *c, struct err *e);
int hub_agent_remove(struct hub_call *c, struct err *e);
int hub_agent_list(struct hub_call *c, struct err *e);
int hub_agent_get(struct hub_call *c, struct err *e);
int hub_agent_autonomy(struct hub_call *c, struct err *e);
int hub_set_mode(struct hub_call *c, struct err *e);
int hub_agent_capabilities(struct hub_call *c, struct err *e);
int hub_capabilities(struct hub_call *c, struct err *e);
int hub_capabilities_match(struct hub_call *c, struct err *e);
int hub_checkpoint(struct hub_call *c, struct err *e);
int hub_checkpoint_get(struct hub_call *c, struct err *e);
int hub_checkpoint_list(struct hub_call *c, struct err *e);
int hub_pause(struct hub_call *c, struct err *e);
int hub_resume(struct hub_call *c, struct err *e);
int hub_revoke(struct hub_call *c, struct err *e);
int hub_revocation(struct hub_call *c, struct err *e);
int hub_revocation_ack(struct hub_call *c, struct err *e);
int hub_revocation_history(struct hub_call *c, struct err *e);
int hub_project_create(struct hub_call *c, struct err *e);
int hub_project_list(struct hub_call *c, struct err *e);
int hub_project_get(struct hub_call *c, struct err *e);
int hub_project_remove(struct hub_call *c, struct err *e);
int hub_project_join(struct hub_call *c, struct err *e);
int hub_project_wip(struct hub_call *c, struct err *e);
int hub_project_metrics(struct hub_call *c, struct err *e);
int hub_task_create(struct hub_call *c, struct err *e);
int hub_task_list(struct hub_call *c, struct err *e);
int hub_task_ready(struct hub_call *c, struct err *e);
int hub_task_get(struct hub_call *c, struct err *e);
int hub_task_claim(struct hub_call *c, struct err *e);
int hub_task_assign(struct hub_call *c, struct err *e);
int hub_task_unassign(struct hub_call *c, struct err *e);
int hub_task_move(struct hub_call *c, struct err *e);
int hub_task_reviewer(struct hub_call *c, struct err *e);
int hub_tasks(struct hub_call *c, struct err *e);
int hub_message_send(struct hub_call *c, struct err *e);
int hub_message_inbox(struct hub_call *c, struct err *e);
int hub_message_ack(struct hub_call *c, struct err *e);
int hub_message_history(struct hub_call *c, struct err *e);
int hub_message_graph(struct hub_call *c, struct err *e);
int hub_proposal_list(struct hub_call *c, struct err *e);
int hub_proposal_get(struct hub_call *c, struct err *e);
int hub_proposal_approve(struct hub_call *c, struct err *e);
int hub_proposal_reject(struct hub_call *c, struct err *e);
