/* session_in: the input half of a session: typed or piped input, signals, the terminal's
 * size.  Private to session. */
#pragma once

#include "cli/modes.h"
#include "cli/request.h"
#include "cli/session.h"
#include "cli/sink.h"
#include "cli/source.h"

#define SESSION_SIGNALS 8

struct ws_client;

struct session {
    const struct target *t;
    const struct session_spec *spec;
    struct session_end *end;
    struct client_url url; /* borrowed, as are tls and headers */
    struct dial_tls *tls;
    struct request_headers headers;
    uv_loop_t *loop;
    struct ws_client *ws; /* NULL: not connected */
    uv_timer_t timer;
    struct sink out[2];
    bool shows_terminal; /* standard output is a terminal, and the command has one */
    struct modes modes;  /* the terminal modes set by the command */
    int64_t seen[2];     /* offsets after the output written so far */
    struct err e;
    struct err said; /* by the server: the reason if the session ends without an exit */
    int64_t lost_ms; /* when the connection was lost; 0: it is not */
    bool open, ever_open, exited, left, over, retrying;
    bool no_reader; /* standard output is broken */
    bool killed;
    bool observer; /* the server takes no input (any more) */
    /* input */
    struct source in;
    struct detach detach;
    struct buf typed;
    uv_signal_t signals[SESSION_SIGNALS];
    size_t signal_count;
    int64_t last_int_ms, sent;
    const char *held_signal; /* arrived before the command had started */
    char *signal_target;     /* for sending signals past input that the command does not read */
    int asides;              /* requests in progress */
    bool started, raw, eof;
};

void session_in_init(struct session *s);
void session_in_start(struct session *s); /* the command accepts input */
void session_in_room(struct session *s);  /* the connection has room again */
void session_in_close(struct session *s);
/* session.c */
void session_leave(struct session *s, enum session_how how, int status);
void session_send(struct session *s, const char *json);
/* session_signal.c: "INT".  Sent by a request of its own: a message would wait behind unread
 * input. */
void session_signal(struct session *s, const char *name);
void session_name(struct session *s, const json_t *exec); /* remembers which command this is */
