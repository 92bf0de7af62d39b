/* cp_path: "SANDBOX:PATH" or a path of this machine, as arguments of cp and cat. */
#pragma once

#include "base/err.h"

struct cp_path {   /* owns its texts */
    char *sandbox; /* NULL: this machine */
    char *path;
};

/* A local path with a colon before its first slash is written ./a:b, and so is one that begins like
 * an owner's id (tk_1/a:b), since OWNER/NAME:PATH names another owner's sandbox. */
CHECKED int cp_path_parse(const char *text, struct cp_path *ret, struct err *e);
void cp_path_done(struct cp_path *p);
static inline UNUSED void cp_path_done_p(struct cp_path *p)
{
    cp_path_done(p);
}
/* "/a/b/" -> "b"; "." and ".." and "/" have no name: "". */
char *path_name(const char *path);         /* heap */
char *path_parent(const char *path);       /* heap; "/a" -> "/", "a" -> "." */
bool path_means_content(const char *path); /* ends with "/." or is "." */
