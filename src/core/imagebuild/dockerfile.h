/* dockerfile: a Dockerfile as the steps of a build.  Pure: bytes in, a spec out, in the arena.
 * Errors name the line. */
#pragma once

#include "core/imagebuild/build.h"

struct dockerfile_in {
    struct str text;
    const struct pair *args; /* of --build-arg */
    size_t arg_count;
    bool has_context;
    /* The defaults of an image as JSON, for the variables of its environment; NULL: none. */
    struct str (*defaults)(void *arg, struct str image);
    void *arg;
};
/* Fills from, steps and defaults. */
CHECKED int dockerfile_read(const struct dockerfile_in *in, struct arena *a, struct build_spec *ret,
                            struct err *e);
