/* named: objects of one kind that have an id, a name and an owner: volumes, templates,
 * certificates.  It keeps their list, reads and writes their rows with an event each, and finds
 * them by the rule of core/identity/owner.h; a name is unique among its owner's in one tenant.  An
 * object's struct begins with a struct named; its room adds the rest, and the checks.
 * Ownership: the list's; an object is borrowed until the loop turns, and is not freed while a write
 * of it is under way.  Thread: the loop's. */
#pragma once

#include "core/columns.h"
#include "core/identity/owner.h"

struct jw;
struct named_list;

enum named_state {
    NAMED_MAKING, /* its row is not committed: nobody finds it, but its name is taken */
    NAMED_READY,
    NAMED_REMOVING,
};

struct named {
    struct named_list *list;
    enum named_state state;
    unsigned writes; /* under way */
    char id[ID_SIZE];
    char *name, *tenant;
    char owner[64];
    int64_t created_ms;
    bool shared; /* others may see and use it, but not change it */
};

/* Its columns, for the table of an object whose first member is `named`. */
#define NAMED_COLUMNS(structure)                                                                   \
    COLUMN_AS("id", structure, named.id, COLUMN_CHARS, .flags = COLUMN_KEY),                       \
        COLUMN_AS("name", structure, named.name, COLUMN_TEXT),                                     \
        COLUMN_AS("shared", structure, named.shared, COLUMN_BOOL), NAMED_OWNER_COLUMNS(structure)
#define NAMED_OWNER_COLUMNS(structure)                                                             \
    COLUMN_AS("tenant", structure, named.tenant, COLUMN_TEXT),                                     \
        COLUMN_AS("owner", structure, named.owner, COLUMN_CHARS),                                  \
        COLUMN_AS("created_ms", structure, named.created_ms, COLUMN_INT)

struct named_kind {   /* static; one for each kind */
    const char *noun; /* "volume": in messages, commands, and as volume/ID in events */
    const char *hint; /* of a lookup that finds none */
    size_t size;      /* of an object */
    struct columns *columns;
    enum store_class durability;
    void (*done)(struct named *n);                    /* frees its own members; NULL: it has none */
    void (*put)(const struct named *n, struct jw *w); /* its own members of an event */
};

struct named_list { /* of the room's registry */
    const struct named_kind *kind;
    struct store *store;
    struct named **sorted; /* by id */
    size_t count, size;
};

/* Reads the rows (blocking: at start-up only).  After a failure: named_list_done, too. */
CHECKED int named_list_open(struct named_list *l, const struct named_kind *kind,
                            struct store *store, struct err *e);
void named_list_done(struct named_list *l);

/* --- finding --- */

struct named_look {
    const struct principal *by;
    enum owner_use use;
    bool own_only;     /* of names: its own and shared ones alone; another's as OWNER/NAME */
    struct str tenant; /* names of this one (empty: any) */
    struct str ref;    /* an id, a name, or OWNER/NAME */
};
/* NULL: none, another owner's (ERR_FORBIDDEN, by id only), or several (ERR_CONFLICT). */
struct named *named_find(const struct named_list *l, const struct named_look *look, struct err *e);
struct named *named_get(const struct named_list *l, struct str id); /* for any caller; or NULL */
/* Those that this caller may see, in order of id; NULL: the end. */
struct named *named_next(const struct named_list *l, const struct principal *by, struct str after);
bool named_may(const struct named *n, const struct principal *by, enum owner_use use);
size_t named_count_of(const struct named_list *l, const char *owner);
int named_not_found(const struct named_kind *kind, struct str ref, struct err *e); /* -1 */

/* --- changing --- */

typedef void (*named_cb)(void *arg, struct named *n, const struct err *e);
struct named_call {
    const struct principal *by;
    named_cb done; /* n: NULL after a failed create and of a removal */
    void *arg;
    /* Of a create, or NULL: as in core/store.h.  named_create frees its argument; if there was none
     * because something was refused, whoever made the call frees it. */
    const struct tx_hook *hook;
    void *hook_arg;
};
/* ERR_CONFLICT: the caller has one of this name in this tenant. */
CHECKED int named_check_free(const struct named_list *l, const struct principal *by,
                             struct str tenant, struct str name, struct err *e);
/* A new object in the list, in state making; named_create commits or drops it. */
struct named *named_new(struct named_list *l, const struct principal *by, struct str tenant,
                        struct str name);
/* Each writes the row as it is now, and an event of this type. */
void named_create(struct named *n, const char *event, const struct named_call *c);
void named_save(struct named *n, const char *event, const struct named_call *c);
void named_remove(struct named *n, const char *event, const struct named_call *c);
void named_forget(struct named *n); /* removes it from the list alone; no write is under way */
