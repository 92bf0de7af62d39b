/* host: operations on the hosts of virtual machines. */
#include "ops/host.h"

const char *const op_host_states[] = {"unknown", "up", "down", NULL};

/* clang-format off */
static const struct op_field host_reply[] = {
    REPLY("name", OP_STR, "Its name in the setting 'hosts'.", .example = "rack1"),
    REPLY("runtime", OP_STR, "The runtime that makes machines there.", .example = "vm"),
    REPLY("uri", OP_STR, "Where its manager of machines is.", .example = "qemu+ssh://agent@rack1/system"),
    REPLY("network", OP_STR, "Its network for machines with a raw network.", .example = "default"),
    REPLY("state", OP_CHOICE, "Whether it answers; 'unknown' until it was asked.", .choices = op_host_states, .example = "up"),
    REPLY("reason", OP_STR, "Why it does not answer; null: it does.", .nullable = true, .example = "connect to host 'rack1'"),
    REPLY("since", OP_TIME, "Since when it is in this state; null: it was not asked yet.", .nullable = true),
    REPLY("drained", OP_BOOL, "True if it gets no new machines.", .example = "false"),
    REPLY("machines", OP_INT, "Machines of this installation there that are not off.", .example = "3"),
    REPLY("running", OP_INT, "Running machines there, everybody's.", .example = "4"),
    REPLY("cpus", OP_INT, "CPUs that machines may use; 0: not known.", .example = "32"),
    REPLY("cpus_used", OP_INT, "CPUs of our machines there. They may be more than the host has.", .example = "6"),
    REPLY("memory_bytes", OP_INT, "Memory that our machines may use; 0: not known.", .example = "68719476736"),
    REPLY("memory_used_bytes", OP_INT, "Memory of our machines there.", .example = "3221225472"),
    REPLY("memory_free_bytes", OP_INT, "Memory that the host says is free.", .example = "34359738368"),
    REPLY("disk_bytes", OP_INT, "Size of the file system for disks; 0: not known.", .example = "1099511627776"),
    REPLY("disk_free_bytes", OP_INT, "What of it is free.", .example = "549755813888"),
    REPLY("accel", OP_STR, "How machines run there: 'kvm' or 'tcg'; null: none was started yet.", .nullable = true, .example = "kvm"),
    REPLY("hostname", OP_STR, "As the host calls itself.", .nullable = true, .example = "rack1.example.org"),
    REPLY("version", OP_STR, "Versions of its programs.", .nullable = true, .example = "QEMU 7.2.0, libvirt 9.0.0"),
};
#define HOST_OUT .out = host_reply, .out_count = ARRAY_LEN(host_reply), .schema = "Host"

static const struct op_field host_list_fields[] = {
    FIELD(struct host_list_in, limit, OP_INT, .min = 1, .max = 1000, .preset = "100", .example = "20",
          .text = "At most this many."),
};
const struct op op_host_list = {
    .name = "host.list",
    .group = "host",
    .text = "List the hosts of virtual machines: whether they answer, and how full they are.",
    .method = "GET",
    .path = "/holt/v1/hosts",
    .verb = "host ls",
    .perm = PERM_READ,
    .in = host_list_fields,
    .in_count = ARRAY_LEN(host_list_fields),
    .in_size = sizeof(struct host_list_in),
    .reply = OP_REPLY_LIST,
    HOST_OUT,
    .items = "hosts",
    .columns = "name,state,drained,machines,cpus_used,cpus,memory_used_bytes,memory_bytes,uri",
};

#define HOST_NAME(structure) \
    FIELD(structure, name, OP_STR, .required = true, .positional = true, .min = 1, .max = 40, .pattern = OP_PATTERN_NAME, \
          .example = "rack1", .text = "The host's name.")
static const struct op_field host_id_fields[] = {
    HOST_NAME(struct host_id_in),
};
const struct op op_host_get = {
    .name = "host.get",
    .group = "host",
    .text = "Show one host of virtual machines.",
    .method = "GET",
    .path = "/holt/v1/hosts/{name}",
    .verb = "host inspect",
    .perm = PERM_READ,
    .in = host_id_fields,
    .in_count = ARRAY_LEN(host_id_fields),
    .in_size = sizeof(struct host_id_in),
    HOST_OUT,
};

static const struct op_field host_drain_fields[] = {
    HOST_NAME(struct host_drain_in),
    FIELD(struct host_drain_in, off, OP_BOOL, .preset = "false", .example = "true", .text = "Let it get machines again."),
};
const struct op op_host_drain = {
    .name = "host.drain",
    .group = "host",
    .text = "Make no new machines on a host; those that are there go on.\n"
            "It stays so over restarts, until it is undone with 'off'.",
    .method = "POST",
    .path = "/holt/v1/hosts/{name}/drain",
    .verb = "host drain",
    .perm = PERM_ADMIN,
    .in = host_drain_fields,
    .in_count = ARRAY_LEN(host_drain_fields),
    .in_size = sizeof(struct host_drain_in),
    HOST_OUT,
};
/* clang-format on */
