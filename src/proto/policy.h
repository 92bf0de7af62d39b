/* policy: what a sandbox may reach, as data and as a judge (docs/egress.md has the rules).
 * Deny beats allow; no rule names it: the mode answers, or a person (`unknown: ask`).  A name
 * grants by name, an address by network only; an address that a name leads to is judged again. No
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
extern const char *const policy_modes[]; /* by enum policy_mode; NULL behind the last */

struct policy;

/* {"mode", "allow", "deny", "unknown", "connections", "bytes"}, or a mode's name as text.
 * intercept: method and path rules can be kept; without it they are refused. */
CHECKED int policy_parse(struct str json, bool intercept, struct policy **ret, struct err *e);
/* Is the text a rule of that list: 'host', '*.host', a network or an address, perhaps with a port?
 */
bool policy_is_rule(struct str text, bool allow);
/* What people write for a host, as a rule: of a URL its host and port; ".example.com" is
 * "*.example.com". */
struct str policy_host_rule(struct str host, struct arena *a);
struct policy *policy_free(struct policy *p); /* takes NULL; returns NULL */
DEFINE_AUTO(struct policy *, policy_free)
enum policy_mode policy_mode(const struct policy *p);
void policy_print(const struct policy *p, struct buf *to); /* its one JSON form */

enum policy_answer { POLICY_DENY, POLICY_ALLOW, POLICY_ASK };
/* Verdicts on what no rule is about: one more rule (--allow) would let it through. */
#define POLICY_NO_RULE "no rule allows this host and port"
#define POLICY_NO_NETWORK "no allowed network has this address and port"

struct policy_verdict {
    enum policy_answer answer;
    bool tls;            /* allowed for TLS only: a ClientHello that names the host comes first */
    bool http;           /* it is plain HTTP, by its port or the rule's scheme */
    bool intercept;      /* some rule is about some requests to it: each must be judged */
    const char *special; /* "private": the kind of an address that may not be dialled; or NULL */
    char rule[POLICY_RULE_TEXT]; /* which decided, for people: "allow *.example.com:443" */
};
struct policy_query {
    const struct host *host;
    unsigned port;
    /* Of one request; empty: about the connection, before any is known. */
    struct str method, path;
};
void policy_judge(const struct policy *p, const struct policy_query *q, struct policy_verdict *ret);
/* May this address be dialled for a host that was allowed?  ret->rule has the address, for who may
 * see it; ret->special is its kind, where that is the reason. */
void policy_judge_address(const struct policy *p, const struct host *h, const struct ip *a,
                          unsigned port, struct policy_verdict *ret);
/* An operator lets this host ('name' or '*.name') lead into this network, whatever it is for.
 * False: it is none of these. */
bool policy_is_internal(struct str host, struct str network); /* is it one? */
bool policy_add_internal(struct policy *p, struct str host, struct str network);

/* Budgets of one destination (host and port); 0: none. */
uint64_t policy_bytes_max(const struct policy *p);
uint64_t policy_connections_max(const struct policy *p);

/* Answers of people, for this sandbox until its policy is set anew: a rule for one host and port.
 * It counts where the policy asks, behind its own rules. */
void policy_learn(struct policy *p, const struct host *h, unsigned port, bool allow);
