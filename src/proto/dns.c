/* dns: answers A queries from a table of made-up addresses. */
#include "proto/dns.h"

#define HEAD 12
#define TTL_S 60
enum { TYPE_A = 1, CLASS_IN = 1, CLASS_ANY = 255 };
enum { OK = 0, FORMERR = 1, NXDOMAIN = 3, NOTIMP = 4, REFUSED = 5 };

static unsigned u16(const char *p)
{
    return (unsigned)(uint8_t)p[0] << 8 | (uint8_t)p[1];
}

/* Reads the name at `at` as text with dots; compression is not allowed in a question.  Returns its
 * end, or 0.  Bytes that host names do not allow are copied: the caller's check refuses them. */
static size_t read_name(struct str m, size_t at, char to[static 256], size_t *ret_n)
{
    size_t n = 0;

    for (;;) {
        size_t len = at < m.n ? (uint8_t)m.p[at] : 64;

        if (len > 63 || at + 1 + len > m.n || n + len + 1 > 255)
            return 0;
        at++;
        if (len == 0)
            break;
        for (size_t i = 0; i < len; i++) /* a dot inside a label would look like a separator */
            to[n++] = m.p[at + i] == '.' ? '\0' : m.p[at + i];
        to[n++] = '.';
        at += len;
    }
    *ret_n = n;
    return at;
}

static void put_u16(uint8_t *p, unsigned v)
{
    p[0] = (uint8_t)(v >> 8);
    p[1] = (uint8_t)v;
}

static size_t head(struct str query, unsigned code, unsigned questions, unsigned answers,
                   uint8_t *to)
{
    memset(to, 0, HEAD);
    memcpy(to, query.p, 2);
    /* a reply; opcode and RD are copied from the query */
    to[2] = (uint8_t)(0x80 | ((uint8_t)query.p[2] & 0x79));
    to[3] = (uint8_t)(0x80 | code); /* recursion is available */
    put_u16(to + 4, questions);
    put_u16(to + 6, answers);
    return HEAD;
}

static size_t put_address(uint8_t *to, uint32_t address)
{
    put_u16(to, 0xc000 | HEAD); /* a pointer to the question's name */
    put_u16(to + 2, TYPE_A);
    put_u16(to + 4, CLASS_IN);
    put_u16(to + 6, 0);
    put_u16(to + 8, TTL_S);
    put_u16(to + 10, 4);
    put_u16(to + 12, address >> 16);
    put_u16(to + 14, address & 0xffff);
    return 16;
}

size_t dns_answer(struct str query, dns_address address, void *arg, uint8_t *to)
{
    char name[256], canonical[HOST_NAME_MAX_LEN + 1];
    size_t end, n = 0, question;
    unsigned type, class;
    struct err e;

    if (query.n < HEAD || ((uint8_t)query.p[2] & 0x80))
        return 0;
    if (((uint8_t)query.p[2] & 0x78) != 0)
        return head(query, NOTIMP, 0, 0, to);
    if (u16(query.p + 4) != 1 || u16(query.p + 6) != 0 || u16(query.p + 8) != 0)
        return head(query, FORMERR, 0, 0, to);
    end = read_name(query, HEAD, name, &n);
    if (end == 0 || end + 4 > query.n)
        return head(query, FORMERR, 0, 0, to);
    type = u16(query.p + end);
    class = u16(query.p + end + 2);
    question = end + 4 - HEAD;
    if (class != CLASS_IN && class != CLASS_ANY)
        return head(query, REFUSED, 0, 0, to);
    if (host_name_canonical(str_make(name, n), canonical, &e) < 0) {
        (void)head(query, NXDOMAIN, 1, 0, to);
        memcpy(to + HEAD, query.p + HEAD, question);
        return HEAD + question;
    }
    (void)head(query, OK, 1, type == TYPE_A, to);
    memcpy(to + HEAD, query.p + HEAD, question);
    if (type != TYPE_A)
        return HEAD + question;
    return HEAD + question + put_address(to + HEAD + question, address(arg, canonical));
}
