/* columns: rows of the store as members of a struct.  One table has each column's name, type and
 * offset; INSERT, SELECT, bind and load are made from it, so that a new column is one line and its
 * migration.  The statements are made once, at first use, and bind by number.
 * Ownership: row_take copies what it needs; columns_load puts texts on the heap.
 * Thread: any; columns_load and columns_save use the object where they are called. */
#pragma once

#include "base/buf.h"
#include "base/id.h"
#include "core/store.h"

#include <stdatomic.h>

#define COLUMNS_MAX 32 /* of one table */

enum column_type {
    COLUMN_INT,   /* int64_t */
    COLUMN_I32,   /* int */
    COLUMN_U32,   /* uint32_t */
    COLUMN_BOOL,  /* bool */
    COLUMN_TEXT,  /* char *, on the heap; NULL is written as "" */
    COLUMN_CHARS, /* char[size], NUL-terminated; a longer text is an error */
    COLUMN_MADE,  /* a text made from the object by put, read back by get */
    COLUMN_BYTES, /* the same as a blob */
};

enum column_flag {
    COLUMN_KEY = 1,       /* identifies a row */
    COLUMN_ONCE = 2,      /* written by the first save only */
    COLUMN_UNREAD = 4,    /* not loaded */
    COLUMN_UNWRITTEN = 8, /* not saved: its name is an expression */
    COLUMN_NULLS = 16,    /* for COLUMN_TEXT: a NULL pointer is NULL in the row */
};

struct column {
    const char *name;
    enum column_type type;
    size_t offset, size;
    uint32_t flags; /* enum column_flag */
    /* For COLUMN_MADE and COLUMN_BYTES.  put: false is NULL.  get may be NULL: the caller reads
     * it. */
    bool (*put)(const void *object, struct buf *to);
    int (*get)(void *object, struct str text, struct err *e);
};
#define COLUMN(structure, member, kind, ...)                                                       \
    COLUMN_AS(#member, structure, member, kind, __VA_ARGS__)
#define COLUMN_AS(column, structure, member, kind, ...)                                            \
    {.name = column,                                                                               \
     .type = kind,                                                                                 \
     .offset = offsetof(structure, member),                                                        \
     .size = sizeof(((structure *)0)->member),                                                     \
     __VA_ARGS__}

struct columns { /* static: it keeps its statements */
    const char *table;
    const struct column *list;
    size_t count;
    const char *order;  /* "ORDER BY id" */
    const char *prefix; /* of the key, which is an id; NULL: it is not checked */
    _Atomic(char *) sql_insert, sql_save, sql_select, sql_erase;
};

/* A copy of the values of a row, for a write on the store's thread. */
struct row;
struct row *row_take(struct columns *c, const void *object);
struct row *row_free(struct row *r); /* takes NULL; returns NULL */
CHECKED int row_save(struct store_tx *tx, const struct row *r, struct err *e);

/* Inside work, for an object that does not change meanwhile: inserts a row, which must not
 * exist. */
CHECKED int columns_insert(struct store_tx *tx, struct columns *c, const void *object,
                           struct err *e);
CHECKED int columns_save(struct store_tx *tx, struct columns *c, const void *object,
                         struct err *e); /* inserts it, or updates the one there is */
/* Removes the row with this key, if there is one. */
CHECKED int columns_erase(struct store_tx *tx, struct columns *c, const char *key, struct err *e);
/* Calls fn for each row, in order, until it fails; the first column has index 0. */
typedef int (*columns_fn)(void *arg, const struct store_rows *rows, struct err *e);
CHECKED int columns_each(struct store_tx *tx, struct columns *c, columns_fn fn, void *arg,
                         struct err *e);
CHECKED int columns_load(const struct columns *c, const struct store_rows *rows, void *object,
                         struct err *e);
