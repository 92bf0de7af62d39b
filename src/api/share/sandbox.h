/* sandbox: private to src/api: shared by the handlers of sandboxes, commands and files. */
#pragma once

#include "api/request.h"
#include "core/exec/exec.h"
#include "ops/exec.h"

/* The sandbox of the request if the caller may use it; NULL: the reply is sent. */
struct sandbox *request_sandbox(struct request *r, struct str ref);
/* Likewise the command; with a reference. */
struct exec *request_exec(struct request *r, struct str sandbox, struct str exec);
/* Likewise the connection to the sandbox's init. */
struct guest *request_guest(struct request *r, struct str ref);
/* The caller, for work that outlives the request. */
struct principal request_who(const struct request *r);

/* The member "warnings". */
void sandbox_write_warnings(struct jw *w, const struct sandbox *sandbox);
/* The members about a run's sandbox: id, image, unenforced, warnings. */
void sandbox_write_brief(struct jw *w, const struct sandbox *sandbox);
void exec_write_json(struct jw *w, const struct exec *x);
/* The members of an exec object, without the braces. */
void exec_write_members(struct jw *w, const struct exec *x);

/* The member "members": the clients attached to a command. */
void members_write(struct jw *w, const struct api *a, const char *exec);

/* Checks what the rows cannot: lists of objects, alternatives.  Texts live in the arena or the
 * body. */
CHECKED int spec_read_sandbox(const struct request *r, const struct sandbox_fields *f,
                              struct arena *a, struct sandbox_spec *ret, struct err *e);
const struct pair *spec_pairs(const struct op_map *m, struct arena *a);
struct exec_input {   /* fields of a command that are not part of its spec */
    struct str bytes; /* for its standard input, in the arena */
    bool eof;         /* and nothing more */
};
/* For forms that read the output only at the command's end: refuses options that block on full
 * output. */
CHECKED int spec_check_unread(const struct exec_fields *f, struct err *e);
CHECKED int spec_read_exec(const struct exec_fields *f, struct arena *a, struct exec_spec *ret,
                           struct exec_input *ret_input, struct err *e);
/* A policy as JSON: network (a mode, an object or NULL) plus the rules of allow; "": neither. */
CHECKED int spec_read_network(const json_t *network, const struct op_list *allow, struct arena *a,
                              struct str *ret, struct err *e);
CHECKED int spec_read_labels(const json_t *labels, struct arena *a, struct sandbox_change *c,
                             struct err *e);
CHECKED int signal_parse(struct str text, int *ret, struct err *e); /* "TERM", "SIGTERM", "15" */
