/* session_in: the half of a session that goes to the command: what is typed or piped,
 * signals, the size of the terminal.  Private to session. */
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
    bool shows_terminal; /* standard output is one, and the command has one */
    struct modes modes;  /* what the command did to it */
    int64_t seen[2];     /* offsets of the output behind what was written */
    struct err e;
    struct err said; /* by the server: why, if the session ends without an exit */
    int64_t lost_ms; /* since when; 0: it is not */
    bool open, ever_open, exited, left, over, retrying;
    bool no_reader; /* standard output is broken */
    bool killed;
    bool observer; /* input is not wanted (any more) */
    /* in */
    struct source in;
    struct detach detach;
    struct buf typed;
    uv_signal_t signals[SESSION_SIGNALS];
    size_t signal_count;
    int64_t last_int_ms, sent;
    const char *held_signal; /* came before the command had started */
    char *signal_target;     /* where signals go past input that the command does not read */
    int asides;              /* requests under way */
    bool started, raw, eof;
};

void session_in_init(struct session *s);
void session_in_start(struct session *s); /* the command takes input */
void session_in_room(struct session *s);  /* the connection does again */
void session_in_close(struct session *s);
/* session.c */
void session_leave(struct session *s, enum session_how how, int status);
void session_send(struct session *s, const char *json);
/* session_signal.c: "INT".  Behind input that the command does not read a message would wait. */
void session_signal(struct session *s, const char *name);
void session_name(struct session *s, const json_t *exec); /* which command this is */
