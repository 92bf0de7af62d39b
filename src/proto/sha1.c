/* sha1: SHA-1 (FIPS 180-4), for the WebSocket handshake only. */
#include "proto/sha1.h"

#define BLOCK 64
#define LENGTH_SIZE 8

static uint32_t rotate(uint32_t v, int n)
{
    return v << n | v >> (32 - n);
}

static uint32_t get_u32(const unsigned char *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* §6.1.2 */
static void add_block(uint32_t h[5], const unsigned char *block)
{
    static const uint32_t k[4] = {0x5a827999, 0x6ed9eba1, 0x8f1bbcdc, 0xca62c1d6};
    uint32_t w[80], a = h[0], b = h[1], c = h[2], d = h[3], e = h[4];

    for (int t = 0; t < 16; t++)
        w[t] = get_u32(block + 4 * t);
    for (int t = 16; t < 80; t++)
        w[t] = rotate(w[t - 3] ^ w[t - 8] ^ w[t - 14] ^ w[t - 16], 1);
    for (int t = 0; t < 80; t++) {
        uint32_t f = t < 20              ? (b & c) | (~b & d)
                     : t >= 40 && t < 60 ? (b & c) | (b & d) | (c & d)
                                         : b ^ c ^ d;
        uint32_t next = rotate(a, 5) + f + e + k[t / 20] + w[t];

        e = d;
        d = c;
        c = rotate(b, 30);
        b = a;
        a = next;
    }
    h[0] += a;
    h[1] += b;
    h[2] += c;
    h[3] += d;
    h[4] += e;
}

void sha1(struct str data, unsigned char to[SHA1_SIZE])
{
    uint32_t h[5] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0};
    unsigned char last[2 * BLOCK] = {0};
    uint64_t bits = (uint64_t)data.n * 8;
    size_t n;

    for (; data.n >= BLOCK; data = str_skip(data, BLOCK))
        add_block(h, (const unsigned char *)data.p);
    if (data.n > 0)
        memcpy(last, data.p, data.n);
    last[data.n] = 0x80;
    n = data.n + 1 + LENGTH_SIZE <= BLOCK ? BLOCK : 2 * BLOCK;
    for (int i = 0; i < LENGTH_SIZE; i++)
        last[n - 1 - (size_t)i] = (unsigned char)(bits >> (8 * i));
    for (size_t at = 0; at < n; at += BLOCK)
        add_block(h, last + at);
    for (int i = 0; i < SHA1_SIZE; i++)
        to[i] = (unsigned char)(h[i / 4] >> (24 - 8 * (i % 4)));
}
