/* tool: one program in a throw-away sandbox.  holtd executes nothing itself (docs/hardening.md):
 * programs run for it, such as an unpacker, a plugin, a notify command, run this way, with the
 * files, network and limits they need and no others.
 * Life of a run: start; write as it takes bytes; eof; done is the last call, comes exactly once and
 * never from inside a call, unless cancel or leave came before.  A run that holtd left, or was
 * killed in, goes on and is found again by its name.  Thread: the loop's. */
#pragma once

#include "core/sandbox/sandbox.h"

#define TOOL_LABEL "holt.internal" /* of its sandbox; the value is the spec's name */

struct tool_file {      /* created before the program starts */
    struct str path;    /* inside the sandbox */
    struct str content; /* borrowed until done or cancel */
    int mode;
};

struct tool_result {
    int exit_code; /* 128 + n for a signal */
    bool timed_out, oom;
    struct str failure;  /* why it could not run, or was lost; empty: it ran */
    struct str out, err; /* its output, each cut at output_max; borrowed during the call */
};

struct tool_events {
    void (*room)(void *arg); /* write took less than offered, and there is room again; or NULL */
    /* Its output as it comes, both streams as one, from 0 on; or NULL. */
    void (*output)(void *arg, int64_t offset, struct str bytes);
    /* Its standard output as it comes, instead of in the result; however much it is, the program
     * waits.  Returns 1 to pause until tool_go_on.  NULL: not used. */
    int (*piped)(void *arg, struct str bytes);
    /* e: it could not be run; an exit status other than 0 is a result. */
    void (*done)(void *arg, const struct tool_result *r, const struct err *e);
    void *arg;
};

struct tool_spec {          /* valid during the call */
    const char *name;       /* used in the sandbox's label */
    const struct str *argv; /* the program by its path inside: a file below, or one of the host's */
    size_t argc;
    const struct pair *env;
    size_t env_count;
    const struct tool_file *files;
    size_t file_count;
    const struct sandbox_mount *mounts; /* of any kind, read-only or writable */
    size_t mount_count;
    struct str network;               /* "none", or a policy as JSON */
    const struct secret_use *secrets; /* bound to hosts of the network */
    size_t secret_count;
    const struct principal *by; /* whose secrets and volumes it uses; NULL: holtd's own */
    struct sandbox_limits limits;
    int64_t time_ms; /* after that it is killed */
    size_t output_max;
    int64_t log_bytes; /* kept while holtd is away; 0: 64 KiB */
    /* In the transaction of the command's row; with one the program runs once, whatever crashes. */
    const struct tx_hook *tx_hook;
    void *tx_hook_arg; /* tool_start frees it */
    bool takes_input;  /* otherwise its standard input is empty */
    struct tool_events events;
};

struct tool; /* one run */
struct tool *tool_start(struct sandboxes *l, const struct tool_spec *s);
size_t tool_write(struct tool *t, struct str bytes); /* returns the number of bytes taken */
void tool_eof(struct tool *t);
void tool_go_on(struct tool *t);      /* not from within piped */
void tool_cancel(struct tool *t);     /* no call after it */
bool tool_runs(const struct tool *t); /* its program does: it can be left */
void tool_leave(struct tool *t);      /* no call after it; the program goes on */
/* The sandbox of a run of this name; NULL: there is none. */
struct sandbox *tool_left(struct sandboxes *l, const char *name);
/* Continues with one that was left.  NULL: its sandbox or its command is gone. */
struct tool *tool_resume(struct sandboxes *l, const char *name, size_t output_max,
                         const struct tool_events *events);
/* Destroys the sandboxes of tools of this name that a holtd of before has started: nobody reads
 * their output.  since: when this one was started, by the wall clock.  After sandboxes_settled. */
void tools_sweep(struct sandboxes *l, const char *name, int64_t since_ms);
