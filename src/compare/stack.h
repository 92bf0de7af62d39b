/* stack: trees of several layers as overlayfs shows them (Documentation/filesystems/overlayfs.rst),
 * without mounting them: whiteouts hide, opaque directories end what shows through.  A directory is
 * the list of layers that show through in it, so two stacks that share layers are the same wherever
 * those lists are equal, and nothing below is read.
 * Ownership: a struct dir owns its descriptors.  Every name and byte in there is hostile: nothing
 * is followed, and a node is used only by the descriptor of its directory.  Errors: 0, or -1 with
 * *e. */
#pragma once

#include "base/err.h"
#include "base/fd.h"

#include <sys/stat.h>

#define STACK_LAYERS 32
enum { BEFORE, AFTER, ONTO, SIDES }; /* ONTO: where the change goes; may have no layers */

struct shows { /* the layers of one stack that show through in a directory, topmost first */
    int n;
    uint8_t layer[STACK_LAYERS];
};

struct dir {
    int fd[STACK_LAYERS]; /* by layer; -1: not there, or not needed */
    bool opaque[STACK_LAYERS];
    struct shows side[SIDES];
};
void dir_close(struct dir *d);
static inline UNUSED void dir_close_p(struct dir *d)
{
    dir_close(d);
}

struct node { /* what a name is in one stack */
    bool there;
    int layer;
    int at; /* the descriptor of its directory there; borrowed */
    struct stat st;
};

static inline bool node_is_dir(const struct node *n)
{
    return n->there && S_ISDIR(n->st.st_mode);
}
/* The name in a directory of a stack. */
CHECKED int node_find(const struct dir *d, int side, const char *name, struct node *ret,
                      struct err *e);
/* The directory that the name is in any of the stacks; ret is closed by dir_close. */
CHECKED int dir_open(const struct dir *in, const char *name, const struct node n[SIDES],
                     struct dir *ret, struct err *e);
/* The node of a path from the root of a stack.  Nothing is followed.  *ret_in keeps its directory.
 */
CHECKED int stack_find(const struct dir *root, int side, const char *path, struct node *ret,
                       struct dir *ret_in, struct err *e);
/* Whether the directory is the same in these two. */
bool dir_is_shared(const struct dir *d, int a, int b);

struct names { /* sorted, each once; memory of its own */
    char **v;
    size_t n, size;
};
void names_done(struct names *l);
static inline UNUSED void names_done_p(struct names *l)
{
    names_done(l);
}
/* The names in the directory that may differ between the two: those of layers that are not at the
 * bottom of both.  With b < 0: all names of one. */
CHECKED int names_read(const struct dir *d, int a, int b, struct names *ret, struct err *e);
