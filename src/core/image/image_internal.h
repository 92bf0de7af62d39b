/* image_internal: shared by the files of image: the registry's lists, layers, jobs. */
#pragma once

#include "base/buf.h"
#include "base/list.h"
#include "base/map.h"
#include "base/sorted.h"
#include "core/identity/owner.h"
#include "core/image/image.h"
#include "core/space.h"
#include "proto/digest.h"

struct layer {
    char id[ID_SIZE]; /* from its digest */
    char digest[OCI_DIGEST_SIZE], diff_id[OCI_DIGEST_SIZE];
    int64_t bytes, entries, created_ms;
    size_t images; /* number of images that have it */
    size_t holds;  /* by sandboxes and jobs */
};

struct image {
    char id[ID_SIZE];
    char *name, *source, *digest, *os, *arch, *defaults; /* never NULL */
    char owner[64], tenant[PRINCIPAL_TENANT];            /* a name is unique in its tenant */
    struct layer **layers;
    const char **layer_ids; /* for drivers */
    size_t layer_count;
    enum image_state state;
    const char *phase;
    char failure[256];
    int64_t done_bytes, total_bytes, created_ms;
    struct image_job *job; /* while in progress */
    bool removing;
    bool on_host; /* its layers lie on the host image */
};

struct images {
    struct images_config c;
    struct image **sorted; /* by id, including those in progress and failed */
    size_t count, size;
    struct map layers; /* by id */
    /* struct clear: directories waiting to be removed; the first is being removed */
    struct list clears;
    bool clears_rest; /* one failed: until the next tick */
    struct list jobs;
    size_t job_count;
    bool closing;
};

struct job_layer {
    struct layer *layer;
    char dir[ID_SIZE]; /* the directory it was unpacked into; "": it existed already */
};

struct image_job {
    struct list link; /* in images->jobs */
    struct images *l;
    struct image *i;
    struct principal by; /* token is NULL, since it may end before the job does */
    image_cb done;
    void *arg;
    struct err err;
    bool ended;
    size_t busy; /* asynchronous operations that cannot be cancelled */
    struct job_layer *layers;
    size_t layer_count;
    char digest[OCI_DIGEST_SIZE]; /* of the manifest or archive */
    struct oci_config config;

    /* one run of the unpacker */
    struct unpack *run;
    char dir[ID_SIZE]; /* its layer directory */
    struct sha256_state *hash;
    int64_t fed;
    struct buf pending; /* fed and not taken yet */
    bool eof;
    void (*taken)(struct image_job *j, size_t n);
    void (*unpacked)(struct image_job *j, const struct unpack_result *r);

    int64_t told_ms; /* time of the last progress event */
    /* set by the kind of job */
    void (*stop)(struct image_job *j); /* ends its source; NULL: none */
    void (*gone)(struct image_job *j); /* frees the containing object */
};

/* image.c */
struct image *image_new(const char *id);
struct image *image_free(struct image *i); /* takes NULL; returns NULL */
DEFINE_AUTO(struct image *, image_free)
void images_add(struct images *l, struct image *i);
void images_drop(struct images *l, struct image *i); /* and frees it */
bool images_show_layer(const struct images *l, const struct layer *y, const struct principal *by);
void image_set_layers(struct image *i, struct layer **layers, size_t n);
/* "app" becomes "app:latest". */
CHECKED int image_normal_name(struct str name, char **ret, struct err *e);

/* image_layer.c */
void layer_id_of(const char *digest, char to[ID_SIZE]);
struct layer *layer_by_digest(struct images *l, const char *digest);
void layer_unneeded(struct images *l, struct layer *y); /* removes it if it is not needed */
void layers_clear(struct images *l, const char *dir);   /* removes the directory, asynchronously */
void layers_clear_end(struct images *l);
CHECKED int layers_make_dir(struct images *l, const char *prefix, char ret[ID_SIZE], struct err *e);
CHECKED int layers_find_strays(struct images *l, struct err *e);

/* image_row.c */
CHECKED int images_load(struct images *l, struct err *e);
void image_write_event(struct store_tx *tx, const char *type, const struct image *i,
                       const char *actor);
void image_commit(struct image_job *j, store_done done);
CHECKED int layer_insert(struct store_tx *tx, const struct layer *y, struct err *e);

/* image_job.c */
void job_start(struct image_job *j, struct images *l, const char *source,
               const struct principal *by);
CHECKED int jobs_may_start(const struct images *l, struct err *e);
void job_phase(struct image_job *j, const char *phase, int64_t total);
void job_progress(struct image_job *j, int64_t more);
void job_end(struct image_job *j, const struct err *e); /* ERR_NONE: it is ready */
void job_idle(struct image_job *j); /* a busy operation has finished after the job's end */
/* Begins a run; feed it with job_feed, which calls taken as bytes are used; unpacked ends it. */
CHECKED int job_unpack(struct image_job *j, enum unpack_mode mode, struct err *e);
void job_feed(struct image_job *j, struct str part);
void job_feed_end(struct image_job *j);
void job_digest(struct image_job *j, char to[OCI_DIGEST_SIZE]); /* of all bytes fed */
void job_drop_run(struct image_job *j);                         /* its directory is not needed */
/* Makes the run's directory a layer with this digest; want_diff: the config's diff id, or NULL. */
CHECKED int job_add_layer(struct image_job *j, const char *digest, const struct unpack_result *r,
                          const char *want_diff, struct err *e);
bool job_has_layer(struct image_job *j, const char *digest, const char *want_diff);
/* The same for a client that has only named a digest: finds only layers of images it may
 * see.  Another tenant's layer must be fetched, or its digest alone would give access to its
 * files. */
bool job_sees_layer(struct image_job *j, const char *digest, const char *want_diff);
void job_publish(struct image_job *j);                    /* all layers exist: commits the image */
void job_use_layer(struct image_job *j, struct layer *y); /* one that exists */
/* On a worker thread: describes a directory as the layer, makes it durable, names it. */
CHECKED int layer_store(const struct images *l, const struct layer *y, const char *dir,
                        struct err *e);

/* image_file.c: a file, read on libuv's threads and fed to the job's run. */
struct file_feed;
struct file_feed *file_feed_start(struct image_job *j, int fd); /* takes fd */
void file_feed_taken(struct file_feed *f, size_t n);
struct file_feed *file_feed_free(struct file_feed *f); /* takes NULL; returns NULL */
