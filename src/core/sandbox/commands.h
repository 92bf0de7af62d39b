/* commands: the border between a sandbox and the commands in it.  core/exec gives the registry a
 * table of functions, and may know and do about a sandbox what is declared below; neither room sees
 * the other's structs.
 * Ownership: the registry makes and frees the objects of core/exec through the table; those of a
 * sandbox live as long as the sandbox.  Thread: the loop's. */
#pragma once

#include "core/sandbox/sandbox.h"

struct arena;
struct execs; /* of core/exec: all commands of this registry */
struct store_tx;
struct timers;
struct guest_hello_init;

/* The commands of one sandbox: core/exec counts, and has more behind it. */
struct sandbox_commands {
    size_t live;     /* not ended */
    size_t standing; /* of these: its own commands, which do not count as activity */
};

struct commands_ops {
    /* --- of the registry --- */
    struct execs *(*open)(struct sandboxes *all, struct timers *timers,
                          const struct sandboxes_config *c);
    /* Reads the rows, at start-up, once the sandboxes are there. */
    int (*load)(struct execs *all, struct store_tx *tx, struct err *e);
    void (*remove_stray_logs)(struct execs *all); /* of sandboxes that are gone */
    void (*close)(struct execs *all); /* makes the pending callbacks; no timer after it */
    void (*free)(struct execs *all);

    /* --- of one sandbox --- */
    struct sandbox_commands *(*attach)(struct execs *all, struct sandbox *s);
    /* Its init said hello; other: not the one that holtd knew. */
    void (*linked)(struct sandbox_commands *c, const struct guest_hello_init *h, bool other);
    void (*terminate)(struct sandbox_commands *c); /* TERM to all; they may take their time */
    void (*kill)(struct sandbox_commands *c);
    void (*lose)(struct sandbox_commands *c, const char *why); /* they have ended, unseen */
    void (*tick)(struct sandbox_commands *c);                  /* once a second */
    /* The sandbox leaves the registry: drops them all.  Their rows stay. */
    void (*drop)(struct sandbox_commands *c);
    void (*remove_logs)(struct sandbox_commands *c, void (*done)(void *arg), void *arg);
    int (*erase)(struct store_tx *tx, const char *sandbox, struct err *e); /* their rows */
    void (*free_one)(struct sandbox_commands *c);                          /* empty by then */
};

/* --- what core/exec may know of the registry --- */

struct execs *sandboxes_execs(const struct sandboxes *all);
struct sandbox *sandboxes_get(const struct sandboxes *all, struct str id); /* NULL: none */
bool sandboxes_is_closed(const struct sandboxes *all);
const struct ceilings *sandboxes_ceilings(const struct sandboxes *all);
size_t sandboxes_live_of(const struct sandboxes *all, const char *owner); /* commands */

/* --- and of one sandbox --- */

struct sandbox_defaults { /* of its image, for commands */
    char *json;           /* as stored in the row; NULL: none */
    struct pair *env;
    size_t env_count, env_bytes;
    struct str *argv; /* entrypoint and command */
    size_t argc;
    char *cwd, *user; /* "": none; NULL likewise */
};

const char *sandbox_id(const struct sandbox *s);
/* The policies of the caller, as an agent; those of the sandbox: sandbox_policies. */
void sandbox_policies_of(const struct sandbox *s, const struct principal *by,
                         struct policy_force *ret);
const char *sandbox_owner(const struct sandbox *s);
struct sandbox_commands *sandbox_commands(const struct sandbox *s);
const struct sandbox_defaults *sandbox_defaults(const struct sandbox *s);
const struct sandbox_traits *sandbox_traits(const struct sandbox *s);
bool sandbox_is_listed(const struct sandbox *s); /* in the registry */
/* Whether a command may start in it now. */
CHECKED int sandbox_takes_commands(const struct sandbox *s, struct err *e);
/* The variables that it gives to every command, the most important first; of the arena. */
const struct pair *sandbox_env(const struct sandbox *s, struct arena *a, size_t *ret_n);
struct guest *sandbox_link(const struct sandbox *s); /* NULL: its init is not connected */
/* 16 bytes, made once per life of an init: of the one that answered last.  NULL: none has yet. */
const uint8_t *sandbox_epoch(const struct sandbox *s);
int64_t sandbox_oom_ms(const struct sandbox *s); /* of its last OOM kill; 0: none */
/* Calls done after every OOM kill so far was reported.  False: its runtime reports none. */
CHECKED bool sandbox_ooms(struct sandbox *s, driver_done done, void *arg);
/* By the runtime, when init does not answer.  False: its runtime is not available. */
CHECKED bool sandbox_kill(struct sandbox *s, enum driver_scope scope, driver_done done, void *arg);
void sandbox_exec_over(struct sandbox *s); /* one of its commands has ended, and that is stored */
