/* scripted: a runtime and an init that do as a test says: each call is counted, its end comes when
 * the test wants it.  The init speaks the guest protocol over a socket pair. */
#pragma once

#include "base/buf.h"
#include "core/sandbox/driver.h"
#include "wire/guest.h"

#define SCRIPT_EXECS 8

enum script_call {
    CALL_CREATE,
    CALL_CONNECT,
    CALL_KILL_WORK,
    CALL_KILL_ALL,
    CALL_REMOVE,
    CALL_KEEP, /* remove, with the files kept */
    CALL_PAUSE,
    CALL_RESUME,
    CALL_ADOPT,
    CALL_CONFIRM,
    CALL_LIST,
    CALL_COUNT
};

struct script_exec { /* what init knows */
    char id[GUEST_EXEC_ID_MAX + 1];
    uint32_t channel; /* 0: nobody is attached */
    struct buf out;
    uint64_t acked;
    bool ended, forgotten;
    uint8_t killed; /* the last signal */
    int code;       /* negative: a signal */
};

struct script {
    int calls[CALL_COUNT];       /* how often */
    struct err fail[CALL_COUNT]; /* if set: how the next ones end */
    bool hold[CALL_COUNT];       /* their ends wait for script_release */
    bool silent;                 /* init does not answer */
    bool deaf;                   /* init ignores signals */
    int fd;                      /* init's end; -1: not connected */
    uint8_t epoch[16];
    struct script_exec execs[SCRIPT_EXECS];
    size_t exec_count;
    struct driver_found found[8];
    size_t found_count;
    struct driver_events events;
};

extern struct script script;
extern const struct driver_ops driver_scripted;

void script_reset(void);
void script_release(enum script_call c);
void script_serve(void); /* reads what holtd sent, answers */
void script_drop(void);  /* the connection breaks */
void script_output(struct script_exec *x, struct str bytes);
void script_exit(struct script_exec *x, int code);
void script_took(const struct script_exec *x, uint64_t bytes); /* of its input, so far */
