/* egress: what the parts of holt-egress share.  One loop, one thread; every byte that a sandbox
 * sends, and every byte that comes back for it, is hostile and bounded.
 * A sandbox (box) is its policy, its listeners and its connections; holtd tells of it over the link
 * and may be gone meanwhile: everything goes on as it was told last. */
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

#define BOX_CONNECTIONS 512   /* of one sandbox at once */
#define BOX_DESTINATIONS 4096 /* whose budgets are counted */
#define BOX_VERDICTS 50       /* told in a second; more are counted */
#define EGRESS_SCRATCH (128 * 1024)

struct dial_tls;
struct egress {
    uv_loop_t loop;
    struct resolver *resolver;
    struct dial_tls *trusted; /* who may sign for servers of intercepted connections */
    struct map boxes;         /* struct box, by id */
    size_t connections, connections_max;
    char *scratch;        /* one read's bytes: all connections share it */
    struct map questions; /* struct conn, by the question's number */
    uint64_t last_question;
    struct fd_spares spares; /* at least as many as one packet of the link carries */
};
_Static_assert(FD_SPARES >= EGRESS_FDS_MAX, "a sandbox's listeners come in one packet");

struct spent { /* what one destination has cost a sandbox */
    uint64_t bytes, connections;
};

struct listener {
    struct box *box;
    enum spawn_listener kind;
    int fd; /* -1: none */
    uv_poll_t poll;
};

struct box {
    int refs; /* the map's, each connection's, each open handle's */
    struct egress *all;
    char id[EGRESS_ID_MAX + 1], alias[EGRESS_ALIAS_MAX + 1];
    struct policy *policy;
    struct bindings *bindings; /* NULL: it has no secrets */
    struct names *names;
    struct listener listeners[SPAWN_LISTENER_COUNT];
    struct list conns, dns_conns;
    size_t conn_count, dns_count;
    struct map spent; /* by "host:port"; only with budgets */
    int64_t second;   /* when verdicts was last zero */
    uint32_t verdicts, folded;
    int64_t came_back_ms; /* when the count of values in replies began */
    size_t came_back;
    bool removed;
    bool is_set; /* else its secrets came first */
};

/* --- box.c --- */
/* fds: one for each kind; taken in every case.  A known box keeps its listeners. */
CHECKED int box_set(struct egress *all, const struct egress_set *set, const int *fds,
                    struct err *e);
/* In place of those it had; of an unknown one they are kept for its box_set. */
CHECKED int box_secrets(struct egress *all, const struct egress_secrets *s, struct err *e);
void box_remove(struct egress *all, struct str id); /* its connections end; unknown: nothing */
/* Of connections that have not said whose they are: in no map, with one listener. */
struct box *box_new_nobody(struct egress *all, int fd);
void box_close(struct box *b); /* its listeners and connections end */
/* -1: nobody waits; with EMFILE: somebody did, there was no descriptor, and they are hung up on. */
int box_accept(struct listener *l);
struct box *box_ref(struct box *b);
struct box *box_unref(struct box *b); /* takes NULL; returns NULL */
DEFINE_AUTO(struct box *, box_unref)
/* NULL: no budget is set, or too many destinations are counted already (*ret_full). */
struct spent *box_spent(struct box *b, const struct host *h, unsigned port, bool *ret_full);

/* --- conn.c, relay.c --- */
struct conn;
void conn_accept(struct listener *l);
void conn_close_all(struct box *b, const char *why);
/* Ends those that its policy does not allow any more, or that its secrets do not let be. */
void conn_judge_all(struct box *b);
void conn_answer(struct egress *all, const struct egress_answer *a);
void conn_ask_again(struct egress *all); /* holtd is another one: all open questions */

/* --- dnsd.c --- */
void dnsd_datagrams(struct listener *l);
void dnsd_accept(struct listener *l);
void dnsd_close_all(struct box *b);

/* --- gate.c --- */
CHECKED int gate_open(struct egress *all, const struct egress_listen *l, struct err *e);

/* --- link.c: holtd --- */
/* Serves `served`, holtd's user, and root. */
CHECKED int link_open(struct egress *all, const char *state, uid_t served, struct err *e);
bool link_is_up(void);                                       /* holtd is there and may be asked */
void link_verdict(struct box *b, struct egress_verdict *v);  /* id and folded are set here */
CHECKED bool link_question(const struct egress_question *q); /* false: too many wait to be told */
