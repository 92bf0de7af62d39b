/* The messages between holtd and holt-virt as tables. */
#include "wire/virt.h"

#include <stdio.h>

/* clang-format off */
#define NUM(type, member, width, ...) WIRE_FIELD(struct type, member, .kind = width, __VA_ARGS__)
#define TEXT(type, member, lo, hi) WIRE_FIELD(struct type, member, .kind = WIRE_TEXT, .min = (lo), .max = (hi))
#define ID(type) TEXT(type, id, 1, VIRT_ID_MAX)

static const struct wire_field hello_fields[] = {
    NUM(virt_hello, version_min, WIRE_U16, .min = 1),
    NUM(virt_hello, version_max, WIRE_U16, .min = 1),
    TEXT(virt_hello, installation, 1, VIRT_ID_MAX),
};
static const struct wire_field welcome_fields[] = {
    NUM(virt_welcome, version, WIRE_U16),
};
static const struct wire_field create_fields[] = {
    ID(virt_create),
    TEXT(virt_create, hostname, 1, 63),
    NUM(virt_create, flags, WIRE_U32, .max = VIRT_CREATE_FLAGS),
    NUM(virt_create, memory_bytes, WIRE_U64),
    NUM(virt_create, disk_bytes, WIRE_U64),
    NUM(virt_create, cpus, WIRE_U32, .max = 1024),
    NUM(virt_create, files, WIRE_U32, .max = 1048576),
    TEXT(virt_create, ca, 0, VIRT_PEM_MAX),
};
static const struct wire_field created_fields[] = {
    NUM(virt_created, kvm, WIRE_U8, .max = 1),
};
static const struct wire_field name_fields[] = {
    ID(virt_name),
};
static const struct wire_field kill_fields[] = {
    ID(virt_kill),
    NUM(virt_kill, scope, WIRE_U8, .max = VIRT_SCOPE_COUNT - 1),
};
static const struct wire_field remove_fields[] = {
    ID(virt_remove),
    NUM(virt_remove, keep, WIRE_U8, .max = 1),
};
static const struct wire_field pause_fields[] = {
    ID(virt_pause),
    NUM(virt_pause, on, WIRE_U8, .max = 1),
};
static const struct wire_field stats_fields[] = {
    NUM(virt_stats, memory_bytes, WIRE_U64),
    NUM(virt_stats, cpu_us, WIRE_U64),
    NUM(virt_stats, disk_bytes, WIRE_U64),
};
static const struct wire_field list_fields[] = {
    TEXT(virt_list, after, 0, VIRT_ID_MAX),
};
static const struct wire_field list_row_fields[] = {
    ID(virt_list_row),
    NUM(virt_list_row, running, WIRE_U8, .max = 1),
    NUM(virt_list_row, confirmed, WIRE_U8, .max = 1),
};
const struct wire_layout virt_list_row_layout =
    WIRE_LAYOUT("list row", struct virt_list_row, list_row_fields);
static const struct wire_field listed_fields[] = {
    NUM(virt_listed, more, WIRE_U8, .max = 1),
    WIRE_FIELD(struct virt_listed, machines, .kind = WIRE_ROWS, .max = VIRT_LIST_MAX, .row = &virt_list_row_layout),
};
static const struct wire_field done_fields[] = {
    WIRE_FIELD(struct virt_done, err, .kind = WIRE_ERR),
};
static const struct wire_field host_get_fields[] = {
    NUM(virt_host_get, unused, WIRE_U8, .max = 0),
};
static const struct wire_field host_fields[] = {
    NUM(virt_host, memory_bytes, WIRE_U64),
    NUM(virt_host, memory_free_bytes, WIRE_U64),
    NUM(virt_host, disk_bytes, WIRE_U64),
    NUM(virt_host, disk_free_bytes, WIRE_U64),
    NUM(virt_host, cpus, WIRE_U32),
    NUM(virt_host, running, WIRE_U32),
    NUM(virt_host, accel, WIRE_U8, .max = VIRT_ACCEL_COUNT - 1),
    TEXT(virt_host, name, 0, VIRT_TEXT_MAX),
    TEXT(virt_host, version, 0, VIRT_TEXT_MAX),
};
static const struct wire_field event_fields[] = {
    ID(virt_event),
    NUM(virt_event, what, WIRE_U8, .max = VIRT_WHAT_COUNT - 1),
};

static const struct wire_layout
    hello_layout   = WIRE_LAYOUT("hello", struct virt_hello, hello_fields),
    welcome_layout = WIRE_LAYOUT("welcome", struct virt_welcome, welcome_fields),
    create_layout  = WIRE_LAYOUT("create", struct virt_create, create_fields),
    created_layout = WIRE_LAYOUT("created", struct virt_created, created_fields),
    name_layout    = WIRE_LAYOUT("name", struct virt_name, name_fields),
    kill_layout    = WIRE_LAYOUT("kill", struct virt_kill, kill_fields),
    remove_layout  = WIRE_LAYOUT("remove", struct virt_remove, remove_fields),
    pause_layout   = WIRE_LAYOUT("pause", struct virt_pause, pause_fields),
    stats_layout   = WIRE_LAYOUT("stats", struct virt_stats, stats_fields),
    list_layout    = WIRE_LAYOUT("list", struct virt_list, list_fields),
    listed_layout  = WIRE_LAYOUT("listed", struct virt_listed, listed_fields),
    done_layout    = WIRE_LAYOUT("done", struct virt_done, done_fields),
    event_layout   = WIRE_LAYOUT("event", struct virt_event, event_fields),
    host_get_layout = WIRE_LAYOUT("host_get", struct virt_host_get, host_get_fields),
    host_layout    = WIRE_LAYOUT("host", struct virt_host, host_fields);

#define HOST PACKET_HOST
#define VIRT PACKET_HELPER
const struct packet_type virt_types[VIRT_TYPE_END] = {
    /*                   name         from  fds layout */
    [VIRT_HELLO]     = {"hello",     HOST, 0, &hello_layout},
    [VIRT_WELCOME]   = {"welcome",   VIRT, 0, &welcome_layout},
    [VIRT_CREATE]    = {"create",    HOST, 0, &create_layout},
    [VIRT_CREATED]   = {"created",   VIRT, 0, &created_layout},
    [VIRT_CONFIRM]   = {"confirm",   HOST, 0, &name_layout},
    [VIRT_CONNECT]   = {"connect",   HOST, 0, &name_layout},
    [VIRT_CHANNEL]   = {"channel",   VIRT, 1, &name_layout},
    [VIRT_KILL]      = {"kill",      HOST, 0, &kill_layout},
    [VIRT_REMOVE]    = {"remove",    HOST, 0, &remove_layout},
    [VIRT_PAUSE]     = {"pause",     HOST, 0, &pause_layout},
    [VIRT_STATS_GET] = {"stats_get", HOST, 0, &name_layout},
    [VIRT_STATS]     = {"stats",     VIRT, 0, &stats_layout},
    [VIRT_LIST]      = {"list",      HOST, 0, &list_layout},
    [VIRT_LISTED]    = {"listed",    VIRT, 0, &listed_layout},
    [VIRT_DONE]      = {"done",      VIRT, 0, &done_layout},
    [VIRT_EVENT]     = {"event",     VIRT, 0, &event_layout, .untagged = true},
    [VIRT_HOST_GET]  = {"host_get",  HOST, 0, &host_get_layout},
    [VIRT_HOST]      = {"host",      VIRT, 0, &host_layout},
};
/* clang-format on */

const struct packet_protocol virt_protocol = {
    .helper = "holt-virt",
    .types = virt_types,
    .type_end = VIRT_TYPE_END,
    PACKET_MESSAGE(struct virt_msg),
    .version = VIRT_VERSION,
    .hello = VIRT_HELLO,
    .welcome = VIRT_WELCOME,
};

void virt_file_name(const char *host, char to[static VIRT_FILE_MAX])
{
    bool only = strcmp(host, VIRT_HOST_PRESET) == 0;

    (void)snprintf(to, VIRT_FILE_MAX, "virt%s%.*s", only ? "" : "-", VIRT_HOST_MAX,
                   only ? "" : host);
}

bool virt_id_is_safe(struct str id)
{
    return packet_name_is_safe(id, VIRT_ID_MAX);
}

bool virt_hostname_is_safe(struct str name)
{
    bool safe = name.n > 0 && name.n <= 63;

    for (size_t i = 0; safe && i < name.n; i++) {
        char c = name.p[i];

        safe = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               c == '_' || c == '-' || c == '.';
    }
    return safe;
}
