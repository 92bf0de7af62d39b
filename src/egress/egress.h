/* egress: shared by the parts of holt-egress.  One loop, one thread; every byte that a sandbox
 * sends, and every byte that comes back for it, is hostile and bounded.
 * A sandbox (box) is its policy, its listeners and its connections.  holtd configures it over the
 * link and may be away: everything continues with the last configuration. */
#pragma once

#include "base/fd.h"
#include "base/list.h"
#include "base/map.h"
#include "egress/names.h"
#include "net/resolver.h"
#include "proto/binding.h"
#include "proto/policy.h"
#include "wire/egress.h"
#include "wire/spawn.h"

#include <uv.h>

#define BOX_CONNECTIONS 512   /* of one sandbox, concurrently */
#define BOX_DESTINATIONS 4096 /* destinations whose budgets are counted */
#define BOX_VERDICTS 50       /* reported per second; more are only counted */
#define EGRESS_SCRATCH (128 * 1024)

struct dial_tls;
struct egress {
    uv_loop_t loop;
    struct resolver *resolver;
    struct dial_tls *trusted; /* authorities for servers of intercepted connections */
    struct map boxes;         /* struct box, by id */
    size_t connections, connections_max;
    char *scratch;        /* a shared buffer for reading */
    struct map questions; /* struct conn, by the number of its question */
    uint64_t last_question;
    struct fd_spares spares; /* at least as many as one packet of the link carries */
};
_Static_assert(FD_SPARES >= EGRESS_FDS_MAX, "a sandbox's listeners come in one packet");

struct spent { /* what a sandbox has used of one destination */
    uint64_t bytes, connections;
};

struct listener {
    struct box *box;
    enum spawn_listener kind;
    int fd; /* -1: none */
    uv_poll_t poll;
};

struct box {
    int refs; /* held by the map, each connection, each open handle */
    struct egress *all;
    char id[EGRESS_ID_MAX + 1], alias[EGRESS_ALIAS_MAX + 1];
    struct policy *policy;
    struct bindings *bindings; /* NULL: no secrets */
    struct names *names;
    struct listener listeners[SPAWN_LISTENER_COUNT];
    struct list conns, dns_conns;
    size_t conn_count, dns_count;
    struct map spent; /* by "host:port"; only with budgets */
    int64_t second;   /* when verdicts was last zero */
    uint32_t verdicts, folded;
    int64_t came_back_ms; /* when counting of values in replies began */
    size_t came_back;
    size_t guessed; /* requests that contained a value itself */
    bool removed;
    bool is_set; /* false: only its secrets have arrived */
};

/* --- box.c --- */
/* fds: one per kind; always taken.  A known box keeps its listeners. */
CHECKED int box_set(struct egress *all, const struct egress_set *set, const int *fds,
                    struct err *e);
/* Replaces its secrets; those of an unknown sandbox are kept for its box_set. */
CHECKED int box_secrets(struct egress *all, const struct egress_secrets *s, struct err *e);
/* A connection that holtd hands over; fd is taken.  That of an unknown box is closed. */
void box_lead(struct egress *all, const struct egress_lead *m, int fd);
void box_remove(struct egress *all, struct str id); /* ends its connections; ignores unknown ids */
/* A box for connections without credentials yet: in no map, with one listener. */
struct box *box_new_nobody(struct egress *all, int fd);
void box_close(struct box *b); /* closes its listeners and connections */
/* -1: none waiting; with EMFILE: there was no descriptor, and the connection was closed. */
int box_accept(struct listener *l);
struct box *box_ref(struct box *b);
struct box *box_unref(struct box *b); /* takes NULL; returns NULL */
DEFINE_AUTO(struct box *, box_unref)
/* NULL: no budget is set, or too many destinations are counted already (*ret_full). */
struct spent *box_spent(struct box *b, const struct host *h, unsigned port, bool *ret_full);

/* --- conn.c, relay.c --- */
struct conn;
void conn_accept(struct listener *l);
/* One that holtd hands over; takes fd.  to: its destination; NULL: it is meant for the proxy. */
void conn_led(struct box *b, int fd, const struct ip *to, unsigned port);
void conn_close_all(struct box *b, const char *why);
/* Ends the connections that its policy no longer allows, or that its secrets forbid. */
void conn_judge_all(struct box *b);
void conn_answer(struct egress *all, const struct egress_answer *a);
void conn_ask_again(struct egress *all); /* a new holtd: repeats all open questions */

/* --- dnsd.c --- */
void dnsd_datagrams(struct listener *l);
void dnsd_accept(struct listener *l);
void dnsd_led(struct box *b, int fd); /* a connection that holtd hands over; takes fd */
void dnsd_close_all(struct box *b);

/* --- gate.c --- */
CHECKED int gate_open(struct egress *all, const struct egress_listen *l, struct err *e);

/* --- link.c: holtd --- */
/* Serves holtd's user (`served`) and root. */
CHECKED int link_open(struct egress *all, const char *state, uid_t served, struct err *e);
bool link_is_up(void);                                       /* holtd is connected and can answer */
void link_verdict(struct box *b, struct egress_verdict *v);  /* id and folded are set here */
CHECKED bool link_question(const struct egress_question *q); /* false: too many wait to be sent */
