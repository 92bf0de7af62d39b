/* exec: one command in a sandbox and its output log.
 * The log is one append-only file STATE/execs/SB/EX.log of records (core/exec/exec_log.h); holtd
 * acknowledges to init after write().  Small output stays in memory and with init for a moment
 * before there is a file; at the end it is stored in the row.  Readers read from the file at any
 * offset, also after the end; a slow reader slows only itself.  A command survives holtd and is
 * attached again afterwards.  Ownership: counted references.  Thread: the loop's. */
#pragma once

#include "base/metric.h"

#include "core/sandbox/sandbox.h"

struct exec;

extern const struct commands_ops exec_commands; /* for sandboxes_open */

enum exec_state {
    EXEC_STARTING,
    EXEC_RUNNING,
    EXEC_EXITED,
    EXEC_FAILED,
    EXEC_LOST,
    EXEC_STATE_COUNT
};

#define EXEC_TIMEOUT_MAX_MS (366LL * 24 * 3600 * 1000)

struct exec_spec { /* valid during the call */
    const struct str *argv;
    size_t argc;
    struct str shell;   /* instead of argv: run by /bin/sh -c */
    bool image_command; /* instead of both: the command of the sandbox's image */
    const struct pair *env;
    size_t env_count;
    struct str cwd, user;
    int64_t timeout_ms; /* 0: none; at most EXEC_TIMEOUT_MAX_MS */
    bool pty, want_stdin, merge, kill_rest;
    int rows, cols;
    int64_t output_bytes; /* kept; 0: the default */
    bool block_when_full; /* slow the command down instead of dropping the oldest output */
    /* only while there is a reader: stop blocking on a full log once its last reader has gone */
    bool for_reader;
    /* It is a session: a terminal with a name that no other running one in its sandbox has. */
    struct str name;
    /* Its place in a trace, as traceparent (empty: none), and the span above it in hex.  The
     * command gets it as TRACEPARENT, its events name both. */
    struct str trace, trace_parent;
    bool standing; /* the sandbox's own command: does not count as activity */
    /* the client hears of it at its end only: its row may be written with that */
    bool quiet_start;
    /* or NULL; with one, init hears of the command only after the commit: it runs once, whatever
     * crashes */
    const struct tx_hook *tx_hook;
    void *tx_hook_arg; /* exec_start frees it */
    struct str again;  /* start nothing: the id of the command that the same request started */
};

struct exec_info { /* borrowed until the loop turns */
    const char *id;
    const char *sandbox;
    enum exec_state state;
    const struct str *argv;
    size_t argc;
    struct str cwd, user, failure;
    bool pty, timed_out, cancelled, oom;
    bool takes_input; /* it is running, and its standard input is open */
    int exit_code;    /* -1: none; 128 + n for a signal */
    int signal;       /* 0: none */
    int64_t created_ms, started_ms, ended_ms, duration_ms, timeout_ms;
    int64_t created_us, ended_us; /* moments: unique in the daemon */
    int64_t user_us, system_us, max_rss_kib;
    struct str name;                              /* of a session; empty: it is none */
    int rows, cols;                               /* of its terminal now; 0: it has none */
    int64_t out_from, out_end, err_from, err_end; /* bytes kept: [from, end) */
    uint32_t pid;                                 /* as seen inside the sandbox */
};

typedef void (*exec_cb)(void *arg, struct exec *x, const struct err *e);
/* done is called when it runs (or could not be started: then x is NULL, or has state failed). */
void exec_start(struct sandbox *s, const struct exec_spec *spec, const struct principal *by,
                exec_cb done, void *arg);
struct exec *exec_find(struct sandbox *s, struct str id, struct err *e);
struct exec *exec_newest(struct sandbox *s, struct err *e);  /* likewise: the newest one */
struct exec *exec_next(struct sandbox *s, struct str after); /* by id; NULL at the end */
/* The session of this name: the running one, or else the one that ended last. */
struct exec *exec_named(struct sandbox *s, struct str name);
void exec_info(const struct exec *x, struct exec_info *ret);
const char *exec_state_name(enum exec_state s);
/* Since holtd started: how many commands ended, by their outcome, and how long they ran. */
enum exec_result { EXEC_RESULT_SUCCESS, EXEC_RESULT_FAILED, EXEC_RESULTS };
int64_t exec_results(enum exec_result r);
extern struct metric exec_seconds;
struct exec *exec_ref(struct exec *x);
struct exec *exec_unref(struct exec *x);
DEFINE_AUTO(struct exec *, exec_unref)
struct sandbox *exec_sandbox(const struct exec *x);

/* Calls done once the command has ended and its end is stored; in the next turn if it already
 * has.  The returned handle cancels the wait until done was called; takes NULL. */
struct exec_wait;
struct exec_wait *exec_wait(struct exec *x, exec_cb done, void *arg);
void exec_wait_cancel(struct exec_wait *w);

void exec_signal(struct exec *x, int signal, exec_cb done, void *arg);
/* Kills everything it started; done is called when its end is stored. */
void exec_cancel(struct exec *x, exec_cb done, void *arg);
void exec_resize(struct exec *x, int rows, int cols, exec_cb done, void *arg);
/* Returns the number of bytes taken.  If it is less than offered, room is called (once) when there
 * is room, unless another call comes before: one writer at a time (core/exec/console.h). */
size_t exec_stdin(struct exec *x, struct str bytes, bool eof, void (*room)(void *arg), void *arg);

/* --- reading the output --- */

/* Adds what is kept of a stream's beginning after its oldest output was dropped: at most max
 * bytes. */
struct buf;
CHECKED int exec_beginning(struct exec *x, bool err, size_t max, struct buf *to, struct err *e);

enum exec_which { EXEC_STDOUT = 1, EXEC_STDERR = 2, EXEC_BOTH = 3 };
struct exec_reader;
struct exec_reader_ops {
    /* One record; offset within its stream.  Returns 1 to pause until exec_reader_resume. */
    int (*bytes)(void *arg, enum exec_which stream, int64_t offset, int64_t time_us,
                 struct str bytes);
    int (*gap)(void *arg, enum exec_which stream, int64_t from,
               int64_t to); /* dropped because of the limit */
    /* The last call: the end of the log, or a failure.  The reader is freed with it. */
    void (*end)(void *arg, const struct err *e);
    /* The terminal has this size from here on; called before the first bytes too.  time_us 0: since
     * its start.  Returns as bytes does; may be NULL. */
    int (*size)(void *arg, int64_t offset, int64_t time_us, int rows, int cols);
};
/* From these stream offsets on (negative: relative to the end); follow: waits for more until the
 * command ends. */
struct exec_reader *exec_read(struct exec *x, enum exec_which which, int64_t out_offset,
                              int64_t err_offset, bool follow, const struct exec_reader_ops *ops,
                              void *arg);
void exec_reader_resume(struct exec_reader *r); /* not from within a callback */
/* No call after it.  Not after `end` was called.  Takes NULL. */
void exec_reader_end(struct exec_reader *r);
/* Each variable of the sandbox's commands, "NAME=value"; a request's own come before them. */
void exec_each_env(const struct sandbox *s, void (*each)(void *arg, struct str text), void *arg);

/* Commands that ended longer ago, with their output.  dry: only counts them. */
struct execs_pruned {
    int64_t commands, bytes;
    bool more; /* than are removed at once */
};
void execs_prune(struct sandboxes *l, int64_t older_ms, bool dry, struct execs_pruned *ret);
