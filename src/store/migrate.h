/* migrate: brings a database to this program's schema: migrations/NNNN_name.sql, in order, each in
 * one transaction, recorded with the SHA-256 of its text. */
#pragma once

#include "store/engine.h"

struct migration {
    int64_t version;
    const char *name;
    const char *sql;
};
extern const struct migration migrations[]; /* made from migrations/ by tools/embed-sql */
extern const size_t migration_count;

/* Refuses a database written by a newer holt, and one whose migrations had other texts. */
CHECKED int migrate(struct engine_conn *c, struct err *e);
