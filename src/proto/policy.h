/* policy: what a sandbox may reach: its data and its evaluation (docs/egress.md has the rules).
 * Deny beats allow; without a matching rule the mode decides, or a person (`unknown: ask`).  Names
 * are granted by name, addresses by network only; the address behind a name is checked again. No
 * I/O.  Ownership: policy_parse makes, policy_free frees.  Errors: -1 with *e set. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "proto/ip.h"

#define POLICY_TEXT_MAX (24 * 1024) /* bytes of its JSON form */
#define POLICY_RULES_MAX 256        /* of each list */
#define POLICY_RULE_TEXT 192

enum policy_mode { POLICY_NONE, POLICY_ALLOWLIST, POLICY_OPEN, POLICY_RAW, POLICY_MODE_COUNT };
extern const char *const policy_modes[]; /* by enum policy_mode; NULL after the last */

struct policy;

/* {"mode", "allow", "deny", "unknown", "connections", "bytes"}, or a mode's name as text.
 * intercept: rules about methods and paths can be enforced; without it they are refused. */
CHECKED int policy_parse(struct str json, bool intercept, struct policy **ret, struct err *e);
/* Whether the text is a valid rule of that list: 'host', '*.host', a network or an address, with an
 * optional port. */
bool policy_is_rule(struct str text, bool allow);
/* Turns a host as people write it into a rule: a URL becomes its host and port, ".example.com"
 * becomes "*.example.com". */
struct str policy_host_rule(struct str host, struct arena *a);
struct policy *policy_free(struct policy *p); /* takes NULL; returns NULL */
DEFINE_AUTO(struct policy *, policy_free)
enum policy_mode policy_mode(const struct policy *p);
void policy_print(const struct policy *p, struct buf *to); /* the canonical JSON form */

enum policy_answer { POLICY_DENY, POLICY_ALLOW, POLICY_ASK };
/* Verdicts without a matching rule: one more rule (--allow) would allow the connection. */
#define POLICY_NO_RULE "no rule allows this host and port"
#define POLICY_NO_NETWORK "no allowed network has this address and port"

struct policy_verdict {
    enum policy_answer answer;
    bool tls;       /* allowed for TLS only: a ClientHello that names the host must come first */
    bool http;      /* plain HTTP, by its port or the rule's scheme */
    bool intercept; /* a rule is about some requests to this host: check each one */
    /* "private": the kind of an address that may not be connected to; or NULL */
    const char *special;
    char rule[POLICY_RULE_TEXT]; /* the rule that decided, for people: "allow *.example.com:443" */
};
struct policy_query {
    const struct host *host;
    unsigned port;
    /* Of one request; empty: about the connection, before any request is known. */
    struct str method, path;
};
void policy_judge(const struct policy *p, const struct policy_query *q, struct policy_verdict *ret);
/* Whether this address of an allowed host may be connected to.  ret->rule has the address, for
 * those permitted to see it; ret->special is its kind, if that is the reason. */
void policy_judge_address(const struct policy *p, const struct host *h, const struct ip *a,
                          unsigned port, struct policy_verdict *ret);
/* An operator lets this host ('name' or '*.name') resolve into this network, even a private
 * one.  False: not valid. */
bool policy_is_internal(struct str host, struct str network); /* whether it is valid */
bool policy_add_internal(struct policy *p, struct str host, struct str network);

/* Budgets per destination (host and port); 0: none. */
uint64_t policy_bytes_max(const struct policy *p);
uint64_t policy_connections_max(const struct policy *p);

/* Adds a person's answer, a rule for one host and port, until the sandbox's policy is set
 * again.  It applies where the policy asks, after the policy's own rules. */
void policy_learn(struct policy *p, const struct host *h, unsigned port, bool allow);
