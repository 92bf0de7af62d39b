/* socket: private to the dialect: one client of the WebSocket (docs/agentic.md): messages about
 * agents (socket.c, socket_agent.c), what it is told (socket_push.c), and sessions that it has
 * joined (socket_join.c).  A slow client slows only its own readers; what was dropped meanwhile is
 * told.
 * Ownership: counted references: of the socket, and of work under way.  Thread: the loop's. */
#pragma once

#include "api/dialects/agentic/agentic.h"
#include "api/share/revocable_stream.h"
#include "core/exec/console.h"
#include "core/session/live.h"
#include "net/ws.h"

#define SOCKET_TAILS_MAX 1024 /* commands that one client follows */
#define SOCKET_JOINS_MAX 256

struct socket_client {
    struct list link;
    int refs;
    struct request *r; /* NULL: its socket is closed */
    struct api *api;
    struct principal who;
    struct ws *ws;
    char name[24];        /* "ws-1a2b3c4d" */
    bool content, events; /* what it may be told */
    bool everything;      /* subscribed to all agents */
    struct map agents;    /* ids of sandboxes it has subscribed to */
    struct list tails;    /* struct tail: output that it follows */
    struct list joins;    /* struct join: sessions that it is in */
    size_t tail_count, join_count;
    struct subscription *sub;
    struct revocable_stream life;
};

void socket_unref(struct socket_client *c);
/* Sends one message; 1: wait for room. */
int socket_tell(struct socket_client *c, const struct buf *json);
void socket_error(struct socket_client *c, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* Whether the caller may act now: a gate or a revocation may have come since it connected.  false:
 * the client was told. */
bool socket_may_write(struct socket_client *c);
/* The sandbox of the message's agent_id; NULL: the client was told. */
struct sandbox *socket_agent(struct socket_client *c, const json_t *m);

/* socket_push.c */
void push_begin(struct socket_client *c);
void push_end(struct socket_client *c);
void push_room(struct socket_client *c);                     /* the client reads again */
void push_agent(struct socket_client *c, struct sandbox *s); /* follows its commands from now on */
void push_drop(struct socket_client *c, const char *sandbox);
void push_metrics(struct socket_client *c);
bool push_wants(const struct socket_client *c, const char *sandbox);

/* socket_join.c */
void join_session(struct socket_client *c, const json_t *m);
void leave_session(struct socket_client *c, const json_t *m);
void session_input(struct socket_client *c, const json_t *m);
void session_resize(struct socket_client *c, const json_t *m);
void joins_room(struct socket_client *c);
void joins_end(struct socket_client *c);

/* socket_agent.c: the messages about agents; false: the type is unknown. */
bool socket_hear(struct socket_client *c, struct str type, const json_t *m);
