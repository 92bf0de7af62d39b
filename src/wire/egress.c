/* egress: encodes and decodes messages between holtd and holt-egress. */
#include "wire/egress.h"

const char *const egress_whats[EGRESS_WHAT_COUNT] = {"denied", "allowed", "closed"};
const char *const egress_vias[EGRESS_VIA_COUNT] = {"connect", "http", "socks", "direct"};

/* clang-format off */
#define NUM(type, member, width, ...) WIRE_FIELD(struct type, member, .kind = width, __VA_ARGS__)
#define TEXT(type, member, lo, hi) WIRE_FIELD(struct type, member, .kind = WIRE_TEXT, .min = (lo), .max = (hi))

static const struct wire_field hello_fields[] = {
    NUM(egress_hello, version_min, WIRE_U16, .min = 1),
    NUM(egress_hello, version_max, WIRE_U16, .min = 1),
};
static const struct wire_field welcome_fields[] = {
    NUM(egress_welcome, version, WIRE_U16),
    NUM(egress_welcome, dropped, WIRE_U32),
    NUM(egress_welcome, ca, WIRE_U8, .max = 1),
};
static const struct wire_field name_fields[] = {
    TEXT(egress_name, id, 1, EGRESS_ID_MAX),
};
static const struct wire_field set_fields[] = {
    TEXT(egress_set, id, 1, EGRESS_ID_MAX),
    NUM(egress_set, kinds, WIRE_U32, .max = (1 << EGRESS_FDS_MAX) - 1),
    TEXT(egress_set, policy, 1, EGRESS_POLICY_MAX),
    TEXT(egress_set, learned, 0, EGRESS_LEARNED_MAX),
    TEXT(egress_set, alias, 0, EGRESS_ALIAS_MAX),
    NUM(egress_set, led, WIRE_U8, .max = 1),
};
static const struct wire_field lead_fields[] = {
    TEXT(egress_lead, id, 1, EGRESS_ID_MAX),
    NUM(egress_lead, dns, WIRE_U8, .max = 1),
    TEXT(egress_lead, host, 0, 255),
    NUM(egress_lead, port, WIRE_U16),
};
static const struct wire_field done_fields[] = {
    WIRE_FIELD(struct egress_done, err, .kind = WIRE_ERR),
};
static const struct wire_field verdict_fields[] = {
    TEXT(egress_verdict, id, 1, EGRESS_ID_MAX),
    TEXT(egress_verdict, host, 0, 255),
    NUM(egress_verdict, port, WIRE_U16),
    NUM(egress_verdict, what, WIRE_U8, .max = EGRESS_WHAT_COUNT - 1),
    NUM(egress_verdict, via, WIRE_U8, .max = EGRESS_VIA_COUNT - 1),
    TEXT(egress_verdict, rule, 0, 512),
    NUM(egress_verdict, up, WIRE_U64),
    NUM(egress_verdict, down, WIRE_U64),
    NUM(egress_verdict, ms, WIRE_U64),
    NUM(egress_verdict, folded, WIRE_U32),
};
static const struct wire_field question_fields[] = {
    NUM(egress_question, question, WIRE_U64, .min = 1),
    TEXT(egress_question, id, 1, EGRESS_ID_MAX),
    TEXT(egress_question, host, 1, 255),
    NUM(egress_question, port, WIRE_U16, .min = 1),
};
static const struct wire_field answer_fields[] = {
    NUM(egress_answer, question, WIRE_U64, .min = 1),
    NUM(egress_answer, allow, WIRE_U8, .max = 1),
    TEXT(egress_answer, reason, 0, 96),
};

static const struct wire_field listen_fields[] = {
    TEXT(egress_listen, host, 0, 255),
    NUM(egress_listen, port, WIRE_U16, .min = 1),
    TEXT(egress_listen, key, 1, 1024),
};
static const struct wire_field ca_fields[] = {
    TEXT(egress_ca, cert, 1, EGRESS_PEM_MAX),
    TEXT(egress_ca, key, 1, EGRESS_PEM_MAX),
};
static const struct wire_field secrets_fields[] = {
    TEXT(egress_secrets, id, 1, EGRESS_ID_MAX),
    TEXT(egress_secrets, json, 1, EGRESS_SECRETS_MAX),
};

static const struct wire_layout
    listen_layout   = WIRE_LAYOUT("listen", struct egress_listen, listen_fields),
    ca_layout       = WIRE_LAYOUT("ca", struct egress_ca, ca_fields),
    secrets_layout  = WIRE_LAYOUT("secrets", struct egress_secrets, secrets_fields),
    hello_layout    = WIRE_LAYOUT("hello", struct egress_hello, hello_fields),
    welcome_layout  = WIRE_LAYOUT("welcome", struct egress_welcome, welcome_fields),
    name_layout     = WIRE_LAYOUT("name", struct egress_name, name_fields),
    set_layout      = WIRE_LAYOUT("set", struct egress_set, set_fields),
    done_layout     = WIRE_LAYOUT("done", struct egress_done, done_fields),
    verdict_layout  = WIRE_LAYOUT("verdict", struct egress_verdict, verdict_fields),
    lead_layout     = WIRE_LAYOUT("lead", struct egress_lead, lead_fields),
    question_layout = WIRE_LAYOUT("question", struct egress_question, question_fields),
    answer_layout   = WIRE_LAYOUT("answer", struct egress_answer, answer_fields);

#define HOST EGRESS_HOST
#define EGRS EGRESS_EGRESS
const struct packet_type egress_types[EGRESS_TYPE_END] = {
    /*                    name        from  fds layout */
    [EGRESS_HELLO]    = {"hello",    HOST, 0, &hello_layout, .untagged = true},
    [EGRESS_KNOWN]    = {"known",    EGRS, 0, &name_layout, .untagged = true},
    [EGRESS_WELCOME]  = {"welcome",  EGRS, 0, &welcome_layout, .untagged = true},
    [EGRESS_SET]      = {"set",      HOST, EGRESS_FDS_MAX, &set_layout,
                         .fds_by = PACKET_FDS_BY(struct egress_set, kinds)},
    [EGRESS_REMOVE]   = {"remove",   HOST, 0, &name_layout},
    [EGRESS_DONE]     = {"done",     EGRS, 0, &done_layout},
    [EGRESS_VERDICT]  = {"verdict",  EGRS, 0, &verdict_layout, .untagged = true},
    [EGRESS_QUESTION] = {"question", EGRS, 0, &question_layout, .untagged = true},
    [EGRESS_ANSWER]   = {"answer",   HOST, 0, &answer_layout, .untagged = true},
    [EGRESS_LISTEN]   = {"listen",   HOST, 0, &listen_layout},
    [EGRESS_CA]       = {"ca",       HOST, 0, &ca_layout},
    [EGRESS_SECRETS]  = {"secrets",  HOST, 0, &secrets_layout},
    [EGRESS_LEAD]     = {"lead",     HOST, 1, &lead_layout, .untagged = true},
};
/* clang-format on */

const struct packet_protocol egress_protocol = {
    .helper = "holt-egress",
    .types = egress_types,
    .type_end = EGRESS_TYPE_END,
    PACKET_MESSAGE(struct egress_msg),
    .version = EGRESS_VERSION,
    .hello = EGRESS_HELLO,
    .welcome = EGRESS_WELCOME,
};

int egress_encode(const struct egress_msg *m, enum egress_side from, struct wire_out *o,
                  struct err *e)
{
    return packet_encode(&egress_protocol, m, (enum packet_side)from, o, e);
}

int egress_decode(struct str packet, size_t fds, enum egress_side from, struct egress_msg *ret,
                  struct err *e)
{
    return packet_decode(&egress_protocol, packet, fds, (enum packet_side)from, ret, e);
}
