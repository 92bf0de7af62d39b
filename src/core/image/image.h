/* image: the root filesystems of sandboxes, and their layers.
 * Layers are content-addressed (the SHA-256 of their archive) and shared:
 * STATE/layers/ID/{fs,meta}.  An image is a list of layers with a name; "host" always exists and
 * has none.  Rows are class 1.  A layer is removed when no image and no sandbox needs it any more.
 * Ownership: the registry's; infos are borrowed until the loop turns.  Thread: the loop's. */
#pragma once

#include "core/event/event.h"
#include "core/identity/identity.h"
#include "core/image/image_unpack.h"
#include "proto/oci.h"

struct images; /* the registry */
struct image;
struct conf_list;

enum image_state { IMAGE_WORKING, IMAGE_READY, IMAGE_FAILED };
const char *image_state_name(enum image_state s);

enum image_format { IMAGE_AUTO, IMAGE_OCI, IMAGE_DOCKER, IMAGE_TAR };

struct image_info {
    const char *id;
    struct str name; /* "team/app:1.2"; empty: another image has taken it */
    struct str owner, tenant;
    struct str source;             /* "pull", "import", "commit", "build", "cache", "builtin" */
    struct str digest;             /* of the manifest or the archive */
    struct str os, arch, defaults; /* defaults: a JSON object */
    enum image_state state;
    struct str phase, failure;       /* "pulling", "unpacking" … while in progress */
    int64_t done_bytes, total_bytes; /* of the current transfer; total 0: unknown */
    int64_t size_bytes, created_ms;
    size_t layer_count;
};

struct images_config {
    uv_loop_t *loop;
    struct store *store;
    const char *state;         /* directory */
    bool keep_strays;          /* keep layers without a row: they belong to another database */
    struct unpacker *unpacker; /* must outlive it */
    /* Removes layers/DIR, faster than the unpacker; false: it cannot.  NULL likewise. */
    bool (*remove)(void *arg, const char *dir, store_done done, void *done_arg);
    void *remove_arg;
    struct unpack_limits limits;
    int64_t images_max, jobs_max;
    struct space *space;             /* asked before files are added; NULL: nothing is kept free */
    const struct conf_list *aliases; /* "ubuntu:22.04=host"; read at each use; NULL: none */
};

/* Reads the rows and removes leftovers of a crash.  Blocking: at start-up only. */
CHECKED int images_open(const struct images_config *c, struct images **ret, struct err *e);
/* Cancels jobs; call it before store_close, and images_free after it. */
void images_tick(struct images *l); /* once a second: removals that failed are tried again */
void images_close(struct images *l);
struct images *images_free(struct images *l); /* takes NULL; returns NULL */
/* Call it after the sandboxes have taken their holds: removes unneeded layers. */
void images_sweep(struct images *l);

/* Finds an image that this caller may see, or remove (core/identity/owner.h): by id, name ("app" is
 * "app:latest") or OWNER/NAME; images of its tenant win over the installation's.  NULL: *e has the
 * reason. */
enum image_want { IMAGE_SEE, IMAGE_CHANGE };
struct image *image_find(struct images *l, const struct principal *by, enum image_want want,
                         struct str ref, struct err *e);
/* Images that it may see, by id, failed ones only on request; NULL at the end. */
struct image *image_next(struct images *l, const struct principal *by, struct str after,
                         bool failed);
void image_info(const struct image *i, struct image_info *ret);

/* For making a sandbox: the image that ref (or its alias) names, and its layers, lowest first.  No
 * layers: the host image.  The layers are held until images_release. */
struct image_use {
    char id[ID_SIZE]; /* "host", or an image's */
    const char *const *layers;
    size_t layer_count;
    struct str defaults; /* see image_info; empty for the host image */
    bool aliased;        /* the name was an alias: report the image used */
    bool on_host;        /* the layers lie on the host image */
    /* it is a snapshot: its id, and the image below it; NULL: no */
    const char *snapshot, *base_image;
};
/* A plain name means an image of the caller's tenant, or the installation's. */
CHECKED int images_use(struct images *l, const struct principal *by, struct str ref,
                       struct image_use *ret, struct err *e);
void images_hold(struct images *l, struct str layer);
void images_release(struct images *l, struct str layer);

/* --- layers that no archive is: the files of a sandbox (core/snapshot) --- */

/* An empty directory below layers/, to be filled.  "tmp": removed after a crash; any other prefix:
 * its maker knows it. */
CHECKED int images_make_dir(struct images *l, const char *prefix, char ret[ID_SIZE], struct err *e);
void images_drop_dir(struct images *l, const char *dir); /* with all that is in it */
struct image_layer {
    const char *dir;    /* of images_make_dir; gone afterwards */
    const char *digest; /* SHA-256 of its files, in hex */
    int64_t bytes, entries;
};
typedef void (*image_layer_cb)(void *arg, const char *id, const struct err *e);
/* Makes it a layer that is synced and held once, for the caller; the one of the same content if
 * there is one already. */
void images_add_layer(struct images *l, const struct image_layer *y, image_layer_cb done,
                      void *arg);
int64_t images_layer_bytes(const struct images *l, struct str layer); /* 0: unknown */

typedef void (*image_cb)(void *arg, struct image *i, const struct err *e);
/* Sandboxes that use it keep running: their layers stay until the last is removed. */
void image_remove(struct images *l, struct str ref, const struct principal *by, store_done done,
                  void *arg);

/* --- pull --- */

struct image_sink {
    void (*data)(void *arg, struct str part); /* call consume when n bytes are used */
    void (*end)(void *arg, const char *digest, const struct err *e); /* the last call */
};
/* The source of a pull's documents and layers; one get at a time.  It verifies content requested by
 * digest before end. */
struct image_remote_ops {
    CHECKED int (*open)(void *arg, const struct oci_ref *ref, void **ret, struct err *e);
    void (*close)(void *remote); /* also ends a get; no call after it */
    CHECKED int (*get)(void *remote, bool manifest, const char *tag_or_digest, int64_t size_max,
                       const struct image_sink *to, void *arg, struct err *e);
    void (*consume)(void *remote, size_t n);
};
struct image_pull_spec {
    struct str ref, name; /* name empty: the reference itself */
    const struct image_remote_ops *remote;
    void *remote_arg;
};
/* The image is listed at once, in state working; done is called when it is ready or has failed. */
CHECKED int image_pull(struct images *l, const struct image_pull_spec *s,
                       const struct principal *by, image_cb done, void *arg, struct image **ret,
                       struct err *e);

/* --- commit --- */

#define IMAGE_SOURCE_CACHE                                                                         \
    "cache"                        /* of a step of a build (core/imagebuild): lists leave it out   \
                                    */
#define IMAGE_SOURCE_BUILD "build" /* of a whole build */
struct image_commit_spec {
    struct str name;
    const char *source;        /* NULL: "commit" */
    const char *const *layers; /* lowest first: known and held */
    size_t layer_count;
    bool on_host;
    struct str defaults; /* JSON */
};
CHECKED int images_check_name(struct str name, struct err *e);
CHECKED int image_from_layers(struct images *l, const struct image_commit_spec *s,
                              const struct principal *by, image_cb done, void *arg, struct err *e);

/* --- import --- */

struct image_import;
struct image_import_spec {
    struct str name; /* empty: the name in the archive */
    struct str tag;  /* selects one of several images in the archive */
    enum image_format format;
    int64_t size;                          /* of the archive; 0: unknown */
    void (*consumed)(void *arg, size_t n); /* bytes of write that were used */
};
CHECKED int image_import_begin(struct images *l, const struct image_import_spec *s,
                               const struct principal *by, image_cb done, void *arg,
                               struct image_import **ret, struct image **ret_image, struct err *e);
void image_import_write(struct image_import *m, struct str part);
void image_import_end(struct image_import *m);   /* the archive is complete; done follows */
void image_import_abort(struct image_import *m); /* before the end: done is called with CANCELLED */
