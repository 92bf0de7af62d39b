/* loadout: declarations of what a sandbox has: packages, languages, agents, files
 * (docs/loadouts.md). Those of holt are part of the program (loadouts/ in the source); those of the
 * operator are read from a directory at start-up.  A declaration is resolved (its `extends` merged,
 * parents first) and becomes the steps of a build (core/imagebuild); the image of the last one is
 * named by the hash of all, so that the same declaration on the same base is built once. Ownership:
 * the registry's.  Thread: the loop's.  Errors: -1 with *e set. */
#pragma once

#include "core/imagebuild/build.h"
#include "proto/json.h"

struct loadouts;

/* Where tools go if /usr/local cannot be written, as on the host image. */
#define LOADOUT_PREFIX "/opt/tools"
#define LOADOUT_PATH LOADOUT_PREFIX "/bin:/opt/cargo/bin:/opt/go/bin"

struct loadout_file { /* one that is part of the program: made by tools/embed-loadouts */
    const char *path, *text;
};
extern const struct loadout_file loadout_files[];
extern const size_t loadout_file_count;

struct loadouts_config {
    const char *dir;    /* of the operator; NULL or "": none */
    char *const *image; /* that loadouts are built on: read at each use */
};
/* Blocking: at start-up only, before rights are given up: the directory may be root's.  A file of
 * the operator's that is wrong is an error. */
CHECKED int loadouts_open(const struct loadouts_config *c, struct loadouts **ret, struct err *e);
/* Before the first build. */
void loadouts_start(struct loadouts *l, struct builds *builds, struct images *images);
struct loadouts *loadouts_free(struct loadouts *l); /* takes NULL; returns NULL */
const json_t *loadouts_registry(const struct loadouts *l);

struct loadout_info { /* of one file, as it is written; borrowed */
    const char *path, *name;
    bool layer;
    const json_t *manifest;
};
bool loadout_at(const struct loadouts *l, size_t i, struct loadout_info *ret); /* false: the end */
/* By name ("claude-only") or path ("profiles/claude-only.yaml"). */
CHECKED int loadout_find(const struct loadouts *l, struct str ref, struct loadout_info *ret,
                         struct err *e);

/* What a request names: one of these. */
struct loadout_ref {
    struct str name;           /* a name or path */
    const json_t *manifest;    /* an object, or a text of YAML */
    const json_t *composition; /* {"init", "aiwg": {"frameworks", "providers"}} */
};
bool loadout_ref_is_empty(const struct loadout_ref *r);
/* Without `extends`; the caller's. */
CHECKED int loadout_resolve(const struct loadouts *l, const struct loadout_ref *r, json_t **ret,
                            struct err *e);

struct loadout_plan { /* the steps of a resolved one; owns its memory */
    struct arena arena;
    struct build_step steps[BUILD_STEPS_MAX];
    size_t step_count;
    struct str name;  /* "claude-only" */
    struct str image; /* the name of its image: "loadout/claude-only:HASH" */
    int64_t cpu_millis, memory_bytes, disk_bytes; /* 0: none */
    struct str network; /* a policy as JSON, or "none"; empty: the maker's own choice */
    struct str base;    /* the image it is built on */
};
void loadout_plan_done(struct loadout_plan *p);
static inline UNUSED void loadout_plan_done_p(struct loadout_plan *p)
{
    loadout_plan_done(p);
}
/* base: empty: the setting's.  Free it with loadout_plan_done. */
CHECKED int loadout_plan_make(const struct loadouts *l, const json_t *resolved, struct str base,
                              const struct principal *by, struct loadout_plan *ret, struct err *e);
/* The image of it that this caller may use; NULL: it is not built. */
struct image *loadout_image(const struct loadouts *l, const struct principal *by,
                            const struct loadout_plan *p);
CHECKED int loadout_build(struct loadouts *l, const struct loadout_plan *p, struct str runtime,
                          bool fresh, const struct principal *by, struct build **ret,
                          struct err *e);

/* Runs its steps in a sandbox that is there. */
CHECKED int loadout_install(struct loadouts *l, const struct loadout_plan *p, struct sandbox *into,
                            const struct principal *by, struct build **ret, struct err *e);

/* merge (resolve.c): `over` wins; lists of texts are joined without repeats, in order. */
void loadout_merge(json_t *to, const json_t *over);
/* steps.c */
CHECKED int loadout_steps(const json_t *resolved, struct loadout_plan *to, struct err *e);
