/* build: makes an image step by step.  Each step is a shell script that runs in a sandbox of its
 * own, made from the image of the step before; its files become a layer, and the layer an image of
 * the source "cache" whose name is the hash of all that led to it.  A step whose image is there
 * already does not run.  At most `running` builds run; others wait.  Builds are in memory: those of
 * a killed holtd are gone, and begun again they find their steps in the cache.
 * With `into` the steps run in a sandbox that is there, one after the other: for runtimes whose
 * sandboxes have no layers.
 * Ownership: the registry's; a build is borrowed until the loop turns.  Thread: the loop's. */
#pragma once

#include "base/arena.h"
#include "core/image/image.h"
#include "core/sandbox/sandbox.h"

struct builds;
struct build;

#define BUILD_STEPS_MAX 50           /* a sandbox lies on at most 60 layers */
#define BUILD_CONTEXT "/run/context" /* where the context is mounted, read-only */

struct builds_config {
    uv_loop_t *loop;
    struct sandboxes *sandboxes;
    struct images *images;
    struct space *space;
    const int64_t *step_ms, *cache_max, *running; /* read at each use */
    const struct conf_list *hosts, *env; /* reached by steps; "NAME=value" for each of them */
};
struct builds *builds_new(const struct builds_config *c);
/* Before sandboxes_close: what runs is let go.  builds_free after store_close and the loop. */
void builds_close(struct builds *l);
struct builds *builds_free(struct builds *l); /* takes NULL; returns NULL */
void builds_tick(struct builds *l);           /* once a second */

struct build_step {
    struct str name;   /* for people */
    struct str script; /* for /bin/sh */
    struct str probe;  /* its output is part of the hash: run first, without a network; or empty */
    const struct pair *env;
    size_t env_count;
    struct str cwd, user; /* empty: the image's */
    bool needs_context;
};
enum build_state {
    BUILD_WAITING,
    BUILD_RUNNING,
    BUILD_READY,
    BUILD_FAILED,
    BUILD_CANCELLED,
    BUILD_STATE_COUNT
};
extern const char *const build_state_names[BUILD_STATE_COUNT + 1];
enum build_mark {
    BUILD_STEP_WAITS,
    BUILD_STEP_RUNS,
    BUILD_STEP_CACHED,
    BUILD_STEP_DONE,
    BUILD_STEP_FAILED
};
extern const char *const build_mark_names[];

struct build_spec {  /* valid during the call */
    struct str name; /* of the image */
    struct str what; /* "loadout claude-only": for people */
    struct str from; /* the image it starts from */
    struct str runtime;
    const struct build_step *steps;
    size_t step_count;
    struct str defaults;  /* JSON: members that replace those of `from` */
    struct str path;      /* directories, joined by ':', in front of the image's PATH; or empty */
    struct str network;   /* of steps, as in sandbox_spec; empty: the hosts of the setting */
    struct str context;   /* a volume of the caller's; empty: none */
    bool fresh;           /* do not use the cache */
    struct sandbox *into; /* run the steps in this one, and make no image; NULL: see above */
};

struct build_info {
    const char *id;
    struct str name, what, owner, tenant, from;
    enum build_state state;
    struct str image; /* its id, when ready */
    struct str failure;
    size_t step_count, at; /* at: the step under way */
    int64_t created_ms, ended_ms;
    struct str log; /* the last 64 KiB of the output of its steps */
};
struct build_step_info {
    struct str name;
    enum build_mark mark;
    int64_t took_ms;
};

/* What steps reach without a network of their own: the hosts of the setting, as a policy. */
struct str builds_network(const struct builds *l, struct arena *a);

typedef void (*build_cb)(void *arg, struct build *b, const struct err *e);
/* -1 with *e, or 0 and *ret is listed.  One of the same image that is under way is that one. */
CHECKED int build_start(struct builds *l, const struct build_spec *s, const struct principal *by,
                        struct build **ret, struct err *e);
/* done when it has ended, in a later turn: e is why it failed.  The handle ends the wait before;
 * takes NULL. */
struct build_wait;
struct build_wait *build_wait(struct build *b, build_cb done, void *arg);
void build_wait_cancel(struct build_wait *w);
CHECKED int build_cancel(struct build *b, struct err *e);
struct build *build_find(struct builds *l, const struct principal *by, bool change, struct str id,
                         struct err *e);
/* Whether an image that the caller sees may stand for a build of its own. */
bool build_may_use(const struct principal *by, const struct image_info *i);
struct build *build_next(struct builds *l, const struct principal *by, struct str after);
void build_info(const struct build *b, struct build_info *ret);
void build_step_info(const struct build *b, size_t i, struct build_step_info *ret);
