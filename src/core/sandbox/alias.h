/* alias: the one table of other names of objects: (dialect, alias) → object.
 * Several objects may have the same one: the lookup (core/sandbox/sandbox_name.c) decides which is
 * meant, by caller.  An object may have several, in one dialect or many, and loses them all when it
 * is removed.  The table in memory answers; its rows are written and erased with the object's own
 * (alias_put and alias_erase, inside its work), so that neither exists without the
 * other.  Ownership: the table owns its texts.  Thread: the loop's, except functions that take a
 * store_tx.  Errors: 0, or -1 with *e set. */
#pragma once

#include "base/id.h"
#include "core/store.h"

#define ALIAS_MAX 255        /* bytes of an alias */
#define ALIAS_DIALECT_MAX 31 /* of a dialect's name */
#define ALIASES_PER_OBJECT 16

struct aliases;
struct alias_name {
    struct str dialect, alias;
};
struct alias {
    struct alias_name name;
    char object[ID_SIZE];
    const struct alias *next; /* the object's next one; NULL: no more */
};

struct aliases *aliases_new(void);
struct aliases *aliases_free(struct aliases *t); /* takes NULL; returns NULL */
/* Reads all rows; inside work, at start-up. */
CHECKED int aliases_load(struct aliases *t, struct store_tx *tx, struct err *e);

/* Whether this object (empty: a new one) could have it. */
CHECKED int alias_check(const struct aliases *t, struct alias_name n, struct str object,
                        struct err *e);
CHECKED int alias_add(struct aliases *t, struct alias_name n, struct str object, struct err *e);
void alias_drop(struct aliases *t, struct str object); /* removes all its aliases */
/* The objects with this alias, in any dialect: the first, then the next of the same text; NULL:
 * none. */
const struct alias *alias_named(const struct aliases *t, struct str alias);
const struct alias *alias_same(const struct alias *a);
const struct alias *alias_first(const struct aliases *t, struct str object); /* then ->next */

/* --- inside work --- */
CHECKED int alias_put(struct store_tx *tx, struct alias_name n, const char *object, struct err *e);
CHECKED int alias_erase(struct store_tx *tx, const char *object, struct err *e);
