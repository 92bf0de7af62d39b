/* egress: the protocol between holtd and holt-egress (docs/protocol-egress.md), on a SOCK_SEQPACKET
 * Unix socket: one message per packet, descriptors beside it (SCM_RIGHTS).  A request carries a
 * tag, which its one `done` repeats; everything else has tag 0.  No I/O, no allocation.  Errors: 0,
 * or -1 with *e set. */
#pragma once

#include "wire/packet.h"

#define EGRESS_VERSION 3
#define EGRESS_PACKET_MAX PACKET_MAX
#define EGRESS_ID_MAX 31
#define EGRESS_ALIAS_MAX 287
#define EGRESS_FDS_MAX 4
#define EGRESS_POLICY_MAX (24 * 1024)
#define EGRESS_SECRETS_MAX (24 * 1024)
#define EGRESS_PEM_MAX (8 * 1024)
#define EGRESS_LEARNED_MAX (6 * 1024)

enum egress_side { EGRESS_HOST = PACKET_HOST, EGRESS_EGRESS = PACKET_HELPER };

enum egress_type {
    EGRESS_HELLO = 1,
    EGRESS_KNOWN = 2,   /* one per sandbox that holt-egress serves, then … */
    EGRESS_WELCOME = 3, /* … welcome */
    EGRESS_SET = 4,     /* a new sandbox with its listeners, or a new policy */
    EGRESS_REMOVE = 5,
    EGRESS_DONE = 6,
    EGRESS_VERDICT = 7,
    EGRESS_QUESTION = 8,
    EGRESS_ANSWER = 9,
    EGRESS_LISTEN = 10,  /* for clients with credentials */
    EGRESS_CA = 11,      /* the authority that signs certificates for intercepted hosts */
    EGRESS_SECRETS = 12, /* all secrets of one sandbox, replacing earlier ones */
    EGRESS_LEAD = 13,    /* with a socket: one connection of a sandbox whose init leads them out */
    EGRESS_TYPE_END
};

struct egress_hello {
    uint16_t version_min, version_max;
};
struct egress_welcome {
    uint16_t version; /* 0: none of the versions offered */
    uint32_t dropped; /* verdicts lost while holtd was away */
    uint8_t ca;       /* 1: it has an authority */
};
struct egress_name { /* known, remove */
    struct str id;
};
struct egress_set {
    struct str id;
    uint32_t kinds;     /* bits 1 << enum spawn_listener: one descriptor each; 0: policy only */
    struct str policy;  /* as proto/policy.h prints it */
    struct str learned; /* people's answers, one per line: "+host:port", "-host:port" */
    struct str alias;   /* another name of the sandbox in credentials; empty: none */
    uint8_t led;        /* 1: it has no listeners, its connections come by `lead` */
};
struct egress_lead {
    struct str id;
    uint8_t dns;     /* 1: DNS over a stream */
    struct str host; /* the destination's address; empty: the proxy itself */
    uint16_t port;
};
struct egress_done {
    struct err err;
};
enum egress_what { EGRESS_DENIED, EGRESS_ALLOWED, EGRESS_CLOSED, EGRESS_WHAT_COUNT };
enum egress_via { EGRESS_CONNECT, EGRESS_HTTP, EGRESS_SOCKS, EGRESS_PLAIN, EGRESS_VIA_COUNT };
extern const char *const egress_whats[EGRESS_WHAT_COUNT], *const egress_vias[EGRESS_VIA_COUNT];
struct egress_verdict {
    struct str id, host;
    uint16_t port;
    uint8_t what, via;
    struct str rule;   /* the rule that decided; in `closed`: why it was ended, else the rule that
                          allowed it */
    uint64_t up, down; /* bytes so far */
    uint64_t ms;       /* in `closed`: how long it lasted */
    uint32_t folded;   /* earlier verdicts that were only counted */
};
struct egress_question {
    uint64_t question;
    struct str id, host;
    uint16_t port;
};
struct egress_answer { /* for this one connection: lasting answers come with `set` */
    uint64_t question;
    uint8_t allow;
    struct str reason; /* of a refusal, for people */
};

struct egress_listen {
    struct str host; /* an address to listen on; a name: all addresses; empty: stop listening */
    uint16_t port;
    struct str key; /* the key that signs the credentials */
};
struct egress_ca {
    struct str cert, key; /* PEM */
};
struct egress_secrets {
    struct str id;   /* may be unknown still: the secrets are kept for its `set` */
    struct str json; /* as proto/binding.h parses it */
};

struct egress_msg {
    enum egress_type type;
    uint32_t tag; /* in set, remove, listen, ca, secrets and done only */
    union {
        struct egress_hello hello;
        struct egress_welcome welcome;
        struct egress_name name;
        struct egress_set set;
        struct egress_done done;
        struct egress_verdict verdict;
        struct egress_question question;
        struct egress_answer answer;
        struct egress_listen listen;
        struct egress_ca ca;
        struct egress_secrets secrets;
        struct egress_lead lead;
    } u;
};

extern const struct packet_type egress_types[EGRESS_TYPE_END];
extern const struct packet_protocol egress_protocol;

CHECKED int egress_encode(const struct egress_msg *m, enum egress_side from, struct wire_out *o,
                          struct err *e);
/* fds: the number of descriptors received with the packet.  After a failure the caller closes
 * them. */
CHECKED int egress_decode(struct str packet, size_t fds, enum egress_side from,
                          struct egress_msg *ret, struct err *e);
