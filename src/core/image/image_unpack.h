/* image_unpack: turns archives into layers.  holtd never looks inside an archive: holt-unpack does,
 * in a throw-away sandbox that has nothing but the layer's directory.
 * Life of a run: start; write as it takes bytes; eof; done is the last call, comes exactly once and
 * never from inside a call, unless cancel came before.  Thread: the loop's. */
#pragma once

#include "base/err.h"
#include "base/str.h"

#include <uv.h>

enum unpack_mode { UNPACK_LAYER, UNPACK_ROOT, UNPACK_IMAGE, UNPACK_CLEAR };
const char *unpack_mode_name(enum unpack_mode m); /* as holt-unpack spells it */

struct unpack_result {
    char format[8];      /* "layer", "root", "oci", "docker" */
    char diff_id[72];    /* "sha256:…" of the archive without its compression */
    char compression[8]; /* "none", "gzip", "zstd" */
    int64_t entries, bytes;
    int64_t owners_left, xattrs_left, nodes_left;
};
/* Parses the output of holt-unpack.  Its sandbox handled hostile input: the output is not
 * trusted. */
CHECKED int unpack_result_parse(struct str text, struct unpack_result *ret, struct err *e);

struct unpack_events {
    void (*room)(void *arg); /* write took less than offered; there is room again */
    void (*done)(void *arg, const struct unpack_result *r, const struct err *e);
    void *arg;
};

struct unpack_limits {
    int64_t bytes_max, files_max, time_ms;
};

struct unpack_spec {   /* valid during the call */
    const char *layer; /* STATE/layers/LAYER exists; the files go below its "fs" */
    enum unpack_mode mode;
    struct unpack_limits limits;
    struct unpack_events events;
};

struct unpack; /* one run */
struct unpacker;
struct unpacker_ops {
    CHECKED int (*start)(struct unpacker *u, const struct unpack_spec *s, struct unpack **ret,
                         struct err *e);
    size_t (*write)(struct unpack *x, struct str bytes); /* returns the number of bytes taken */
    void (*eof)(struct unpack *x);
    void (*cancel)(struct unpack *x); /* no call after it */
};
struct unpacker {
    const struct unpacker_ops *ops;
};

/* Runs in sandboxes of this registry.  program: the path of holt-unpack. */
struct sandboxes;
struct unpacker *unpacker_sandbox_new(struct sandboxes *l, const char *program);
struct unpacker *unpacker_sandbox_free(struct unpacker *u); /* takes NULL; returns NULL */
/* Runs as a plain child process, without a sandbox: for runtimes that do not isolate. */
struct unpacker *unpacker_process_new(uv_loop_t *loop, const char *state, const char *program);
struct unpacker *unpacker_process_free(struct unpacker *u);
