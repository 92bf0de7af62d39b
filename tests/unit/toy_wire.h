/* The protocol of the toy helper: each message is one number. */
#pragma once

#include "wire/packet.h"

enum { TOY_HELLO = 1, TOY_WELCOME, TOY_ASK, TOY_REPLY, TOY_TELL, TOY_EVENT, TOY_TYPE_END };
enum { TOY_DIE = 666, TOY_SILENT = 13 }; /* numbers that it does not simply repeat */

struct toy_number {
    uint16_t version;
    uint32_t n;
};
struct toy_msg {
    uint32_t type, tag;
    union {
        struct toy_number number;
    } u;
};

static const struct wire_field toy_fields[] = {
    WIRE_FIELD(struct toy_number, version, .kind = WIRE_U16),
    WIRE_FIELD(struct toy_number, n, .kind = WIRE_U32),
};
static const struct wire_layout toy_layout = WIRE_LAYOUT("toy", struct toy_number, toy_fields);
static const struct packet_type toy_types[TOY_TYPE_END] = {
    [TOY_HELLO] = {"hello", PACKET_HOST, 0, &toy_layout},
    [TOY_WELCOME] = {"welcome", PACKET_HELPER, 0, &toy_layout},
    [TOY_ASK] = {"ask", PACKET_HOST, 0, &toy_layout},
    [TOY_REPLY] = {"reply", PACKET_HELPER, 0, &toy_layout},
    [TOY_TELL] = {"tell", PACKET_HOST, 0, &toy_layout, .untagged = true},
    [TOY_EVENT] = {"event", PACKET_HELPER, 0, &toy_layout, .untagged = true},
};
static const struct packet_protocol toy_protocol = {
    .helper = "toy_helper",
    .types = toy_types,
    .type_end = TOY_TYPE_END,
    PACKET_MESSAGE(struct toy_msg),
    .version = 3,
    .hello = TOY_HELLO,
    .welcome = TOY_WELCOME,
};
