/* image: the outer archive of an image: an OCI layout (image-spec, image-layout.md) or the output
 * of `docker save`.  Extracts only the files of such an archive, flat, as data; the first other
 * name shows that the archive is something else: a root tree. */
#pragma once

#include "base/err.h"
#include "wire/tar.h"

struct image_out {
    int root;
    uint64_t files_max, entries, bytes;
    int file;
    bool is_oci, is_docker; /* index.json, manifest.json were found */
};

/* 1: not an image archive. */
CHECKED int image_entry(struct image_out *o, const struct tar_entry *en, struct err *e);
CHECKED int image_data(struct image_out *o, struct str data, struct err *e);
CHECKED int image_entry_end(struct image_out *o, struct err *e);
