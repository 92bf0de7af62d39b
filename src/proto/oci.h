/* oci: the documents of images: OCI image-spec 1.1 (index, manifest, config), the manifest.json of
 * `docker save`, references like "host:5000/team/app:1.2@sha256:…", and a registry's challenge.
 * All input is hostile: strict, bounded, no I/O.  Only SHA-256 digests are accepted.
 * Ownership: *_done frees.  Errors: -1 with *e set. */
#pragma once

#include "base/buf.h"
#include "base/err.h"

#define OCI_DOC_MAX (4 * 1024 * 1024) /* the limit of registries for a manifest */
#define OCI_LAYERS_MAX 127            /* as in Docker; overlayfs allows more */
#define OCI_MANIFESTS_MAX 1024        /* of one index */
#define OCI_BLOB_MAX (1LL << 40)
#define OCI_DIGEST_SIZE 72 /* "sha256:", 64 hex digits, NUL */

bool oci_digest_is_valid(struct str s);

enum oci_media { OCI_OTHER, OCI_INDEX, OCI_MANIFEST, OCI_LAYER };

struct oci_blob {
    char digest[OCI_DIGEST_SIZE];
    int64_t size;
    enum oci_media media;
};

/* OCI_INDEX or OCI_MANIFEST, by the document's type and members. */
CHECKED int oci_kind(struct str doc, enum oci_media *ret, struct err *e);

struct oci_want { /* selects a manifest of an index */
    const char *os, *arch;
    struct str tag; /* in an OCI layout: org.opencontainers.image.ref.name; empty: any */
};
/* "amd64" for "x86_64" and so on: images use Go's names. */
const char *oci_arch_of_host(void);
CHECKED int oci_index_pick(struct str doc, const struct oci_want *want, struct oci_blob *ret,
                           struct err *e);

struct oci_manifest {
    struct oci_blob config;
    struct oci_blob *layers; /* lowest first */
    size_t layer_count;
};
CHECKED int oci_manifest_read(struct str doc, struct oci_manifest *ret, struct err *e);
void oci_manifest_done(struct oci_manifest *m);
static inline UNUSED void oci_manifest_done_p(struct oci_manifest *m)
{
    oci_manifest_done(m);
}

struct oci_config {
    char os[32], arch[32];
    char (*diff_ids)[OCI_DIGEST_SIZE];
    size_t diff_count;
    char *defaults; /* JSON: {"env": […], "entrypoint": […], "cmd": […], "workdir", "user"} */
};
#define OCI_DEFAULTS_MAX (64 * 1024)
CHECKED int oci_config_read(struct str doc, struct oci_config *ret, struct err *e);
void oci_config_done(struct oci_config *c);
static inline UNUSED void oci_config_done_p(struct oci_config *c)
{
    oci_config_done(c);
}

/* manifest.json of `docker save`: file names inside the archive, checked to be well-formed. */
#define OCI_FILE_SIZE 80
struct oci_docker {
    char config[OCI_FILE_SIZE];
    char (*layers)[OCI_FILE_SIZE]; /* lowest first */
    size_t layer_count;
    char *name; /* the first RepoTag, or NULL */
};
/* tag: of several images, the one with this RepoTag; empty: there must be only one. */
CHECKED int oci_docker_read(struct str doc, struct str tag, struct oci_docker *ret, struct err *e);
void oci_docker_done(struct oci_docker *d);
static inline UNUSED void oci_docker_done_p(struct oci_docker *d)
{
    oci_docker_done(d);
}

struct oci_ref {
    char host[256]; /* with its port; "" if the text names none */
    char repository[256];
    char tag[129];                /* "latest" if the text has neither tag nor digest */
    char digest[OCI_DIGEST_SIZE]; /* or "" */
};
CHECKED int oci_ref_parse(struct str text, struct oci_ref *ret, struct err *e);

/* WWW-Authenticate: Bearer realm="…",service="…",scope="…" (RFC 6750, the token specification of
 * the registry API). */
struct oci_challenge {
    char realm[1024], service[256], scope[512];
};
/* 1: a Bearer challenge; 0: another scheme. */
CHECKED int oci_challenge_parse(struct str header, struct oci_challenge *ret, struct err *e);
/* Writes the "token" or "access_token" of a token server's reply to `to`. */
CHECKED int oci_token_read(struct str doc, struct buf *to, struct err *e);
