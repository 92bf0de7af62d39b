/* place: "SANDBOX:PATH" or a path of this machine, as cp and cat take them. */
#pragma once

#include "base/err.h"

struct place {     /* texts are owned */
    char *sandbox; /* NULL: here */
    char *path;
};

/* A local path with a colon before its first slash is written ./a:b. */
CHECKED int place_parse(const char *text, struct place *ret, struct err *e);
void place_done(struct place *p);
static inline UNUSED void place_done_p(struct place *p)
{
    place_done(p);
}
/* "/a/b/" -> "b"; "." and ".." and "/" have no name: "". */
char *path_name(const char *path);         /* heap */
char *path_parent(const char *path);       /* heap; "/a" -> "/", "a" -> "." */
bool path_means_content(const char *path); /* ends with "/." or is "." */
