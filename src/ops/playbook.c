/* playbook: operations on targets and playbooks. */
#include "ops/playbook.h"
#include "ops/rows.h"

const char *const op_playbook_formats[] = {"ansible", "json", NULL};
const char *const op_playbook_secrets[] = {"refuse", "vault", NULL};

/* clang-format off */
#define TARGETS "/holt/v1/targets"
#define PLAYBOOKS "/holt/v1/playbooks"
#define OWNER_EXAMPLE .example = "token/tk_01k4r8w2m9h5t7c3xqvd"
#define TIME_EXAMPLE .example = "2026-01-02T03:04:05.678Z"
#define TARGET_EXAMPLE .example = "tg_01k4r8w2m9h5t7c3xqvd"
#define PLAYBOOK_EXAMPLE .example = "pb_01k4r8w2m9h5t7c3xqvd"
#define TASK_EXAMPLE .example = "pt_01k4r8w2m9h5t7c3xqvd"
#define KEY_EXAMPLE .example = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGFvbGQ"
#define BODY_MAX (9 << 20)
#define PAGE(structure, ID_EXAMPLE) \
    FIELD(structure, limit, OP_INT, .min = 1, .max = 1000, .preset = "100", .example = "20", .text = "At most this many in one page."), \
    FIELD(structure, cursor, OP_STR, .max = 64, ID_EXAMPLE, .text = "Continue after the last page: the cursor of its reply.")

/* --- targets --- */

static const struct op_field target_reply[] = {
    REPLY("id", OP_STR, "The target's id.", TARGET_EXAMPLE),
    REPLY("name", OP_STR, "Its name.", .example = "web-1"),
    REPLY("tenant", OP_STR, "The tenant it belongs to; null: none.", .nullable = true, .example = "acme"),
    REPLY("owner", OP_STR, "Who added it.", OWNER_EXAMPLE),
    REPLY("address", OP_STR, "Its address; null: a sandbox.", .nullable = true, .example = "192.0.2.10"),
    REPLY("port", OP_INT, "The port of its sshd.", .example = "22"),
    REPLY("sandbox", OP_STR, "The sandbox that it is; null: another machine.", .nullable = true, .example = "sb_01k4r8w2m9h5t7c3xqvd"),
    REPLY("user", OP_STR, "The user that playbooks log in as.", .example = "deploy"),
    REPLY("host_key", OP_STR, "The only host key that it may have; null: a sandbox's own.", .nullable = true, KEY_EXAMPLE),
    REPLY("principals", OP_LIST, "The principals of the certificates for it.", .example = "deploy"),
    REPLY("become", OP_BOOL, "True if playbooks become root there, by sudo.", .example = "true"),
    REPLY("shared", OP_BOOL, "True if others may ask to apply a playbook to it.", .example = "true"),
    REPLY("people", OP_INT, "How many people must approve.", .example = "1"),
    REPLY("created_at", OP_TIME, "When it was added.", TIME_EXAMPLE),
};
#define TARGET_OUT OUT(target_reply, "Target")

static const struct op_field target_create_fields[] = {
    FIELD(struct target_create_in, name, OP_STR, .required = true, .positional = true, .min = 1, .max = 63,
          .pattern = OP_PATTERN_NAME, .example = "web-1", .text = "Its name."),
    FIELD(struct target_create_in, address, OP_STR, .min = 1, .max = 253, .example = "192.0.2.10", .text = "Its IP address or host name."),
    FIELD(struct target_create_in, port, OP_INT, .min = 1, .max = 65535, .preset = "22", .example = "2222", .text = "The port of its sshd."),
    FIELD(struct target_create_in, sandbox, OP_STR, .min = 1, .max = 255, .example = "staging",
          .text = "Instead of an address: a sandbox, by id or name. A snapshot is taken before each change."),
    FIELD(struct target_create_in, user, OP_STR, .min = 1, .max = 32, .preset = "root", .example = "deploy", .text = "The user to log in as."),
    FIELD(struct target_create_in, host_key, OP_STR, .min = 1, .max = 4096, KEY_EXAMPLE,
          .text = "The host key of an address, as in its ssh_host_ed25519_key.pub. Another key is refused."),
    FIELD(struct target_create_in, principals, OP_LIST, .max = 16, .example = "deploy",
          .text = "Principals of the certificates for it; the user if absent."),
    FIELD(struct target_create_in, become, OP_BOOL, .preset = "false", .example = "true", .text = "Become root there, by sudo."),
    FIELD(struct target_create_in, people, OP_INT, .min = 1, .max = 5, .preset = "1", .example = "2", .text = "How many people must approve."),
    FIELD(struct target_create_in, shared, OP_BOOL, .preset = "true", .example = "false",
          .text = "Others, agents too, may ask to apply a playbook to it."),
};
const struct op op_target_create = {
    .name = "target.create", .group = "playbook", .text = "Add a target: a machine that playbooks are applied to, after approval.",
    .method = "POST", .path = TARGETS, .verb = "target add", .perm = PERM_SECRETS,
    IN(target_create_fields, struct target_create_in), TARGET_OUT, .status = 201, .creates = true,
};

static const struct op_field target_list_fields[] = {PAGE(struct target_list_in, TARGET_EXAMPLE)};
const struct op op_target_list = {
    .name = "target.list", .group = "playbook", .text = "List the targets, oldest first; an agent sees those that are shared.",
    .method = "GET", .path = TARGETS, .verb = "target ls", .perm = PERM_SANDBOX_READ,
    IN(target_list_fields, struct target_list_in), .reply = OP_REPLY_LIST, TARGET_OUT, .items = "targets",
    .columns = "id,name,address,sandbox,user,people",
};

static const struct op_field target_id_fields[] = {
    FIELD(struct target_id_in, id, OP_STR, .required = true, .positional = true, .min = 1, .max = 255, .example = "web-1",
          .text = "The target's id or name; another's: OWNER/NAME."),
};
#define TARGET_ID_IN IN(target_id_fields, struct target_id_in)
const struct op op_target_get = {
    .name = "target.get", .group = "playbook", .text = "Show one target.",
    .method = "GET", .path = TARGETS "/{id}", .verb = "target inspect", .perm = PERM_SANDBOX_READ, TARGET_ID_IN, TARGET_OUT,
};
const struct op op_target_remove = {
    .name = "target.remove", .group = "playbook", .text = "Remove a target; the machine itself is left alone.",
    .method = "DELETE", .path = TARGETS "/{id}", .verb = "target rm", .perm = PERM_SECRETS, TARGET_ID_IN,
    .reply = OP_REPLY_EMPTY, .status = 204,
};

/* --- playbooks --- */

static const struct op_field playbook_reply[] = {
    REPLY("id", OP_STR, "The playbook's id.", PLAYBOOK_EXAMPLE),
    REPLY("name", OP_STR, "Its name.", .example = "nginx"),
    REPLY("tenant", OP_STR, "The tenant it belongs to; null: none.", .nullable = true, .example = "acme"),
    REPLY("owner", OP_STR, "Who made it.", OWNER_EXAMPLE),
    REPLY("hosts", OP_STR, "The hosts of its play, for an inventory of your own.", .example = "all"),
    REPLY("become", OP_BOOL, "True if its tasks become root.", .example = "true"),
    REPLY("notes", OP_JSON, "What a generated one does not do: a list of {path, reason}; null: it was made by hand.", .types = "array", .nullable = true),
    REPLY("tasks", OP_JSON, "Its tasks in order: {id, name, module, params, created_at}. A list of playbooks has their number.", .types = "array|integer"),
    REPLY("created_at", OP_TIME, "When it was made.", TIME_EXAMPLE),
    REPLY("updated_at", OP_TIME, "When it was last changed.", TIME_EXAMPLE),
};
#define PLAYBOOK_OUT OUT(playbook_reply, "Playbook")
#define PLAYBOOK_ID(structure) \
    FIELD(structure, id, OP_STR, .required = true, .positional = true, .min = 1, .max = 255, .example = "nginx", \
          .text = "The playbook's id or name; another's: OWNER/NAME.")

static const struct op_field playbook_create_fields[] = {
    FIELD(struct playbook_create_in, name, OP_STR, .required = true, .positional = true, .min = 1, .max = 128,
          .pattern = OP_PATTERN_NAME, .example = "nginx", .text = "Its name."),
    FIELD(struct playbook_create_in, hosts, OP_STR, .min = 1, .max = 1024, .preset = "all", .example = "web",
          .text = "The hosts of its play, for an inventory of your own."),
    FIELD(struct playbook_create_in, become, OP_BOOL, .preset = "false", .example = "true", .text = "Its tasks become root."),
    FIELD(struct playbook_create_in, tasks, OP_JSON, .types = "array", .text = "Its tasks in order: {name, module, params}."),
};
const struct op op_playbook_create = {
    .name = "playbook.create", .group = "playbook", .text = "Create a playbook: tasks of Ansible in order.",
    .method = "POST", .path = PLAYBOOKS, .verb = "playbook create", .perm = PERM_SANDBOX_WRITE, .body_max = BODY_MAX,
    IN(playbook_create_fields, struct playbook_create_in), PLAYBOOK_OUT, .status = 201, .creates = true,
};

static const struct op_field playbook_generate_fields[] = {
    FIELD(struct playbook_generate_in, name, OP_STR, .required = true, .positional = true, .min = 1, .max = 128,
          .pattern = OP_PATTERN_NAME, .example = "nginx", .text = "Its name."),
    FIELD(struct playbook_generate_in, to, OP_STR, .required = true, .min = 1, .max = 400, .example = "build",
          .text = "The state to repeat: a sandbox, or a snapshot."),
    FIELD(struct playbook_generate_in, from, OP_STR, .max = 400, .example = "build@clean",
          .text = "The state before: a sandbox, a snapshot or an image. Default: what 'to' was made from."),
    FIELD(struct playbook_generate_in, path, OP_LIST, .max = 256, .example = "/etc", .text = "Only files at and below these paths."),
    FIELD(struct playbook_generate_in, all, OP_BOOL, .preset = "false", .example = "true",
          .text = "Volatile trees too (setting diff_ignore)."),
    FIELD(struct playbook_generate_in, hosts, OP_STR, .min = 1, .max = 1024, .preset = "all", .example = "web",
          .text = "The hosts of its play, for an inventory of your own."),
    FIELD(struct playbook_generate_in, become, OP_BOOL, .preset = "true", .example = "false", .text = "Its tasks become root."),
    {.name = "secrets", .type = OP_CHOICE, .offset = offsetof(struct playbook_generate_in, secrets), .choices = op_playbook_secrets,
     .preset = "refuse", .example = "vault",
     .text = "A file that holds a private key, a token or the value of a secret. 'refuse': no playbook is made. 'vault': its content becomes "
             "a variable for Ansible's vault, named in the notes."},
};
const struct op op_playbook_generate = {
    .name = "playbook.generate", .group = "playbook",
    .text = "Make a playbook of what has changed between two states.\n"
            "Packages with their versions, groups, users, directories, files with content, mode and owner, links, removals and services, as "
            "tasks of Ansible; applied twice, the second time changes nothing. Notes say what is not in it.",
    .method = "POST", .path = PLAYBOOKS "/generate", .verb = "playbook generate", .perm = PERM_SANDBOX_WRITE,
    IN(playbook_generate_fields, struct playbook_generate_in), PLAYBOOK_OUT, .status = 201,
};

static const struct op_field playbook_list_fields[] = {PAGE(struct playbook_list_in, PLAYBOOK_EXAMPLE)};
const struct op op_playbook_list = {
    .name = "playbook.list", .group = "playbook", .text = "List the playbooks, oldest first; an agent sees its own.",
    .method = "GET", .path = PLAYBOOKS, .verb = "playbook ls", .perm = PERM_SANDBOX_READ,
    IN(playbook_list_fields, struct playbook_list_in), .reply = OP_REPLY_LIST, PLAYBOOK_OUT, .items = "playbooks",
    .columns = "id,name,owner,tasks,updated_at",
};

static const struct op_field playbook_id_fields[] = {PLAYBOOK_ID(struct playbook_id_in)};
#define PLAYBOOK_ID_IN IN(playbook_id_fields, struct playbook_id_in)
const struct op op_playbook_get = {
    .name = "playbook.get", .group = "playbook", .text = "Show one playbook and its tasks.",
    .method = "GET", .path = PLAYBOOKS "/{id}", .verb = "playbook show", .perm = PERM_SANDBOX_CONTENT, .audited = true,
    PLAYBOOK_ID_IN, PLAYBOOK_OUT,
};
const struct op op_playbook_remove = {
    .name = "playbook.remove", .group = "playbook", .text = "Remove a playbook; rollouts of it stay.",
    .method = "DELETE", .path = PLAYBOOKS "/{id}", .verb = "playbook rm", .perm = PERM_SANDBOX_WRITE, PLAYBOOK_ID_IN,
    .reply = OP_REPLY_EMPTY, .status = 204,
};

static const struct op_field playbook_export_fields[] = {
    PLAYBOOK_ID(struct playbook_export_in),
    {.name = "as", .type = OP_CHOICE, .offset = offsetof(struct playbook_export_in, format), .choices = op_playbook_formats,
     .preset = "ansible", .example = "json", .text = "'ansible': YAML for ansible-playbook. 'json': its tasks, as create takes them."},
};
const struct op op_playbook_export = {
    .name = "playbook.export", .group = "playbook", .text = "Print a playbook as a file.",
    .method = "GET", .path = PLAYBOOKS "/{id}/export", .verb = "playbook export", .perm = PERM_SANDBOX_CONTENT, .audited = true,
    IN(playbook_export_fields, struct playbook_export_in), .reply = OP_REPLY_TEXT, .media = "text/plain; charset=utf-8",
};

#define TASK_NAME .min = 1, .max = 1024, .example = "Install nginx", .text = "Its name."
#define TASK_MODULE .min = 1, .max = 128, .example = "ansible.builtin.apt", .text = "The module that it runs."
#define TASK_PARAMS .types = "object", .text = "The module's parameters."
#define TASK_ID(structure) \
    FIELD(structure, task, OP_STR, .required = true, .positional = true, .min = 1, .max = 64, TASK_EXAMPLE, .text = "The task's id.")

static const struct op_field playbook_task_add_fields[] = {
    PLAYBOOK_ID(struct playbook_task_in),
    FIELD(struct playbook_task_in, name, OP_STR, .required = true, TASK_NAME),
    FIELD(struct playbook_task_in, module, OP_STR, .required = true, TASK_MODULE),
    FIELD(struct playbook_task_in, params, OP_JSON, TASK_PARAMS),
};
const struct op op_playbook_task_add = {
    .name = "playbook.task_add", .group = "playbook", .text = "Add a task at the end of a playbook.",
    .method = "POST", .path = PLAYBOOKS "/{id}/tasks", .verb = "playbook task-add", .perm = PERM_SANDBOX_WRITE, .body_max = BODY_MAX,
    IN(playbook_task_add_fields, struct playbook_task_in), PLAYBOOK_OUT, .status = 201,
};

static const struct op_field playbook_task_change_fields[] = {
    PLAYBOOK_ID(struct playbook_task_in),
    TASK_ID(struct playbook_task_in),
    FIELD(struct playbook_task_in, name, OP_STR, TASK_NAME),
    FIELD(struct playbook_task_in, module, OP_STR, TASK_MODULE),
    FIELD(struct playbook_task_in, params, OP_JSON, TASK_PARAMS),
};
const struct op op_playbook_task_change = {
    .name = "playbook.task_change", .group = "playbook", .text = "Change a task; params are replaced as a whole.",
    .method = "PATCH", .path = PLAYBOOKS "/{id}/tasks/{task}", .verb = "playbook task-set", .perm = PERM_SANDBOX_WRITE, .body_max = BODY_MAX,
    IN(playbook_task_change_fields, struct playbook_task_in), PLAYBOOK_OUT,
};

static const struct op_field playbook_task_remove_fields[] = {PLAYBOOK_ID(struct playbook_task_in), TASK_ID(struct playbook_task_in)};
const struct op op_playbook_task_remove = {
    .name = "playbook.task_remove", .group = "playbook", .text = "Remove a task.",
    .method = "DELETE", .path = PLAYBOOKS "/{id}/tasks/{task}", .verb = "playbook task-rm", .perm = PERM_SANDBOX_WRITE,
    IN(playbook_task_remove_fields, struct playbook_task_in), .reply = OP_REPLY_EMPTY, .status = 204,
};

static const struct op_field playbook_reorder_fields[] = {
    PLAYBOOK_ID(struct playbook_reorder_in),
    FIELD(struct playbook_reorder_in, tasks, OP_LIST, .required = true, .positional = true, .min = 1, .max = 10000, TASK_EXAMPLE,
          .text = "The ids of all its tasks in the new order."),
};
const struct op op_playbook_reorder = {
    .name = "playbook.reorder", .group = "playbook", .text = "Put the tasks of a playbook in another order.",
    .method = "PUT", .path = PLAYBOOKS "/{id}/order", .verb = "playbook reorder", .perm = PERM_SANDBOX_WRITE, .body_max = 1 << 20,
    IN(playbook_reorder_fields, struct playbook_reorder_in), PLAYBOOK_OUT,
};
/* clang-format on */
