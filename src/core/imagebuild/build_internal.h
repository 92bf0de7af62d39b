/* build_internal: shared by the files of core/imagebuild: a build, and the run of one script for
 * it. */
#pragma once

#include "base/arena.h"
#include "base/list.h"
#include "core/exec/exec.h"
#include "core/imagebuild/build.h"
#include "proto/digest.h"

struct step {
    struct build_step s; /* in the build's arena */
    enum build_mark mark;
    int64_t began_ms, took_ms;
};

struct build {
    struct list link;
    struct builds *all;
    char id[ID_SIZE];
    struct principal by; /* token is NULL */
    struct arena arena;
    struct str name, what, from, runtime, defaults, path, network, context;
    bool fresh, cancel, busy;
    enum build_state state;
    struct step *steps;
    size_t step_count, at;
    char key[2 * SHA256_SIZE + 1]; /* of all steps so far */
    char image[ID_SIZE];           /* the image of the last step; the base's before */
    struct err err;
    struct buf log;
    int64_t created_ms, ended_ms;
    struct list waits;

    struct sandbox *box, *into;
    struct run *run;   /* the script under way; NULL: none */
    char dir[ID_SIZE]; /* of the layer being made; "": none */
};

struct builds {
    struct builds_config c;
    struct list list; /* struct build, oldest first */
    size_t count;
    uv_timer_t *soon; /* starts what waits, in the next turn */
    bool closed, trims;
};

/* Runs it in a new sandbox of this image; then calls done, with the sandbox in b->box still. */
struct build_run {
    struct str script;
    const struct build_step *step;
    bool probing; /* without a network; its output is not logged */
    void (*done)(struct build *b, int exit_code, struct str output, const struct err *e);
};
void build_run(struct build *b, const struct build_run *r);          /* build_run.c */
void build_drop_box(struct build *b, void (*then)(struct build *b)); /* then: may be NULL */
void build_kill(struct build *b);   /* its command, if one is under way */
void build_let_go(struct build *b); /* holtd stops */
/* Makes the files of b->box an image of this name. */
void build_commit(struct build *b, const char *name,
                  void (*done)(struct build *b, const char *image, const struct err *e));
bool build_stops(struct build *b); /* it was cancelled, or holtd stops: leave the step */
void build_end(struct build *b, const struct err *e);
