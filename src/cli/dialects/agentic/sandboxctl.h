/* sandboxctl: the operator's command of agentic-sandbox, as a name of holt (docs/sandboxctl.md).
 * A command is a row of ctl_verbs: its words and flags make one request below /api/v1, its columns
 * print the reply.  Those with more to do have a run function.
 * Errors are printed here, in the original's form; run functions return -1 with *e, and the exit
 * status is that of e->code in ctl_status(). */
#pragma once

#include "cli/cli.h"
#include "cli/context.h"
#include "cli/request.h"
#include "proto/json.h"

extern const struct verb sandboxctl_verb, agentic_sandbox_verb;

enum ctl_kind { CTL_TEXT, CTL_NUMBER, CTL_BOOL, CTL_LIST };
enum ctl_place { CTL_OWN, CTL_QUERY, CTL_BODY }; /* own: read by the run function */
struct ctl_flag {
    const char *name;
    char letter;
    enum ctl_kind kind;
    enum ctl_place place;
    const char *field;  /* in the query or body; NULL: its name */
    const char *preset; /* NULL: left out */
    const char *label;  /* of its value, in the help */
    const char *value;  /* of a bool: this text instead of true */
};

#define CTL_WORDS 4
struct ctl;
struct ctl_call;
struct ctl_verb {
    const char *path;  /* "task artifacts list" */
    const char *usage; /* of its words: "ID" */
    const char *text;
    unsigned words; /* positional ones; all are needed unless optional says how many are not */
    unsigned optional;
    const char *method; /* NULL: run makes its own requests */
    const char *target; /* "/api/v1/agents/%s": each %s is the next word */
    const char *into;   /* the first word's member of the body */
    const char *rest;   /* words after "--": the member of the body they make; "" for run */
    const struct ctl_flag *flags;
    const char *items;   /* of a list */
    const char *columns; /* "ID=id,IP=ip_address"; of one object: NULL */
    bool command;        /* words after the positional ones are a command, without "--" too */
    bool destroys;       /* asks first */
    bool changes;        /* is in the audit log */
    bool local;          /* needs no server */
    bool waits;          /* --wait waits for the operation of the reply */
    int (*run)(struct ctl *x, const struct ctl_call *k, struct err *e);
};
extern const struct ctl_verb ctl_verbs[];
extern const size_t ctl_verb_count;

struct ctl_call { /* a command line */
    const struct ctl_verb *v;
    const char *words[CTL_WORDS];
    json_t *flags; /* by name; owned */
    json_t *rest;  /* the words after "--"; owned */
};
const char *ctl_text(const struct ctl_call *k, const char *flag); /* NULL: not given */
bool ctl_is(const struct ctl_call *k, const char *flag);

struct ctl {
    struct cli *c;
    struct target t;
    char *context_name;           /* NULL: none was chosen */
    const char *server, *context; /* flags */
    const char *watch;
    bool json, yes, help;
};

/* --- requests (verb.c) --- */

struct ctl_request {
    const char *method, *target;
    const json_t *body; /* NULL: none */
    const char *accept;
    int (*part)(void *arg, struct str bytes);
    const char *type; /* of bytes */
    struct str bytes; /* a body that is not JSON */
    void *arg;
};
/* *ret: the reply as JSON, or NULL if it has no body.  A GET that fails is tried twice. */
CHECKED int ctl_ask(struct ctl *x, const struct ctl_request *rq, json_t **ret, struct err *e);
CHECKED int ctl_get(struct ctl *x, const char *target, json_t **ret, struct err *e);
void ctl_target(const struct ctl_call *k, struct buf *to);
int ctl_status(const struct err *e);
CHECKED int ctl_wait(struct ctl *x, const char *operation, int64_t limit_ms, struct err *e);

/* --- output (show.c) --- */

void ctl_show(const struct ctl *x, const struct ctl_verb *v, const json_t *reply);
void ctl_print(const char *fmt, ...) PRINTF_LIKE(1, 2); /* a line; control characters escaped */
void ctl_help(const char *prefix);                      /* the commands below it; NULL: all */

/* --- files (files.c) --- */

CHECKED int ctl_choose(struct ctl *x, struct err *e);
/* intent: before it is done; then its outcome, e->code says which. */
void ctl_audit(const struct ctl *x, const struct ctl_call *k, bool intent, int64_t ms,
               const struct err *e);
#define CTL_RUN(name) CHECKED int name(struct ctl *x, const struct ctl_call *k, struct err *e)
CTL_RUN(ctl_set_context);
CTL_RUN(ctl_use_context);
CTL_RUN(ctl_contexts);
CTL_RUN(ctl_whoami);
CTL_RUN(ctl_audit_tail);
CTL_RUN(ctl_audit_grep);
CTL_RUN(ctl_audit_path);

/* --- sessions (session.c) --- */

CTL_RUN(ctl_session_list);
CTL_RUN(ctl_session_get);
CTL_RUN(ctl_session_tail);
CTL_RUN(ctl_session_record);
CTL_RUN(ctl_session_input);
CTL_RUN(ctl_session_resize);
CTL_RUN(ctl_session_attach);
CTL_RUN(ctl_attach);
CTL_RUN(ctl_shell);
CTL_RUN(ctl_exec);

/* --- the rest (work.c) --- */

CTL_RUN(ctl_task_submit);
CTL_RUN(ctl_task_logs);
CTL_RUN(ctl_push);
CTL_RUN(ctl_event_list);
CTL_RUN(ctl_event_tail);
CTL_RUN(ctl_health);
CTL_RUN(ctl_ops_wait);
CTL_RUN(ctl_completions);
