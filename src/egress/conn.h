/* conn: one connection of a sandbox, from its first byte to its last.
 *
 *   sniff ─▶ HTTP head, or SOCKS greeting and request ─┐
 *   (redirected: the destination is known) ────────────┴▶ waits: judged, asked, resolved, dialled
 *        ─▶ TLS hello, where the verdict wants one ─▶ relay, or intercept ─▶ gone
 *   refused or failed: a reply that says why ─▶ linger ─▶ gone
 *
 * Plain descriptors in a pollset: the relay copies by one shared buffer and holds memory only while
 * a peer does not take its bytes.  Freed when its timer is closed.  Thread: the loop's. */
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
    struct buf out; /* what the peer has not taken */
    bool eof;       /* it sends no more */
    bool shut;      /* we send no more */
};

struct conn {
    struct list link;
    struct box *box;
    struct ip peer; /* of one at the gate */
    enum conn_state state;
    struct side client, server;
    uv_timer_t timer;
    struct buf in; /* of the client, before the relay */
    enum egress_via via;
    struct host host;
    unsigned port;
    struct policy_verdict verdict;
    bool told; /* that it was allowed */
    struct lookup *lookup;
    uint64_t question; /* 0: nobody was asked */
    bool granted;      /* by a person, this one connection */
    struct ip addresses[CONN_ADDRESSES];
    size_t address_count, address_next;
    struct spent *spent;
    uint64_t up, down;
    int64_t begun_ms, moved_ms;
    size_t lingered;

    /* one plain HTTP request */
    struct http1_scan scan;
    struct http1_body body;
    struct buf head; /* as it goes to the server */
    bool request_done;

    struct intercept *intercept; /* NULL: its bytes are relayed as they are */
};

/* --- conn.c --- */
void conn_end(struct conn *c, const char *why);   /* at once; harmless when it has ended */
void conn_reset(struct conn *c, const char *why); /* the client sees an error, not an end */
void conn_expire(struct conn *c, int64_t ms);
void conn_send(struct side *to, struct str bytes); /* what is not taken waits in out */
CHECKED bool conn_flush(struct side *s);           /* false: the peer takes no more, ever */
void conn_forget_question(struct conn *c);
void conn_linger(struct conn *c); /* sends what is in out, then waits a little for the end */
void conn_tell(struct conn *c, enum egress_what what, const char *rule);
CHECKED bool conn_spend(struct conn *c, size_t n); /* false: of the budget nothing is left */

/* --- request.c: what the client asks for --- */
void request_input(struct conn *c); /* bytes came, before the relay */
/* rule: for the event; shown: for the sandbox. */
void request_refused_as(struct conn *c, const char *rule, const char *shown);
void request_refused(struct conn *c, const char *rule); /* by the policy */
void request_failed(struct conn *c, const char *why);   /* by the world */
void request_accepted(struct conn *c);                  /* the server is connected */

/* --- gate.c: connections that come with credentials --- */
/* Room for one more that has not shown credentials: the oldest such one goes, of the same peer if
 * that has many. */
void gate_make_room(struct box *b, int fd);
struct ip gate_peer(int fd);
bool gate_is_before(const struct conn *c); /* it has not said whose it is */
CHECKED int gate_admit(struct conn *c, const struct http_req *r, struct err *e);

/* --- target.c: from a name and a port to a connected server --- */
void target_begin(struct conn *c);
void target_dialled(struct conn *c);           /* the server's descriptor is writable, or failed */
CHECKED bool target_ask(const struct conn *c); /* tells holtd the question it waits for */
void target_answered(struct conn *c, const struct egress_answer *a);
void target_judge_again(
    struct conn *c); /* one that waits for an answer or a name: the policy is another */
bool target_is_allowed(struct conn *c); /* by the policy as it is now */

/* --- intercept.c --- */
bool intercept_is_needed(const struct conn *c, const struct policy_verdict *v);
void intercept_begin(struct conn *c);
bool intercept_is_late(
    struct conn *c); /* with TLS, when its time is over; then it has been ended */
void intercept_ready(struct side *s, uint32_t events);
/* The sandbox's secrets are others; false: what it reads now cannot be searched for them. */
CHECKED bool intercept_follows(struct conn *c);
void intercept_free(struct intercept *t); /* takes NULL */

/* --- relay.c --- */
void relay_begin(struct conn *c);
void relay_ready(struct side *s, uint32_t events);
