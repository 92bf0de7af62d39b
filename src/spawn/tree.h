/* tree: work on whole directory trees, however large, without blocking the loop: a few entries at
 * once, the rest in a short-lived child.  Errors: -errno. */
#pragma once

#include "base/loop.h"

#define TREE_AT_ONCE 40 /* entries */

struct tree_job { /* one piece of work; zero it, and set told.fd to -1 */
    pid_t pid;
    struct watch told;
    bool ended;
    int result; /* 0 or -errno */
    uint64_t bytes;
    void (*on_end)(struct tree_job *j); /* or NULL */
};

/* Removes name in dir with its content.  With a budget it stops with -EAGAIN when that is used
 * up. */
CHECKED int tree_remove(int dir, const char *name, int *budget);
/* The same; -EBUSY: a child is working, call again after j->ended. */
CHECKED int tree_remove_by_job(struct tree_job *j, int dir, const char *name);
/* Counts the bytes that name in dir takes, in a child: j->bytes at its end. */
CHECKED int tree_measure(struct tree_job *j, int dir, const char *name);

/* The names in a directory, in the order of their bytes. */
struct tree_names {
    char **list;
    size_t n, size;
};
CHECKED int tree_names(int dir, struct tree_names *ret);
void tree_names_done(struct tree_names *n);
static inline UNUSED void tree_names_done_p(struct tree_names *n)
{
    tree_names_done(n);
}
