/* image: the outer archive of an image: an OCI layout (image-spec, image-layout.md) or what `docker
 * save` writes.  Only the files such an archive has are taken, flat, as data; the first other name
 * says that it is something else: a root tree. */
#pragma once

#include "base/err.h"
#include "wire/tar.h"

struct image_out {
    int root;
    uint64_t files_max, entries, bytes;
    int file;
    bool is_oci, is_docker; /* index.json, manifest.json were there */
};

/* 1: this is no image archive. */
CHECKED int image_entry(struct image_out *o, const struct tar_entry *en, struct err *e);
CHECKED int image_data(struct image_out *o, struct str data, struct err *e);
CHECKED int image_entry_end(struct image_out *o, struct err *e);
