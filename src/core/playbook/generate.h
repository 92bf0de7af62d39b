/* generate: tasks of Ansible that repeat a change on another machine.  Packages with their
 * versions, groups, users, directories, files with content, mode and owner, links, removals,
 * services.  What it cannot or must not say is in the notes: {path, reason}.  Idempotent: a second
 * run changes nothing.
 *
 * A file that may hold a secret is refused, or its content becomes a variable, "{{ vault_… }}", for
 * Ansible's vault.  Pure, but for the clock of ids.  Errors: 0, or -1 with *e. */
#pragma once

#include "core/change/change.h"
#include "proto/json.h"

#define GENERATE_CONTENT_MAX (1024 * 1024) /* of a file, to ask for of a diff */

struct scrub;
struct generate_options {
    bool vault;           /* otherwise a secret is refused */
    struct scrub *values; /* of secrets that the sandbox uses; NULL: none */
};
/* *ret_tasks and *ret_notes: arrays, for struct playbook_spec. */
CHECKED int playbook_generate(const struct change_list *l, const struct generate_options *o,
                              json_t **ret_tasks, json_t **ret_notes, struct err *e);

/* generate_text.c: the tasks of playbook_generate in other languages.  A variable of a vault is an
 * environment variable in a script, and a lookup in Puppet. */
void generate_shell(const json_t *tasks, struct buf *to);
void generate_puppet(const json_t *tasks, struct buf *to);

/* generate_secret.c: what the content of a file looks like: "an AWS access key"; NULL: nothing. */
const char *secret_in_text(struct str text);
