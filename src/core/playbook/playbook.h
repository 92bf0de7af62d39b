/* playbook: an Ansible play as an object: a name and tasks in order, made by hand or from a change
 * (core/playbook/generate.h), exported as YAML, applied by rollouts (core/playbook/rollout.h).
 *
 * A task is {"id", "name", "module", "params", "created_ms"}; params is an object or null.  In it
 * {"__ansible_unsafe": TEXT} is a text that Ansible takes as it is (YAML "!unsafe") and
 * {"__binary": BASE64} bytes ("!!binary").
 * Its owner decides who sees it (core/identity/owner.h); a name is unique among its owner's.
 * Rows are class 1; changes are events, without the tasks' params.
 * Ownership: the registry's; a playbook is borrowed until the loop turns.  Thread: the loop's. */
#pragma once

#include "core/identity/named.h"
#include "proto/json.h"

#define PLAYBOOK_TASKS_MAX 10000
#define PLAYBOOK_BYTES_MAX (8 << 20) /* of its tasks as JSON */

struct playbooks;
struct playbook;

struct playbook_info {
    const char *id;
    struct str name, tenant, owner, hosts;
    struct str notes; /* JSON: what a generated one does not do; empty: none */
    int64_t created_ms, updated_ms;
    size_t tasks;
    bool become;
};
struct playbook_spec { /* valid during the call */
    struct str name, hosts;
    bool become;
    const json_t *tasks; /* without "id" and "created_ms"; NULL: none */
    const json_t *notes; /* NULL: none */
};
struct playbook_task { /* of an add; of a change: absent (p NULL, NULL) stays */
    struct str name, module;
    const json_t *params; /* an object, or JSON null */
};

/* Reads the rows (blocking: at start-up only). */
CHECKED int playbooks_open(struct store *store, struct playbooks **ret, struct err *e);
struct playbooks *playbooks_free(struct playbooks *l); /* after store_close; takes, returns NULL */

struct playbook *playbook_of(struct named *n); /* NULL of NULL */
/* All: -1 with *e, and done is not called; or 0, and it is called later. */
CHECKED int playbook_create(struct playbooks *l, const struct playbook_spec *spec,
                            const struct named_call *c, struct err *e);
/* Other tasks, and what they leave out: of one that was generated. */
CHECKED int playbook_replace(struct playbook *p, const json_t *tasks, const json_t *notes,
                             const struct named_call *c, struct err *e);
CHECKED int playbook_remove(struct playbook *p, const struct named_call *c, struct err *e);
CHECKED int playbook_task_add(struct playbook *p, const struct playbook_task *t,
                              const struct named_call *c, char ret_id[ID_SIZE], struct err *e);
CHECKED int playbook_task_change(struct playbook *p, struct str id, const struct playbook_task *t,
                                 const struct named_call *c, struct err *e);
CHECKED int playbook_task_remove(struct playbook *p, struct str id, const struct named_call *c,
                                 struct err *e);
/* ids: of every task, once each. */
CHECKED int playbook_reorder(struct playbook *p, const struct str *ids, size_t n,
                             const struct named_call *c, struct err *e);

struct playbook *playbook_find(struct playbooks *l, const struct principal *by, enum owner_use use,
                               struct str ref, struct err *e);
struct playbook *playbook_next(struct playbooks *l, const struct principal *by, struct str after);
void playbook_info(const struct playbook *p, struct playbook_info *ret);
const json_t *playbook_tasks(const struct playbook *p); /* an array; borrowed */

/* --- playbook_yaml.c, pure --- */
/* hosts and become: of the play. */
void playbook_yaml(struct str name, struct str hosts, bool become, const json_t *tasks,
                   struct buf *to);
/* Whether an Ansible module may be named so: not a keyword of tasks, such as 'check_mode'. */
bool playbook_module_is_valid(struct str module);
/* Why `ansible-playbook --check` could do more than look: a template, which can run programs, or a
 * module that is not known to leave the machine alone.  false: nothing of that. */
bool playbook_check_acts(const json_t *tasks, struct buf *why);
bool playbook_has_templates(const json_t *tasks);
