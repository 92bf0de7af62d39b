/* conn: one connection of a sandbox, from its first byte to its last.
 *
 *   sniff ─▶ HTTP head, or SOCKS greeting and request ─┐
 *   (redirected: the destination is known) ────────────┴▶ waits: checked, asked, resolved, dialled
 *        ─▶ TLS hello, if the verdict requires one ─▶ relay, or intercept ─▶ gone
 *   refused or failed: a reply with the reason ─▶ linger ─▶ gone
 *
 * Plain descriptors in a pollset: the relay copies through one shared buffer and holds memory only
 * while a peer reads too slowly.  Freed when its timer is closed.  Thread: the loop's. */
#pragma once

#include "egress/egress.h"
#include "egress/pollset.h"
#include "proto/http1.h"

#define CONN_HEAD_MAX (32 * 1024)
#define CONN_HEAD_MS 15000  /* for the first bytes: a request's head, a greeting, a hello */
#define CONN_DIAL_MS 20000  /* to resolve and connect */
#define CONN_ASK_MS 3700000 /* for a person; holtd keeps the deadline, which is sooner */
#define CONN_IDLE_MS 3600000
#define CONN_HALF_MS 300000 /* without a byte after one side has ended */
#define CONN_LINGER_MS 5000
#define CONN_LINGER_MAX (1024 * 1024)
#define CONN_ADDRESSES 4 /* tried in turn */
#define BUDGET_SPENT "the budget for this destination is spent"

enum conn_state {
    CONN_SNIFF,
    CONN_HTTP,
    CONN_SOCKS_GREETING,
    CONN_SOCKS_REQUEST,
    CONN_WAITS,
    CONN_HELLO,
    CONN_RELAY,
    CONN_INTERCEPT,
    CONN_LINGER,
    CONN_CLOSED,
};

struct side {
    struct conn *c;
    struct polled io;
    struct buf out; /* output the peer has not read */
    bool eof;       /* it has stopped sending */
    bool shut;      /* we have stopped sending */
};

struct conn {
    struct list link;
    struct box *box;
    struct ip peer; /* at the gate only */
    enum conn_state state;
    struct side client, server;
    uv_timer_t timer;
    struct buf in; /* from the client, before the relay */
    enum egress_via via;
    struct host host;
    unsigned port;
    struct policy_verdict verdict;
    bool told; /* "allowed" was reported */
    struct lookup *lookup;
    uint64_t question; /* 0: no question was asked */
    bool granted;      /* by a person, for this connection only */
    struct ip addresses[CONN_ADDRESSES];
    size_t address_count, address_next;
    struct spent *spent;
    uint64_t up, down;
    int64_t begun_ms, moved_ms;
    size_t lingered;

    /* one plain HTTP request */
    struct http1_scan scan;
    struct http1_body body;
    struct buf head; /* as sent to the server */
    bool request_done;

    struct intercept *intercept; /* NULL: bytes are relayed unchanged */
};

/* --- conn.c --- */
void conn_end(struct conn *c, const char *why);   /* at once; harmless when it has ended */
void conn_reset(struct conn *c, const char *why); /* the client sees an error, not an end of file */
void conn_expire(struct conn *c, int64_t ms);
/* bytes the peer does not read yet wait in out */
void conn_send(struct side *to, struct str bytes);
CHECKED bool conn_flush(struct side *s); /* false: the peer will never read more */
void conn_forget_question(struct conn *c);
void conn_linger(struct conn *c); /* sends out, then waits briefly for the peer's end */
void conn_tell(struct conn *c, enum egress_what what, const char *rule);
CHECKED bool conn_spend(struct conn *c, size_t n); /* false: the budget is used up */

/* --- request.c: the client's request --- */
void request_input(struct conn *c); /* input before the relay */
/* rule: for the event; shown: for the sandbox. */
void request_refused_as(struct conn *c, const char *rule, const char *shown);
void request_refused(struct conn *c, const char *rule); /* by the policy */
void request_failed(struct conn *c, const char *why);   /* by an error outside */
void request_accepted(struct conn *c);                  /* the server is connected */

/* --- gate.c: connections with credentials --- */
/* Makes room for one more without credentials: closes the oldest such one, preferably of a peer
 * that has many. */
void gate_make_room(struct box *b, int fd);
struct ip gate_peer(int fd);
bool gate_is_before(const struct conn *c); /* it has not shown credentials yet */
CHECKED int gate_admit(struct conn *c, const struct http_req *r, struct err *e);

/* --- target.c: from a name and a port to a connected server --- */
void target_begin(struct conn *c);
void target_dialled(struct conn *c);           /* the server's descriptor is writable, or failed */
CHECKED bool target_ask(const struct conn *c); /* sends its open question to holtd */
void target_answered(struct conn *c, const struct egress_answer *a);
void target_judge_again(
    struct conn *c); /* it waits for an answer or a name, and the policy has changed */
bool target_is_allowed(struct conn *c); /* by the current policy */

/* --- intercept.c --- */
bool intercept_is_needed(const struct conn *c, const struct policy_verdict *v);
void intercept_begin(struct conn *c);
bool intercept_is_late(
    struct conn *c); /* with TLS, when its time is over; the connection has then been ended */
void intercept_ready(struct side *s, uint32_t events);
/* The sandbox's secrets have changed; false: the reply in progress cannot be searched for them. */
CHECKED bool intercept_follows(struct conn *c);
void intercept_free(struct intercept *t); /* takes NULL */

/* --- relay.c --- */
void relay_begin(struct conn *c);
void relay_ready(struct side *s, uint32_t events);
