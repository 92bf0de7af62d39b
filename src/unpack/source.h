/* source: the archive's bytes: read from a descriptor, decompressed (gzip, zstd or none, by the
 * first bytes), counted, hashed.  Limits on ratio and size stop decompression bombs. */
#pragma once

#include "base/err.h"
#include "base/sha256.h"

struct source_limits {
    uint64_t bytes_max; /* decompressed */
    uint64_t ratio_max; /* decompressed to compressed, past the first 64 MiB */
};

struct source;
struct source *source_new(int fd, const struct source_limits *l);
struct source *source_free(struct source *s); /* takes NULL; returns NULL */
DEFINE_AUTO(struct source *, source_free)
/* Some bytes, valid until the next call.  1: *ret is set; 0: the end. */
CHECKED int source_read(struct source *s, struct str *ret, struct err *e);
uint64_t source_bytes(const struct source *s); /* decompressed so far */
const char *source_compression(const struct source *s);
/* at the end: the digest of all bytes */
void source_digest(struct source *s, char to[2 * HASH_SIZE + 1]);
