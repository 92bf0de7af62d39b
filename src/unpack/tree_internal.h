/* tree_internal: private to tree: names and lookups (tree_path.c), attributes (tree_attr.c). */
#pragma once

#include "base/fd.h"
#include "unpack/tree.h"

#include <sys/stat.h>

struct late { /* a directory whose mode and time are set at the end */
    char *path;
    mode_t mode;
    struct timespec mtime;
};

struct tree {
    int root;
    struct tree_options o;
    struct tree_counts counts;
    struct late *late;
    size_t late_count, late_size;
    int file; /* the entry being written, or -1 */
    const struct tar_entry *en;
    char path[TAR_NAME_MAX + 1]; /* of the entry, clean */
};

struct place { /* the target of an entry: an open directory and a name in it */
    int dir;
    const char *name; /* points into the path it was made from */
};

/* path is clean and not empty; make: creates missing directories. */
CHECKED int tree_place(struct tree *t, const char *path, bool make, struct place *ret,
                       struct err *e);
int tree_open_dir(const struct tree *t, const char *path); /* O_RDONLY; -errno */
int tree_refuse(const struct tree *t, struct err *e, const char *fmt, ...) PRINTF_LIKE(3, 4);
int tree_failed(const struct tree *t, struct err *e, const char *what); /* appends errno's text */

/* Sets owner, mode and attributes of the entry through an open descriptor. */
CHECKED int tree_attributes(struct tree *t, int fd, struct err *e);
CHECKED int tree_link_attributes(struct tree *t, const struct place *at, struct err *e);
mode_t tree_mode(struct tree *t);
void tree_times(const struct tar_entry *en, struct timespec to[2]);
CHECKED int tree_make_opaque(struct tree *t, int dir, struct err *e);
