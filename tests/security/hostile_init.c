/* hostile_init: a lying PID 1, given to holt-spawn in holt-init's stead.  The sandbox's hostname
 * names its lie (the table at the end).  Frames are written by hand: the codec would refuse to. */
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define LISTEN_FD 3

static const uint8_t mark[16] = {0xf3, 0x9b, 0xc7, 0xe8, 0x8d, 0xb1, 0xfa, 0x96,
                                 0xd4, 0xa9, 0xee, 0x83, 0xcb, 0xbd, 0xf0, 0x91};
static uint8_t nonce[16];
static int conn;
static uint8_t zeros[70000];

static int put(const void *p, size_t n)
{
    for (const char *at = p; n > 0;) {
        ssize_t r = send(conn, at, n, MSG_NOSIGNAL);

        if (r <= 0)
            return -1;
        at += r;
        n -= (size_t)r;
    }
    return 0;
}

static void put_u32(uint8_t *to, uint32_t v)
{
    memcpy(to, &v, sizeof v); /* little-endian, as every machine this is tested on */
}

static int frame(uint8_t type, uint32_t channel, uint32_t aux, const void *payload, size_t n)
{
    uint8_t head[16] = {type};

    put_u32(head + 4, payload ? (uint32_t)n + 1 : 0);
    put_u32(head + 8, channel);
    put_u32(head + 12, aux);
    return put(head, sizeof head) || (payload && (put(payload, n) || put("", 1))) ? -1 : 0;
}

/* Takes the mark and holtd's hello; its nonce is to be repeated. */
static int take_hello(void)
{
    uint8_t bytes[16 + 16 + 21];
    size_t n = 0;

    while (n < sizeof bytes) {
        ssize_t r = recv(conn, bytes + n, sizeof bytes - n, 0);

        if (r <= 0)
            return -1;
        n += (size_t)r;
    }
    memcpy(nonce, bytes + 36, sizeof nonce);
    return 0;
}

static int say_hello(const uint8_t *its_nonce, uint32_t execs)
{
    static uint8_t p[65000] = {1, 0};
    size_t n = 46;

    memcpy(p + 2, its_nonce, 16);
    (void)!getrandom(p + 18, 16, 0); /* another epoch each time */
    put_u32(p + 42, execs);
    for (uint32_t i = 0; i < execs; i++) {
        put_u32(p + n, 8);
        (void)snprintf((char *)p + n + 4, 9, "ex_%05u", i % 100000);
        memset(p + n + 12, 0, 41);
        n += 53;
    }
    return put(mark, sizeof mark) || frame(2, 0, 0, p, n) ? -1 : 0;
}

static int greet(void)
{
    return say_hello(nonce, 0);
}

static void running(uint32_t channel)
{
    uint8_t p[29] = {9};

    (void)frame(34, channel, 0, p, sizeof p);
}

static int data(uint32_t channel, uint32_t stream, uint64_t offset, size_t n)
{
    static uint8_t p[65536];

    memcpy(p, &offset, 8);
    memset(p + 8, 'x', n);
    return frame(16, channel, stream, p, n + 8);
}

static void ended(uint32_t channel, uint64_t out_end)
{
    uint8_t p[4 + 48 + 6 + 12] = {0};

    memcpy(p + 4 + 32, &out_end, 8);
    (void)frame(37, channel, 0, p, sizeof p);
}

static void wait_for_close(void)
{
    char bytes[4096];

    while (recv(conn, bytes, sizeof bytes, 0) > 0)
        ;
}

/* ---- the lies ---- */

static void lie_silent(void)
{
    wait_for_close();
}
static void lie_zeros(void)
{
    while (put(zeros, sizeof zeros) == 0)
        ;
}
static void lie_random(void)
{
    (void)greet();
    for (uint8_t bytes[4096];;) {
        (void)!getrandom(bytes, sizeof bytes, 0);
        if (put(bytes, sizeof bytes) < 0)
            return;
    }
}
/* Random frames that look right: type, channel and payload of any kind. */
static void lie_frames(void)
{
    uint8_t types[] = {4, 6, 16, 17, 18, 19, 20, 34, 37, 49, 65}, r[80];

    (void)greet();
    do
        (void)!getrandom(r, sizeof r, 0);
    while (frame(types[r[0] % sizeof types], r[1] % 4, r[2] % 3, r + 8, r[3] % 72U) == 0);
}
static void lie_pongs(void)
{
    (void)greet();
    while (frame(4, 0, 0, zeros, 8) == 0)
        ;
}
static void lie_data(void) /* never heard of a window */
{
    (void)greet();
    running(1);
    for (uint64_t at = 0; data(1, 1, at, 60000) == 0; at += 60000)
        ;
}
static void lie_again(void) /* the same bytes, for ever */
{
    (void)greet();
    running(1);
    while (data(1, 1, 0, 60000) == 0)
        ;
}
static void lie_gap(void)
{
    (void)greet();
    running(1);
    (void)data(1, 1, 1 << 20, 100);
    wait_for_close();
}
static void lie_end(void) /* of bytes that never came */
{
    (void)greet();
    running(1);
    ended(1, 1ULL << 40);
    wait_for_close();
}
static void lie_twice(void)
{
    (void)greet();
    for (int i = 0; i < 3; i++) {
        running(1);
        ended(1, 0);
    }
    wait_for_close();
}
static void lie_ack(void)
{
    uint64_t p[2] = {1ULL << 40, 1ULL << 41};

    (void)greet();
    running(1);
    (void)frame(17, 1, 0, p, sizeof p);
    wait_for_close();
}
static void lie_length(void)
{
    uint8_t head[16] = {16, [4] = 0xff, 0xff, 0xff, 0x7f, 1};

    (void)greet();
    (void)put(head, sizeof head);
    lie_zeros();
}
static void lie_slow(void) /* a frame that never ends, one byte at a time */
{
    uint8_t head[16] = {16, [4] = 0, 0, 1, 0, 1, [12] = 1};

    (void)greet();
    running(1);
    (void)put(head, sizeof head);
    while (put("x", 1) == 0)
        (void)usleep(1000);
}
static void lie_nonce(void) /* an old hello, again and again */
{
    static const uint8_t old[16];

    while (say_hello(old, 0) == 0)
        ;
}
static void lie_execs(void) /* commands that were never asked for, ever another epoch */
{
    (void)say_hello(nonce, 512);
    wait_for_close();
}
static void lie_relays(void)
{
    uint8_t p[11] = {0};

    (void)greet();
    for (uint32_t channel = 2; frame(65, channel, 0, p, sizeof p) == 0; channel += 2)
        ;
}
static void lie_resets(void)
{
    (void)greet();
    for (uint32_t channel = 1; frame(19, channel % 4096, 0, NULL, 0) == 0; channel += 2)
        ;
}
static void lie_gone(void) /* hangs up at once */
{
    (void)greet();
}
static void lie_never(void) /* all is well, and nothing ever happens */
{
    (void)greet();
    wait_for_close();
}

static const struct {
    const char *name;
    void (*tell)(void);
} lies[] = {
    {"silent", lie_silent}, {"zeros", lie_zeros}, {"random", lie_random}, {"frames", lie_frames},
    {"pongs", lie_pongs},   {"data", lie_data},   {"again", lie_again},   {"gap", lie_gap},
    {"end", lie_end},       {"twice", lie_twice}, {"ack", lie_ack},       {"length", lie_length},
    {"slow", lie_slow},     {"nonce", lie_nonce}, {"execs", lie_execs},   {"relays", lie_relays},
    {"resets", lie_resets}, {"gone", lie_gone},   {"never", lie_never},
};

int main(void)
{
    char name[64] = "";

    for (int sig = 1; sig < 64; sig++)
        (void)signal(sig, SIG_IGN); /* never exits */
    (void)gethostname(name, sizeof name - 1);
    (void)fcntl(LISTEN_FD, F_SETFL, 0);
    for (;;) {
        conn = accept(LISTEN_FD, NULL, NULL);
        if (conn < 0)
            continue;
        for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++)
            if (strcmp(lies[i].name, name) == 0 &&
                (strcmp(name, "silent") == 0 || take_hello() == 0))
                lies[i].tell();
        (void)close(conn);
    }
}
