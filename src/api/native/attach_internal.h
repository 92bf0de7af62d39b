/* attach_internal: a client attached to a command over a WebSocket: its messages to the client
 * (attach_say.c), those from it (attach_hear.c), screens (attach_screen.c), and its life
 * (attach.c). */
#pragma once

#include "api/native/handlers.h"
#include "api/native/run.h"
#include "api/share/revocable_stream.h"
#include "api/share/sandbox.h"
#include "base/mem.h"
#include "core/exec/console.h"
#include "core/session/live.h"
#include "net/ws.h"

struct attach_screen { /* the screen of the terminal, as the client has it */
    struct live_watch watch;
    struct timer due;    /* of the next update */
    uint64_t seen;       /* seq of the last update; 0: none yet */
    int64_t sent_ms;     /* when that was */
    int64_t period_ms;   /* the least time between two */
    bool on;             /* updates are wanted */
    bool repaint;        /* the output begins with what draws the screen as it is */
    bool pending, whole; /* an update waits for room; the next one is a keyframe */
};

struct attach { /* on the heap: removing a run's sandbox may take longer than the socket lives */
    struct request *r; /* valid while ws is */
    struct api *api;
    struct ws *ws; /* NULL: closed */
    struct exec *x;
    struct exec_reader *reader;
    struct exec_wait *wait;
    struct console_seat seat;
    char *name; /* of its seat */
    struct attach_screen screen;
    struct timer members; /* a message about them is due */
    struct revocable_stream live;
    struct run *run; /* of run.attach */
    struct buf held; /* input that the command does not take yet */
    struct buf frame;
    int64_t sent[2];    /* offsets: output up to here was sent */
    int64_t full_since; /* the client does not read, since this time (monotonic); 0: it does */
    bool raw;           /* output as it is */
    bool eof;           /* after `held` */
    bool run_asked;     /* the first message of run.attach has arrived */
    bool read_over, ended, exit_sent;
};

/* attach.c */
void attach_finish(struct attach *a); /* if all is sent: reports the exit */
void attach_fail(struct attach *a, const struct err *e);
void attach_read(struct attach *a, int64_t out_offset, int64_t err_offset);
void attach_drop_input(struct attach *a);

/* attach_say.c */
void say_exec(struct attach *a, const char *type);
void say_error(struct attach *a, const struct err *e);
void say_role(struct attach *a);
void say_members(struct attach *a);
void say_lag(struct attach *a, int64_t ms);
/* These return 1 to wait for room, as ws_send does. */
int say_text(struct attach *a, const struct buf *json);
int say_bytes(struct attach *a, enum exec_which stream, int64_t offset, struct str bytes);
int say_gap(struct attach *a, enum exec_which stream, int64_t from, int64_t to);
int say_size(struct attach *a, int64_t offset, int rows, int cols);

/* attach_hear.c */
void attach_hear(struct attach *a, enum ws_kind kind, struct str data);

/* attach_screen.c */
void attach_screen_begin(struct attach *a);
void attach_screen_end(struct attach *a);
void attach_screen_room(struct attach *a);  /* the client reads again */
void attach_screen_whole(struct attach *a); /* it wants a keyframe */
bool attach_screen_over(struct attach *a);  /* sends what is left; false: the log is not read */
