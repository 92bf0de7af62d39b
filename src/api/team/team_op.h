/* team_op: private to src/api: the native operations on the team.  A row names an operation and a
 * function that runs on the store's thread with the operation's input, copied for it; its output is
 * the reply.  The rules are in src/core (agent, board, message, approval), shared by dialects. */
#pragma once

#include "api/reply_list.h"
#include "api/team/team_job.h"

struct team_call { /* one request */
    struct team_job job;
    const struct team_op *row;
    struct team t;
    struct arena arena;
    void *in;     /* the operation's input */
    json_t *body; /* for OP_JSON fields that point into it */
    /* Of a question about a refused request (gates.h): its action. */
    struct str action, arguments, hash, sandbox;
    int64_t people;
    int64_t head_seq; /* of the newest event, for a new webhook */
    struct str key;   /* the Idempotency-Key of an operation that keeps it itself */
    struct buf reply;
    struct jw w;
    bool implied; /* no credentials: agents and people look the same */
    /* Set by run: the reply waits until this question is decided, this long at most
     * (approval_wait.h); or it is the stream of its events. */
    struct str wait_for;
    int64_t wait_ms;
    bool follow;
    struct reply_list page;
};

struct team_op {
    const struct op *op;
    enum team_class class;
    int (*run)(struct team_call *c, struct err *e);
    const char *read_if; /* if this field is true, it only reads */
    bool gives_token;    /* registers the agent in 'name' */
    bool takes_tokens;   /* removes it */
    /* On the loop's thread, before run; may be NULL. */
    int (*prepare)(struct team_call *c, struct request *r, struct err *e);
    bool anyone; /* also for sandboxes that are no agents of the team */
};
extern const struct team_op team_agent_ops[], team_message_ops[], team_board_ops[],
    team_approval_ops[], team_webhook_ops[];
extern const size_t team_agent_op_count, team_message_op_count, team_board_op_count,
    team_approval_op_count, team_webhook_op_count;

struct str team_text(struct str s); /* absent is "" */
/* The acting name: an agent's own is known, TEAM_PERSON is the preset for people. */
#define TEAM_PERSON "human"
struct str team_name(const struct team_call *c, struct str name);
CHECKED int team_list_tags(struct team_call *c, struct op_list l, struct str *ret, struct err *e);
/* A field that must be an object, as text; absent: "{}". */
CHECKED int team_object(struct team_call *c, const char *field, const json_t *v, struct str *ret,
                        struct err *e);
