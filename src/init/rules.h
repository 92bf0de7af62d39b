/* rules: the path rules of this sandbox's policies (docs/policies.md), as holtd has sent them. Each
 * policy is a layer, and every layer must allow an access; deny wins.  File operations are checked
 * here, by the place where the file is: its descriptor's path, so no link and no race leads
 * around.  Commands are held by Landlock (init/fence.h), from the same answers. */
#pragma once

#include "wire/guest.h"

enum rules_right { RULES_READ = 1, RULES_WRITE = 2, RULES_ALL = 3 };

void rules_set(const struct guest_rules *r); /* replaces all; links in their paths are followed */
bool rules_any(void);
size_t rules_layers(void);
const char *rules_name(size_t layer); /* of its policy */

/* Rights in one layer, at a path without links: there, and there and everywhere below. */
unsigned rules_at(size_t layer, struct str path);
unsigned rules_throughout(size_t layer, struct str path);
bool rules_differ_below(size_t layer, struct str path); /* the rights below may be others */

/* ERR_FORBIDDEN names the policy, the rule and the remedy. */
CHECKED int rules_check_fd(int fd, unsigned want, struct err *e);
/* An entry of an open directory, which need not exist. */
CHECKED int rules_check_entry(int dir, const char *name, unsigned want, struct err *e);
/* And everything below it: before it is removed, moved or archived. */
CHECKED int rules_check_tree(int dir, const char *name, unsigned want, struct err *e);

/* A path that could not be opened, for the reason in *e: says "refused" instead where that is the
 * case, or a denied name could be told from a missing one.  Returns -1. */
int rules_failed(struct str path, unsigned want, struct err *e);

bool path_is_in(struct str path, struct str root); /* it is root, or below it */
