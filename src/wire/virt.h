/* virt: the protocol between holtd and holt-virt (docs/protocol-virt.md), in packets
 * (wire/packet.h).  Requests carry a tag that the one reply repeats; events have tag 0.  Ids become
 * names of domains and volumes: they are checked on both sides.  No I/O, no allocation.  Errors: 0,
 * or -1 with *e set. */
#pragma once

#include "wire/packet.h"

#define VIRT_VERSION 4
#define VIRT_ID_MAX 31
#define VIRT_PEM_MAX 8192
#define VIRT_TEXT_MAX 127
#define VIRT_HOST_MAX 40  /* bytes of a host's name */
#define VIRT_LIST_MAX 256 /* rows of one list reply */
#define VIRT_MEMORY_PRESET (512LL << 20)

enum virt_type {
    VIRT_HELLO = 1,
    VIRT_WELCOME = 2,
    VIRT_CREATE = 3, /* answered when init runs inside; after a failure nothing is left */
    VIRT_CREATED = 4,
    VIRT_CONFIRM = 5, /* holtd has the row */
    VIRT_CONNECT = 6,
    VIRT_CHANNEL = 7, /* with a socket: the machine's guest channel */
    VIRT_KILL = 8,
    VIRT_REMOVE = 9,
    VIRT_PAUSE = 10,
    VIRT_STATS_GET = 11,
    VIRT_STATS = 12,
    VIRT_LIST = 13,
    VIRT_LISTED = 14,
    VIRT_DONE = 15, /* the plain answer: success, or the error of any request */
    VIRT_EVENT = 16,
    VIRT_HOST_GET = 17,
    VIRT_HOST = 18,
    VIRT_TYPE_END
};

struct virt_hello {
    uint16_t version_min, version_max;
    struct str installation; /* only its machines are seen */
};
struct virt_welcome {
    uint16_t version;
};
enum virt_create_flag {
    VIRT_RESTART = 1, /* the disk of an earlier life is there: use it */
    VIRT_RELAY = 2,
    VIRT_HUB = 4,
    VIRT_PROCESS = 8,
    VIRT_NETWORK = 16, /* its init leads connections out */
    VIRT_CREATE_FLAGS = 31
};
struct virt_create {
    struct str id, hostname;
    uint32_t flags;
    uint64_t memory_bytes, disk_bytes; /* 0: the preset, the base's */
    uint32_t cpus, files;              /* 0: the preset */
    struct str ca;                     /* PEM of the authority it trusts; empty: none */
};
struct virt_created {
    uint8_t kvm; /* 0: by TCG, several times slower */
};
struct virt_name { /* confirm, connect, stats_get */
    struct str id;
};
enum virt_scope { VIRT_WORK, VIRT_ALL, VIRT_SCOPE_COUNT };
struct virt_kill {
    struct str id;
    uint8_t scope; /* what runs inside but init; the machine */
};
struct virt_remove {
    struct str id;
    uint8_t keep; /* the disk stays, for a create with VIRT_RESTART */
};
struct virt_pause {
    struct str id;
    uint8_t on;
};
struct virt_stats {
    uint64_t memory_bytes, cpu_us, disk_bytes;
};
struct virt_list {
    struct str after; /* the last id of the page before, or "" */
};
struct virt_list_row {
    struct str id;
    uint8_t running, confirmed;
};
struct virt_listed {
    uint8_t more;
    struct wire_rows machines; /* virt_list_row, by id */
};
struct virt_host_get {
    uint8_t unused;
};
struct virt_host { /* what a host has, and what of it is free; 0: not known */
    uint64_t memory_bytes, memory_free_bytes, disk_bytes, disk_free_bytes;
    uint32_t cpus, running;   /* running: machines, everybody's */
    uint8_t accel;            /* enum virt_accel: what its machines run by */
    struct str name, version; /* as the host calls itself; of QEMU and libvirt */
};
enum virt_accel { VIRT_ACCEL_UNKNOWN, VIRT_ACCEL_KVM, VIRT_ACCEL_TCG, VIRT_ACCEL_COUNT };
struct virt_done {
    struct err err;
};
enum virt_what { VIRT_OFF, VIRT_PAUSED, VIRT_RESUMED, VIRT_BOOTED, VIRT_WHAT_COUNT };
struct virt_event { /* what has become of a machine */
    struct str id;
    uint8_t what;
};

struct virt_msg {
    enum virt_type type;
    uint32_t tag; /* 0 for events only */
    union {
        struct virt_hello hello;
        struct virt_welcome welcome;
        struct virt_create create;
        struct virt_created created;
        struct virt_name name;
        struct virt_kill kill;
        struct virt_remove remove;
        struct virt_pause pause;
        struct virt_stats stats;
        struct virt_list list;
        struct virt_listed listed;
        struct virt_done done;
        struct virt_event event;
        struct virt_host_get host_get;
        struct virt_host host;
    } u;
};

extern const struct packet_type virt_types[VIRT_TYPE_END];
extern const struct packet_protocol virt_protocol;
extern const struct wire_layout virt_list_row_layout;

#define VIRT_HOST_PRESET "local" /* the one host of settings that name none */
#define VIRT_FILE_MAX (VIRT_HOST_MAX + 8)
/* The beginning of the names of its holt-virt's files in the state directory: "virt" of that one,
 * "virt-NAME" of the others. */
void virt_file_name(const char *host, char to[static VIRT_FILE_MAX]);
bool virt_id_is_safe(struct str id);
bool virt_hostname_is_safe(struct str name); /* it stands on the kernel's command line */
