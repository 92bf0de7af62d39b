/* secret_internal: shared by the files of secret. */
#pragma once

#include "base/sorted.h"
#include "core/identity/owner.h"
#include "core/network/secret.h"
#include "proto/json.h"
#include "proto/seal.h"

struct secrets {
    struct store *store;
    const struct secret_users *users; /* or NULL */
    void *users_arg;
    char *key_path;
    unsigned char key[SEAL_KEY];
    bool has_key;
    struct err locked;      /* why the key cannot be used; ERR_NONE: it can, or is not needed */
    struct secret **sorted; /* by id */
    size_t count, size;
    int64_t max;
};

struct secret {
    struct secrets *all;
    enum { SECRET_MAKING, SECRET_READY, SECRET_CHANGING } state;
    char id[ID_SIZE];
    char *name;
    struct buf sealed;
    json_t *rule;
    char owner[64], tenant[PRINCIPAL_TENANT]; /* a name is unique in its tenant */
    int64_t created_ms, updated_ms, rotated_ms;
};

/* --- secret.c --- */
bool secret_opens(const struct secrets *l, const struct secret *s, struct buf *to); /* its value */

/* --- secret_use.c: secrets of sandboxes --- */
bool secret_is_used_by(const struct secret *s, const struct secret_user *u);
bool secrets_next_user(const struct secrets *l, size_t *at, struct secret_user *ret);
/* Whether the secrets of each sandbox that has this one still fit.  value: the new one, or none. */
CHECKED int secret_fits_users(const struct secret *s, const json_t *rule, struct str value,
                              struct err *e);

/* --- secret_rule.c --- */
/* Makes the rule of spec, based on `old` (NULL: none); heap, owned. */
CHECKED int secret_rule_make(const struct secret_spec *spec, const json_t *old, json_t **ret,
                             struct err *e);
CHECKED int secret_value_check(struct str value, struct err *e);
CHECKED int secret_name_check(struct str name, struct err *e);

/* --- secret_key.c: blocking --- */
/* 1: read; 0: it does not exist. */
CHECKED int secret_key_read(const char *path, unsigned char key[static SEAL_KEY], struct err *e);
CHECKED int secret_key_make(const char *path, unsigned char key[static SEAL_KEY], struct err *e);
