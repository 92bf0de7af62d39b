/* match: the hosts and requests a rule is about; shared by rules of policies and bindings of
 * secrets.  An ambiguous request never matches a rule that grants, and always matches one that
 * forbids.  No I/O.  Ownership: match_done frees.  Errors: -1 with *e set. */
#pragma once

#include "base/err.h"
#include "proto/ip.h"
#include "proto/json.h"

#define MATCH_METHODS_MAX 16

struct match {
    char *methods[MATCH_METHODS_MAX];
    size_t method_count; /* 0: all */
    char *path;          /* a prefix if it ends in '*'; NULL: all */
};

void match_done(struct match *m);
CHECKED int match_methods(struct match *m, const json_t *v, struct err *e); /* ["GET", …] */
CHECKED int match_path(struct match *m, const json_t *v,
                       struct err *e);                 /* "/v1/models", "/v1/…*" */
void match_print(const struct match *m, struct jw *w); /* the members "methods" and "path" */
bool match_is_narrow(const struct match *m);           /* the rule is about some requests only */
bool match_fits(const struct match *m, struct str method, struct str path, bool forbids);

/* "example.com", or "*.example.com" for itself and the names below it, in canonical form.  wild:
 * there was a star, and name is the part after it. */
CHECKED int match_name_parse(struct str s, char name[static HOST_NAME_MAX_LEN + 1], bool *ret_wild,
                             struct err *e);
bool match_name(const char *name, bool wild, const struct host *h);
