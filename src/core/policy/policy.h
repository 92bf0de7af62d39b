/* policy: rules for commands, paths, time and output under a name (docs/policies.md).
 * A sandbox has its own policy, those that name its agent, and for agents the installation's: all
 * that are in force must allow an action, and in each deny wins.  core/exec asks before it starts a
 * command; the path rules go to the sandbox's init with its connection, which holds them for
 * files and commands.  Policies belong to the installation; those it ships cannot be changed.
 * Rows are class 1: a rule that was acknowledged is not lost; each change is an event.
 * Ownership: the registry's.  Thread: the loop's. */
#pragma once

#include "base/id.h"
#include "core/identity/identity.h"
#include "proto/json.h"

#define POLICIES_MAX 256    /* of an installation */
#define POLICIES_OF_AGENT 6 /* that name the same agent */
#define POLICIES_IN_FORCE 8 /* in one sandbox: those, its own, the default */
#define POLICY_NAME_MAX 63
#define POLICY_DEFAULTS "fluid-defaults" /* the lists of the described system of that name */

enum policy_list {
    POLICY_COMMANDS_ALLOW,
    POLICY_COMMANDS_DENY,
    POLICY_COMMANDS_RESERVED,
    POLICY_WORDS_DENY,
    POLICY_PATHS_ALLOW,
    POLICY_PATHS_DENY,
    POLICY_WRITE_ALLOW,
    POLICY_WRITE_DENY,
    POLICY_AGENTS,
    POLICY_LIST_COUNT
};
extern const char *const policy_lists[POLICY_LIST_COUNT]; /* their names in JSON */

struct policy_texts {
    struct str *v;
    size_t n;
};
struct policy_rules { /* 0: none */
    struct policy_texts list[POLICY_LIST_COUNT];
    int64_t timeout_ms;     /* of a command whose request says nothing */
    int64_t timeout_max_ms; /* that a request may ask for */
    int64_t output_bytes;   /* kept of a command at most */
};

struct policies;
struct policy;
struct policy_info {
    const char *id;
    struct str name, created_by;
    const struct policy_rules *rules;
    int64_t created_ms, updated_ms;
    bool shipped;
    size_t sandboxes; /* whose own it is */
};

/* Reads the rows (blocking: at start-up only). */
CHECKED int policies_open(struct store *store, struct policies **ret, struct err *e);
/* After store_close, and after the last user.  Takes NULL; returns NULL. */
struct policies *policies_free(struct policies *l);
/* The policy of every agent (setting 'agent_policy'; empty: none); it must exist. */
CHECKED int policies_set_agents(struct policies *l, struct str name, struct err *e);
/* Called when a policy has changed, or one that names agents was made or removed. */
void policies_on_change(struct policies *l, void (*changed)(void *arg), void *arg);

typedef void (*policy_cb)(void *arg, struct policy *p,
                          const struct err *e); /* p: not of a remove */
struct policy_call {
    const struct principal *by;
    policy_cb done;
    void *arg;
};
/* rules: a JSON object of the lists and numbers; of a change only those that change.  All three: -1
 * with *e, and done is not called; or 0, and it is called later. */
CHECKED int policy_create(struct policies *l, struct str name, const json_t *rules,
                          const struct policy_call *c, struct err *e);
CHECKED int policy_update(struct policy *p, const json_t *rules, const struct policy_call *c,
                          struct err *e);
CHECKED int policy_remove(struct policy *p, const struct policy_call *c, struct err *e);

struct policy *policy_find(struct policies *l, struct str ref, struct err *e); /* id or name */
struct policy *policy_next(struct policies *l, struct str after); /* by id; NULL: the end */
void policy_info(const struct policy *p, struct policy_info *ret);
void policy_put_rules(struct jw *w, const struct policy_rules *r); /* members of an object */

/* A policy that is a sandbox's own cannot be removed. */
struct policy *policy_hold(struct policy *p);    /* takes NULL */
struct policy *policy_release(struct policy *p); /* takes NULL; returns NULL */

struct policy_subject {
    struct policy *own; /* or NULL */
    struct str agent;   /* empty: none */
    bool by_agent;      /* the role of its maker, or of the caller */
};
struct policy_force {
    struct policy *v[POLICIES_IN_FORCE];
    size_t n;
};
void policies_in_force(struct policies *l, const struct policy_subject *s,
                       struct policy_force *ret);
bool policy_has_paths(const struct policy_force *f);

/* --- policy_command.c: pure --- */

struct policy_command {
    const struct str *argv;
    size_t argc;
    struct str line; /* for the shell; then argc is 0 */
    const struct str *env;
    size_t env_count; /* names that the request sets */
};
CHECKED int policy_check_command(const struct policy *p, const struct policy_command *c,
                                 struct err *e);
/* ERR_FORBIDDEN with the policy and the way to a change as its hint. */
int policy_refuse(const struct policy *p, struct err *e, const char *fmt, ...) PRINTF_LIKE(3, 4);
