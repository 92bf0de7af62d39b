/* spawn: encodes and decodes messages between holtd and holt-spawn. */
#include "wire/spawn.h"

/* clang-format off */
#define NUM(type, member, width, ...) WIRE_FIELD(struct type, member, .kind = width, __VA_ARGS__)
#define TEXT(type, member, lo, hi) WIRE_FIELD(struct type, member, .kind = WIRE_TEXT, .min = (lo), .max = (hi))
#define ROWS(type, member, lo, hi, l) \
    WIRE_FIELD(struct type, member, .kind = WIRE_ROWS, .min = (lo), .max = (hi), .row = (l))

static const struct wire_field hello_fields[] = {
    NUM(spawn_hello, version_min, WIRE_U16, .min = 1),
    NUM(spawn_hello, version_max, WIRE_U16, .min = 1),
    TEXT(spawn_hello, installation, 1, SPAWN_ID_MAX),
};
static const struct wire_field welcome_fields[] = {
    NUM(spawn_welcome, version, WIRE_U16),
    NUM(spawn_welcome, rootless, WIRE_U8, .max = 1),
    NUM(spawn_welcome, features, WIRE_U32, .max = SPAWN_CAN_ALL),
    WIRE_FIELD(struct spawn_welcome, epoch, .kind = WIRE_ID16),
};
static const struct wire_field mount_row_fields[] = {
    NUM(spawn_mount_row, kind, WIRE_U8, .max = SPAWN_MOUNT_COUNT - 1),
    TEXT(spawn_mount_row, source, 0, SPAWN_PATH_MAX),
    TEXT(spawn_mount_row, target, 1, SPAWN_PATH_MAX),
    NUM(spawn_mount_row, readonly, WIRE_U8, .max = 1),
    NUM(spawn_mount_row, size, WIRE_U64),
};
const struct wire_layout spawn_mount_row_layout =
    WIRE_LAYOUT("mount row", struct spawn_mount_row, mount_row_fields);
static const struct wire_field create_fields[] = {
    TEXT(spawn_create, id, 1, SPAWN_ID_MAX),
    TEXT(spawn_create, hostname, 1, 63),
    NUM(spawn_create, flags, WIRE_U32, .max = SPAWN_CREATE_FLAGS),
    NUM(spawn_create, memory_bytes, WIRE_U64),
    NUM(spawn_create, disk_bytes, WIRE_U64),
    NUM(spawn_create, cpu_millis, WIRE_U32, .max = 1024 * 1000),
    NUM(spawn_create, pids, WIRE_U32, .max = 4194304),
    NUM(spawn_create, nofile, WIRE_U32, .max = 1048576),
    ROWS(spawn_create, layers, 0, SPAWN_LAYERS_MAX, &wire_text_row),
    ROWS(spawn_create, mounts, 0, SPAWN_MOUNTS_MAX, &spawn_mount_row_layout),
    TEXT(spawn_create, ca, 0, SPAWN_CA_MAX),
    TEXT(spawn_create, runtime, 0, OCI_NAME_MAX),
};
static const struct wire_field created_fields[] = {
    NUM(spawn_created, pid, WIRE_U32, .min = 1, .max = INT32_MAX),
    NUM(spawn_created, enforced, WIRE_U32, .max = SPAWN_CAN_ALL),
    TEXT(spawn_created, socket, 1, 1023),
    NUM(spawn_created, warm, WIRE_U8, .max = 1),
};
static const struct wire_field name_fields[] = {
    TEXT(spawn_name, id, 1, SPAWN_ID_MAX),
};
static const struct wire_field destroy_fields[] = {
    TEXT(spawn_destroy, id, 1, SPAWN_ID_MAX),
    NUM(spawn_destroy, keep, WIRE_U8, .max = 1),
};
static const struct wire_field kill_fields[] = {
    TEXT(spawn_kill, id, 1, SPAWN_ID_MAX),
    NUM(spawn_kill, scope, WIRE_U8, .max = SPAWN_SCOPE_COUNT - 1),
};
static const struct wire_field pause_fields[] = {
    TEXT(spawn_pause, id, 1, SPAWN_ID_MAX),
    NUM(spawn_pause, on, WIRE_U8, .max = 1),
};
static const struct wire_field stats_fields[] = {
    NUM(spawn_stats, memory_bytes, WIRE_U64),
    NUM(spawn_stats, memory_peak_bytes, WIRE_U64),
    NUM(spawn_stats, cpu_us, WIRE_U64),
    NUM(spawn_stats, pids, WIRE_U64),
    NUM(spawn_stats, oom_kills, WIRE_U64),
    NUM(spawn_stats, disk_bytes, WIRE_U64),
    NUM(spawn_stats, net_rx_bytes, WIRE_U64),
    NUM(spawn_stats, net_tx_bytes, WIRE_U64),
};
static const struct wire_field list_fields[] = {
    TEXT(spawn_list, after, 0, SPAWN_ID_MAX),
};
static const struct wire_field list_row_fields[] = {
    TEXT(spawn_list_row, id, 1, SPAWN_ID_MAX),
    NUM(spawn_list_row, state, WIRE_U8, .max = SPAWN_STATE_COUNT - 1),
    NUM(spawn_list_row, confirmed, WIRE_U8, .max = 1),
    TEXT(spawn_list_row, runtime, 0, OCI_NAME_MAX),
};
const struct wire_layout spawn_list_row_layout =
    WIRE_LAYOUT("list row", struct spawn_list_row, list_row_fields);
static const struct wire_field listed_fields[] = {
    NUM(spawn_listed, more, WIRE_U8, .max = 1),
    ROWS(spawn_listed, sandboxes, 0, SPAWN_LIST_MAX, &spawn_list_row_layout),
};
static const struct wire_field pool_fields[] = {
    NUM(spawn_pool, netns, WIRE_U32, .max = 64),
    NUM(spawn_pool, spares, WIRE_U32, .max = SPAWN_SPARES_KEEP),
};
static const struct wire_field pooled_fields[] = {
    NUM(spawn_pooled, ready, WIRE_U32, .max = SPAWN_SPARES_MAX),
    NUM(spawn_pooled, broken, WIRE_U64),
};
static const struct wire_field done_fields[] = {
    WIRE_FIELD(struct spawn_done, err, .kind = WIRE_ERR),
};
static const struct wire_field discard_fields[] = {
    TEXT(spawn_discard, id, 1, SPAWN_LAYER_MAX),
    NUM(spawn_discard, what, WIRE_U8, .max = SPAWN_DISCARD_COUNT - 1),
};
static const struct wire_field measure_fields[] = {
    TEXT(spawn_measure, id, 1, SPAWN_ID_MAX),
    NUM(spawn_measure, kind, WIRE_U8, .min = SPAWN_MOUNT_VOLUME, .max = SPAWN_MOUNT_SHARED),
};
static const struct wire_field measured_fields[] = {
    NUM(spawn_measured, bytes, WIRE_U64),
};
static const struct wire_field snapshot_fields[] = {
    TEXT(spawn_snapshot, id, 1, SPAWN_ID_MAX),
    TEXT(spawn_snapshot, layer, 1, SPAWN_ID_MAX),
    NUM(spawn_snapshot, mode, WIRE_U8, .max = SPAWN_SNAPSHOT_COUNT - 1),
    NUM(spawn_snapshot, bytes_max, WIRE_U64),
};
static const struct wire_field snapshotted_fields[] = {
    NUM(spawn_snapshotted, entries, WIRE_U64),
    NUM(spawn_snapshotted, bytes, WIRE_U64),
    NUM(spawn_snapshotted, frozen_us, WIRE_U64),
    TEXT(spawn_snapshotted, digest, 0, 64),
};
static const struct wire_field listeners_fields[] = {
    NUM(spawn_listeners, kinds, WIRE_U32, .min = 1, .max = (1 << SPAWN_LISTENER_COUNT) - 1),
};
static const struct wire_field event_fields[] = {
    TEXT(spawn_event, id, 1, SPAWN_ID_MAX),
    NUM(spawn_event, kind, WIRE_U8, .min = 1, .max = SPAWN_EVENT_COUNT - 1),
    NUM(spawn_event, status, WIRE_U32),
};

static const struct wire_layout
    hello_layout   = WIRE_LAYOUT("hello", struct spawn_hello, hello_fields),
    welcome_layout = WIRE_LAYOUT("welcome", struct spawn_welcome, welcome_fields),
    create_layout  = WIRE_LAYOUT("create", struct spawn_create, create_fields),
    created_layout = WIRE_LAYOUT("created", struct spawn_created, created_fields),
    name_layout    = WIRE_LAYOUT("name", struct spawn_name, name_fields),
    destroy_layout = WIRE_LAYOUT("destroy", struct spawn_destroy, destroy_fields),
    kill_layout    = WIRE_LAYOUT("kill", struct spawn_kill, kill_fields),
    pause_layout   = WIRE_LAYOUT("pause", struct spawn_pause, pause_fields),
    stats_layout   = WIRE_LAYOUT("stats", struct spawn_stats, stats_fields),
    list_layout    = WIRE_LAYOUT("list", struct spawn_list, list_fields),
    listed_layout  = WIRE_LAYOUT("listed", struct spawn_listed, listed_fields),
    pool_layout    = WIRE_LAYOUT("pool", struct spawn_pool, pool_fields),
    pooled_layout  = WIRE_LAYOUT("pooled", struct spawn_pooled, pooled_fields),
    done_layout    = WIRE_LAYOUT("done", struct spawn_done, done_fields),
    discard_layout = WIRE_LAYOUT("discard", struct spawn_discard, discard_fields),
    measure_layout = WIRE_LAYOUT("measure", struct spawn_measure, measure_fields),
    measured_layout = WIRE_LAYOUT("measured", struct spawn_measured, measured_fields),
    snapshot_layout = WIRE_LAYOUT("snapshot", struct spawn_snapshot, snapshot_fields),
    snapshotted_layout = WIRE_LAYOUT("snapshotted", struct spawn_snapshotted, snapshotted_fields),
    listeners_layout = WIRE_LAYOUT("listeners", struct spawn_listeners, listeners_fields),
    event_layout   = WIRE_LAYOUT("event", struct spawn_event, event_fields);

#define HOST SPAWN_HOST
#define SPWN SPAWN_SPAWN
const struct packet_type spawn_types[SPAWN_TYPE_END] = {
    /*                    name         from  fds layout */
    [SPAWN_HELLO]     = {"hello",     HOST, 0, &hello_layout},
    [SPAWN_WELCOME]   = {"welcome",   SPWN, 0, &welcome_layout},
    [SPAWN_CREATE]    = {"create",    HOST, 0, &create_layout},
    [SPAWN_CREATED]   = {"created",   SPWN, 1, &created_layout},
    [SPAWN_ADOPT]     = {"adopt",     HOST, 0, &name_layout},
    [SPAWN_CONFIRM]   = {"confirm",   HOST, 0, &name_layout},
    [SPAWN_KILL]      = {"kill",      HOST, 0, &kill_layout},
    [SPAWN_DESTROY]   = {"destroy",   HOST, 0, &destroy_layout},
    [SPAWN_PAUSE]     = {"pause",     HOST, 0, &pause_layout},
    [SPAWN_STATS_GET] = {"stats_get", HOST, 0, &name_layout},
    [SPAWN_STATS]     = {"stats",     SPWN, 0, &stats_layout},
    [SPAWN_LIST]      = {"list",      HOST, 0, &list_layout},
    [SPAWN_LISTED]    = {"listed",    SPWN, 0, &listed_layout},
    [SPAWN_POOL]      = {"pool",      HOST, 0, &pool_layout},
    [SPAWN_DONE]      = {"done",      SPWN, 0, &done_layout},
    [SPAWN_EVENT]     = {"event",     SPWN, 0, &event_layout, .untagged = true},
    [SPAWN_DISCARD]   = {"discard",   HOST, 0, &discard_layout},
    [SPAWN_MEASURE]   = {"measure",   HOST, 0, &measure_layout},
    [SPAWN_MEASURED]  = {"measured",  SPWN, 0, &measured_layout},
    [SPAWN_LISTEN]    = {"listen",    HOST, 0, &name_layout},
    [SPAWN_LISTENERS] = {"listeners", SPWN, SPAWN_LISTENER_COUNT, &listeners_layout,
                         .fds_by = PACKET_FDS_BY(struct spawn_listeners, kinds)},
    [SPAWN_POOLED]    = {"pooled",    SPWN, 0, &pooled_layout},
    [SPAWN_OOMS]      = {"ooms",      HOST, 0, &name_layout},
    [SPAWN_SNAPSHOT]    = {"snapshot",    HOST, 0, &snapshot_layout},
    [SPAWN_SNAPSHOTTED] = {"snapshotted", SPWN, 0, &snapshotted_layout},
};
/* clang-format on */

const struct packet_protocol spawn_protocol = {
    .helper = "holt-spawn",
    .types = spawn_types,
    .type_end = SPAWN_TYPE_END,
    PACKET_MESSAGE(struct spawn_msg),
    .version = SPAWN_VERSION,
    .hello = SPAWN_HELLO,
    .welcome = SPAWN_WELCOME,
};

int spawn_encode(const struct spawn_msg *m, enum spawn_side from, struct wire_out *o, struct err *e)
{
    return packet_encode(&spawn_protocol, m, (enum packet_side)from, o, e);
}

int spawn_decode(struct str packet, size_t fds, enum spawn_side from, struct spawn_msg *ret,
                 struct err *e)
{
    return packet_decode(&spawn_protocol, packet, fds, (enum packet_side)from, ret, e);
}

bool spawn_layer_is_safe(struct str id)
{
    return packet_name_is_safe(id, SPAWN_LAYER_MAX);
}

bool spawn_id_is_safe(struct str id)
{
    return packet_name_is_safe(id, SPAWN_ID_MAX);
}
