/* packet: the format of packets between holtd and its helpers (holt-spawn, holt-egress, holt-virt):
 * a SOCK_SEQPACKET Unix socket, one message per packet (u32 type, u32 tag, body by a layout),
 * descriptors beside it (SCM_RIGHTS).  A request carries a tag, which its one reply repeats;
 * everything else has tag 0.  A protocol is a table of types and a message struct that begins with
 * type and tag.  No I/O, no allocation.  Errors: 0, or -1 with *e set. */
#pragma once

#include "wire/layout.h"

#define PACKET_HEAD 8
#define PACKET_MAX (32 * 1024)
#define PACKET_FDS_MAX 4
#define PACKET_HELLO_TAG UINT32_MAX /* for a hello with a tag: no request has it */

enum packet_side { PACKET_HOST = 1, PACKET_HELPER = 2 };

struct packet_type { /* name NULL: there is no such type */
    const char *name;
    uint8_t from; /* enum packet_side */
    uint8_t fds;  /* descriptors beside it; with fds_by: the most */
    const struct wire_layout *layout;
    bool untagged;
    uint16_t fds_by; /* 0, or 1 + the offset in the body of the u32 whose bits count them */
};
#define PACKET_FDS_BY(type, member) ((uint16_t)(offsetof(type, member) + 1))

struct packet_protocol {
    const char *helper; /* the program's name in messages: "holt-spawn" */
    const struct packet_type *types;
    unsigned type_end;
    size_t size, body; /* of the message struct; offset of its union */
    uint16_t version;
    unsigned hello, welcome; /* types; both begin with a u16: the lowest version, the chosen one */
};
#define PACKET_MESSAGE(type) .size = sizeof(type), .body = offsetof(type, u)

struct packet_head { /* the beginning of every message struct */
    uint32_t type, tag;
};

CHECKED int packet_encode(const struct packet_protocol *p, const void *msg, enum packet_side from,
                          struct wire_out *o, struct err *e);
/* fds: the number of descriptors received with the packet.  After a failure the caller closes
 * them. */
CHECKED int packet_decode(const struct packet_protocol *p, struct str packet, size_t fds,
                          enum packet_side from, void *ret, struct err *e);
/* A name that becomes a file name: letters, digits, '_' and '-', not beginning with '-'. */
bool packet_name_is_safe(struct str name, size_t max);
