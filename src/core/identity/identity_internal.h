/* identity_internal: shared by the files of identity. */
#pragma once

#include "base/map.h"
#include "base/sorted.h"
#include "core/identity/identity.h"
#include "core/identity/throttle.h"
#include "proto/digest.h"

struct entry {
    struct token t;
    bool used;     /* last_used_ms is newer than in the store */
    bool revoked;  /* already refused; its row is deleted … */
    bool deleting; /* … right now */
};

struct login_code {
    unsigned char hash[SHA256_SIZE];
    enum role role;     /* ROLE_NONE: free */
    char root[ID_SIZE]; /* the token it ends with; "": none */
    int64_t until_ms;
    int64_t end_ms; /* wall clock: when that token expires; 0: never */
};

struct identity {
    struct store *store;
    struct map by_hash, by_id; /* to struct entry */
    struct entry **sorted;     /* by id */
    size_t count, size;
    int64_t max;
    size_t expire_next; /* where the search for expired ones continues */
    struct login_code codes[LOGIN_CODES];
    struct throttle throttle;
};

static inline struct str hash_str(const unsigned char *hash)
{
    return str_make(hash, SHA256_SIZE);
}

void identity_make_secret(const char *prefix, char *to); /* TOKEN_TEXT bytes */
/* As identity_create, for a session that ends with root ("": with none). */
void identity_create_session(struct identity *i, const struct token_spec *spec, const char *root,
                             token_made done, void *arg);
