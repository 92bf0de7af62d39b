/* policy: operations on policies. */
#include "ops/policy.h"

#include "ops/rows.h"

#define EXAMPLE_ID "po_01k4r8w2m9h5t7c3xqvd"

/* clang-format off */
#define LIST(structure, member, sample, words) \
    {.name = #member, .type = OP_LIST, .offset = offsetof(structure, rules.member), .max = 256, .example = sample, .text = words}
#define NUMBER(structure, member, kind, sample, words) \
    {.name = #member, .type = kind, .offset = offsetof(structure, rules.member), .max = 1LL << 40, .example = sample, .text = words}
#define RULE_FIELDS(structure) \
    LIST(structure, commands_allow, "git", "Programs that may run, by name, path or pattern; none: all."), \
    LIST(structure, commands_deny, "git push", "Programs that may not run, also if they are allowed."), \
    LIST(structure, commands_reserved, "sh", "Names that are never a program: shells, for example."), \
    LIST(structure, words_deny, "&&", "Texts that no word of a command may contain."), \
    LIST(structure, paths_allow, "/srv", "Directories and files that may be read and written, with what is below; none: all."), \
    LIST(structure, paths_deny, "/etc", "Those that may neither be read nor written, also if they are allowed."), \
    LIST(structure, write_allow, "/srv/out", "Those that may be written; none: all that may be read."), \
    LIST(structure, write_deny, "/srv/in", "Those that may not be written."), \
    LIST(structure, agents, "claude", "Agents in whose sandboxes, and for whose commands, it is in force."), \
    NUMBER(structure, timeout_ms, OP_DURATION, "30s", "How long a command may run whose request does not say; 0: as by the settings."), \
    NUMBER(structure, timeout_max_ms, OP_DURATION, "5m", "How long a request may let a command run; 0: as long as it says."), \
    NUMBER(structure, output_bytes, OP_SIZE, "1m", "Bytes of a command's output to keep at most, 64 KiB or more; 0: as by the settings.")

static const struct op_field policy_reply[] = {
    REPLY("id", OP_STR, "The policy's id.", .example = EXAMPLE_ID),
    REPLY("name", OP_STR, "Its name.", .example = "careful"),
    REPLY("shipped", OP_BOOL, "Whether it came with holt: then it cannot be changed.", .example = "false"),
    REPLY("commands_allow", OP_LIST, "Programs that may run; none: all.", .example = "git"),
    REPLY("commands_deny", OP_LIST, "Programs that may not run.", .example = "git push"),
    REPLY("commands_reserved", OP_LIST, "Names that are never a program.", .example = "sh"),
    REPLY("words_deny", OP_LIST, "Texts that no word of a command may contain.", .example = "&&"),
    REPLY("paths_allow", OP_LIST, "What may be read and written; none: all.", .example = "/srv"),
    REPLY("paths_deny", OP_LIST, "What may neither be read nor written.", .example = "/etc"),
    REPLY("write_allow", OP_LIST, "What may be written; none: all that may be read.", .example = "/srv/out"),
    REPLY("write_deny", OP_LIST, "What may not be written.", .example = "/srv/in"),
    REPLY("agents", OP_LIST, "Agents for which it is in force.", .example = "claude"),
    REPLY("timeout_ms", OP_INT, "Time limit of commands without one; 0: as by the settings.", .example = "30000"),
    REPLY("timeout_max_ms", OP_INT, "The longest time limit that a request may ask for; 0: any.", .example = "300000"),
    REPLY("output_bytes", OP_INT, "Bytes of a command's output that are kept at most; 0: as by the settings.", .example = "1048576"),
    REPLY("sandboxes", OP_INT, "Sandboxes whose own policy it is.", .example = "2"),
    REPLY("created_by", OP_STR, "Who created it.", .example = "token/tk_01k4r8w2m9h5t7c3xqvd"),
    REPLY("created_at", OP_TIME, "When it was created; null: it came with holt.", .nullable = true),
    REPLY("updated_at", OP_TIME, "When it was last changed; null: never.", .nullable = true),
};

static const struct op_field policy_create_fields[] = {
    FIELD(struct policy_create_in, name, OP_STR, .required = true, .positional = true, .min = 1, .max = 63,
          .pattern = OP_PATTERN_NAME, .example = "careful", .text = "Its name."),
    RULE_FIELDS(struct policy_create_in),
};
const struct op op_policy_create = {
    .name = "policy.create",
    .group = "policy",
    .text = "Create a policy: rules for commands, paths, time and output, under a name.\n"
            "In each list deny wins. create and run take it as 'policy'. See docs/policies.md.",
    .method = "POST",
    .path = "/holt/v1/policies",
    .verb = "policy create",
    .perm = PERM_TEAM_RULE,
    IN(policy_create_fields, struct policy_create_in),
    OUT(policy_reply, "Policy"),
    .status = 201,
};

static const struct op_field policy_list_fields[] = {
    FIELD(struct policy_list_in, limit, OP_INT, .min = 1, .max = 1000, .preset = "100",
          .example = "20", .text = "At most this many in one page."),
    FIELD(struct policy_list_in, cursor, OP_STR, .max = 64, .example = EXAMPLE_ID,
          .text = "Continue after the last page: the cursor of its reply."),
};
const struct op op_policy_list = {
    .name = "policy.list",
    .group = "policy",
    .text = "List the policies, oldest first.",
    .method = "GET",
    .path = "/holt/v1/policies",
    .verb = "policy ls",
    .perm = PERM_SANDBOX_READ,
    IN(policy_list_fields, struct policy_list_in),
    .reply = OP_REPLY_LIST,
    OUT(policy_reply, "Policy"),
    .items = "policies",
    .columns = "id,name,shipped,sandboxes,created_at",
};

#define POLICY_ID(structure) \
    FIELD(structure, id, OP_STR, .required = true, .positional = true, .min = 1, .max = 64, \
          .example = "careful", .text = "The policy's name or id.")

static const struct op_field policy_id_fields[] = {POLICY_ID(struct policy_id_in)};
const struct op op_policy_get = {
    .name = "policy.get",
    .group = "policy",
    .text = "Show one policy.",
    .method = "GET",
    .path = "/holt/v1/policies/{id}",
    .verb = "policy inspect",
    .perm = PERM_SANDBOX_READ,
    IN(policy_id_fields, struct policy_id_in),
    OUT(policy_reply, "Policy"),
};

static const struct op_field policy_update_fields[] = {
    POLICY_ID(struct policy_update_in),
    RULE_FIELDS(struct policy_update_in),
};
const struct op op_policy_update = {
    .name = "policy.update",
    .group = "policy",
    .text = "Change a policy. A list replaces the old one; absent fields keep their values.\n"
            "It acts at once on files, and on commands that start from then on.",
    .method = "PATCH",
    .path = "/holt/v1/policies/{id}",
    .verb = "policy update",
    .perm = PERM_TEAM_RULE,
    IN(policy_update_fields, struct policy_update_in),
    OUT(policy_reply, "Policy"),
};

const struct op op_policy_remove = {
    .name = "policy.remove",
    .group = "policy",
    .text = "Remove a policy that is in force in no sandbox as its own.",
    .method = "DELETE",
    .path = "/holt/v1/policies/{id}",
    .verb = "policy rm",
    .perm = PERM_TEAM_RULE,
    IN(policy_id_fields, struct policy_id_in),
    .reply = OP_REPLY_EMPTY,
    .status = 204,
};
/* clang-format on */
