/* traits: the columns of struct sandbox_traits (ops/traits.h), one row each: a trait's name in a
 * sandbox's row and events, and in replies.  Flags and limits are members of the column `spec`, so
 * that a new one needs no migration; an absent member is false or 0.  Thread: any. */
#pragma once

#include "core/sandbox/driver.h"
#include "proto/json.h"

enum trait_type {
    TRAIT_FLAG,  /* bool */
    TRAIT_LIMIT, /* int64_t; a member of "limits", 0: none */
    TRAIT_TIME,  /* int64_t, in a column of its own (sandbox_row.c); 0 is null in replies */
};

struct trait {
    const char *name;
    enum trait_type type;
    size_t offset;
    const char *reply; /* its name in replies; NULL: not shown there */
    /* of a flag: the words for false and true in replies; NULL: these */
    const char *const *choices;
    enum limit_bit bit; /* of a limit */
};
extern const struct trait trait_table[];
extern const size_t trait_count;

bool trait_flag(const struct trait *c, const struct sandbox_traits *t);
int64_t trait_number(const struct trait *c, const struct sandbox_traits *t);

/* Numbers missing in the request become 0. */
void traits_settle(struct sandbox_traits *t);
/* Adds members to the JSON object being written: for a row or an event, and for a reply. */
void traits_put(struct jw *w, const struct sandbox_traits *t);
void traits_reply(struct jw *w, const struct sandbox_traits *t);
/* Takes over the members that are not 0 in given. */
void traits_change(struct sandbox_traits *t, const struct sandbox_traits *to,
                   const struct sandbox_traits *given);
bool traits_any(const struct sandbox_traits *t);              /* is one of them not 0? */
void traits_get(struct sandbox_traits *t, const json_t *row); /* times stay */
