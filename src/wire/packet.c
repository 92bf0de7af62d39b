/* packet: the packet codec shared by the protocols of all helpers. */
#include "wire/packet.h"

static struct packet_head head_of(const void *msg)
{
    struct packet_head h;

    memcpy(&h, msg, sizeof h);
    return h;
}

static int check_head(const struct packet_protocol *p, struct packet_head h, enum packet_side from,
                      struct err *e)
{
    const struct packet_type *t = h.type < p->type_end ? &p->types[h.type] : NULL;

    if (!t || !t->name)
        return err_set(e, ERR_INVALID, 0, "a packet of unknown type %u", h.type);
    if (!(t->from & from))
        return err_set(e, ERR_INVALID, 0, "%s came from the wrong side", t->name);
    if ((h.tag == 0) != t->untagged)
        return err_set(e, ERR_INVALID, 0, "%s with tag %u", t->name, h.tag);
    return 0;
}

int packet_encode(const struct packet_protocol *p, const void *msg, enum packet_side from,
                  struct wire_out *o, struct err *e)
{
    struct packet_head h = head_of(msg);
    struct wire_out body;

    if (check_head(p, h, from, e) < 0)
        return -1;
    if (o->size - o->n < PACKET_HEAD)
        return err_set(e, ERR_TOO_LARGE, 0, "no room for a packet");
    body = (struct wire_out){
        .p = o->p + o->n + PACKET_HEAD,
        .size = size_min(o->size - o->n, PACKET_MAX) - PACKET_HEAD,
    };
    if (wire_put(p->types[h.type].layout, (const char *)msg + p->body, &body, e) < 0)
        return -1;
    wire_put_u32(o->p + o->n, h.type);
    wire_put_u32(o->p + o->n + 4, h.tag);
    o->n += PACKET_HEAD + body.n;
    return 0;
}

static size_t expected_fds(const struct packet_type *t, const char *body)
{
    uint32_t bits;

    if (t->fds_by == 0)
        return t->fds;
    memcpy(&bits, body + t->fds_by - 1, sizeof bits);
    return (size_t)__builtin_popcount(bits);
}

int packet_decode(const struct packet_protocol *p, struct str packet, size_t fds,
                  enum packet_side from, void *ret, struct err *e)
{
    const uint8_t *bytes = (const uint8_t *)packet.p;
    const struct packet_type *t;
    struct packet_head h;
    char *body = (char *)ret + p->body;

    if (packet.n < PACKET_HEAD || packet.n > PACKET_MAX)
        return err_set(e, ERR_INVALID, 0, "a packet of %zu bytes", packet.n);
    h = (struct packet_head){wire_get_u32(bytes), wire_get_u32(bytes + 4)};
    if (check_head(p, h, from, e) < 0)
        return -1;
    t = &p->types[h.type];
    assert(t->layout->size <= p->size - p->body);
    memset(ret, 0, p->size);
    memcpy(ret, &h, sizeof h);
    if (wire_get(t->layout, str_skip(packet, PACKET_HEAD), body, e) < 0)
        return -1;
    if (fds != expected_fds(t, body))
        return err_set(e, ERR_INVALID, 0, "%s with %zu descriptors", t->name, fds);
    return 0;
}

bool packet_name_is_safe(struct str name, size_t max)
{
    if (name.n == 0 || name.n > max)
        return false;
    for (size_t i = 0; i < name.n; i++) {
        char c = name.p[i];

        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
              c == '_' || (c == '-' && i > 0)))
            return false;
    }
    return true;
}
