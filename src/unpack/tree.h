/* tree: writes an archive's entries below one directory and nowhere else.
 * The archive is hostile: names are cut into checked components, every lookup is an openat2 below
 * the directory (no "..", no absolute link, no other file system), existing entries are neither
 * followed nor written through, and content that an overlay layer must not hold (device nodes,
 * foreign attributes) is refused or left out. */
#pragma once

#include "base/err.h"
#include "wire/tar.h"

#define TREE_DEPTH_MAX 128
#define TREE_COMPONENT_MAX 255

struct tree_options {
    uint64_t files_max;
    bool whiteouts;   /* ".wh." names remove entries of lower layers (OCI image-spec, layer.md) */
    bool keep_setuid; /* otherwise these bits are cleared */
};

struct tree_counts {
    uint64_t entries;
    uint64_t bytes;       /* of file contents */
    uint64_t whiteouts;   /* including opaque directories */
    uint64_t nodes_left;  /* device nodes of /dev that were left out */
    uint64_t xattrs_left; /* attributes that were left out */
    uint64_t owners_left; /* entries whose owner could not be set: the id is not mapped here */
    uint64_t setuid_cut;
};

struct tree;
struct tree *tree_new(int root,
                      const struct tree_options *o); /* root: an open directory, borrowed */
struct tree *tree_free(struct tree *t);              /* takes NULL; returns NULL */
DEFINE_AUTO(struct tree *, tree_free)
CHECKED int tree_entry(struct tree *t, const struct tar_entry *en, struct err *e);
CHECKED int tree_data(struct tree *t, struct str data, struct err *e);
CHECKED int tree_entry_end(struct tree *t, struct err *e);
/* Sets modes and times of directories last: writing into them changes both. */
CHECKED int tree_end(struct tree *t, struct err *e);
const struct tree_counts *tree_counts(const struct tree *t);

/* "./a//b/" becomes "a/b"; "" is the root itself.  to has TAR_NAME_MAX + 1 bytes. */
CHECKED int tree_clean_name(struct str name, char *to, struct err *e);
/* Removes everything below root without following links. */
CHECKED int tree_clear(int root, struct err *e);
