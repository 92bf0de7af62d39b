/* source: reads, decompresses, counts and hashes the archive. */
#include "unpack/source.h"

#include "base/enc.h"
#include "base/mem.h"

#include <errno.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#define IN_SIZE (64 * 1024)
#define OUT_SIZE (256 * 1024)
#define FREE_BYTES (64ULL * 1024 * 1024) /* below this the ratio is not checked */
#define ZSTD_WINDOW_LOG 27               /* 128 MiB: the most that zstd --long uses by default */

enum kind { UNKNOWN, PLAIN, GZIP, ZSTD };

struct source {
    int fd;
    struct source_limits limits;
    enum kind kind;
    struct str in; /* read and not used yet */
    bool eof;      /* of the descriptor */
    bool between;  /* between gzip members or zstd frames */
    uint64_t in_bytes, out_bytes;
    z_stream gz;
    ZSTD_DStream *zstd;
    struct hash hash;
    char in_buf[IN_SIZE];
    char out_buf[OUT_SIZE];
};

struct source *source_new(int fd, const struct source_limits *l)
{
    struct source *s = xzalloc(sizeof *s);

    s->fd = fd;
    s->limits = *l;
    hash_init(&s->hash);
    return s;
}

struct source *source_free(struct source *s)
{
    if (!s)
        return NULL;
    if (s->kind == GZIP)
        (void)inflateEnd(&s->gz);
    if (s->zstd)
        (void)ZSTD_freeDStream(s->zstd);
    mem_free(s);
    return NULL;
}

/* Reads until s->in has at least `want` bytes, unless the input ends before. */
static int fill(struct source *s, size_t want, struct err *e)
{
    while (s->in.n < want && !s->eof) {
        ssize_t n;

        memmove(s->in_buf, s->in.p ? s->in.p : s->in_buf, s->in.n);
        n = read(s->fd, s->in_buf + s->in.n, sizeof s->in_buf - s->in.n);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_set(e, ERR_INTERNAL, errno, "read the archive");
        s->in = str_make(s->in_buf, s->in.n + (size_t)n);
        s->in_bytes += (uint64_t)n;
        s->eof = n == 0;
    }
    return 0;
}

static int refuse_kind(const char *name, struct err *e)
{
    return err_set(e, ERR_INVALID, 0,
                   "the archive is compressed with %s; only gzip and zstd are supported", name);
}

static int detect(struct source *s, struct err *e)
{
    if (fill(s, 6, e) < 0)
        return -1;
    if (str_starts(s->in, STR("BZh")))
        return refuse_kind("bzip2", e);
    if (str_starts(s->in, STR("\3757zXZ\0")))
        return refuse_kind("xz", e);
    if (str_starts(s->in, STR("\x1f\x8b"))) {
        if (inflateInit2(&s->gz, 16 + MAX_WBITS) != Z_OK)
            return err_set(e, ERR_INTERNAL, ENOMEM, "start zlib");
        s->kind = GZIP;
    } else if (str_starts(s->in, STR("\x28\xb5\x2f\xfd"))) {
        s->zstd = ZSTD_createDStream();
        if (!s->zstd ||
            ZSTD_isError(ZSTD_DCtx_setParameter(s->zstd, ZSTD_d_windowLogMax, ZSTD_WINDOW_LOG)))
            return err_set(e, ERR_INTERNAL, ENOMEM, "start zstd");
        s->kind = ZSTD;
    } else {
        s->kind = PLAIN;
    }
    s->between = true;
    return 0;
}

/* After the first member: another one, zeros that fill a block, or nothing. */
static int next_member(struct source *s, struct str magic, struct err *e)
{
    if (fill(s, magic.n, e) < 0)
        return -1;
    while (s->in.n > 0 && !str_starts(s->in, magic)) {
        if (s->in.p[0] != '\0')
            return err_set(e, ERR_INVALID, 0, "unknown bytes follow the compressed archive");
        s->in = str_skip(s->in, 1);
        if (fill(s, magic.n, e) < 0)
            return -1;
    }
    return s->in.n > 0;
}

static int source_damaged(struct source *s, const char *why, struct err *e)
{
    return err_set(e, ERR_INVALID, 0, "the %s data is damaged: %s", source_compression(s), why);
}

static int read_gzip(struct source *s, size_t *ret, struct err *e)
{
    int r;

    if (s->between) {
        r = next_member(s, STR("\x1f\x8b"), e);
        if (r <= 0)
            return r;
        (void)inflateReset(&s->gz);
        s->between = false;
    }
    if (fill(s, 1, e) < 0)
        return -1;
    if (s->in.n == 0)
        return source_damaged(s, "it ends too early", e);
    s->gz.next_in = (unsigned char *)(uintptr_t)s->in.p;
    s->gz.avail_in = (unsigned)s->in.n;
    s->gz.next_out = (unsigned char *)s->out_buf;
    s->gz.avail_out = OUT_SIZE;
    r = inflate(&s->gz, Z_NO_FLUSH);
    if (r != Z_OK && r != Z_STREAM_END && r != Z_BUF_ERROR)
        return source_damaged(s, s->gz.msg ? s->gz.msg : "zlib failed", e);
    s->in = str_skip(s->in, s->in.n - s->gz.avail_in);
    s->between = r == Z_STREAM_END;
    *ret = OUT_SIZE - s->gz.avail_out;
    return 1;
}

static int read_zstd(struct source *s, size_t *ret, struct err *e)
{
    ZSTD_inBuffer in;
    ZSTD_outBuffer out = {s->out_buf, OUT_SIZE, 0};
    size_t r;

    if (s->between) {
        int more = next_member(s, STR("\x28\xb5\x2f\xfd"), e);

        if (more <= 0)
            return more;
        s->between = false;
    }
    if (fill(s, 1, e) < 0)
        return -1;
    if (s->in.n == 0)
        return source_damaged(s, "it ends too early", e);
    in = (ZSTD_inBuffer){s->in.p, s->in.n, 0};
    r = ZSTD_decompressStream(s->zstd, &out, &in);
    if (ZSTD_isError(r))
        return source_damaged(s, ZSTD_getErrorName(r), e);
    s->in = str_skip(s->in, in.pos);
    s->between = r == 0;
    *ret = out.pos;
    return 1;
}

static int check_limits(const struct source *s, struct err *e)
{
    if (s->out_bytes > s->limits.bytes_max)
        return err_set(e, ERR_TOO_LARGE, 0, "the archive has more than %llu bytes",
                       (unsigned long long)s->limits.bytes_max);
    if (s->kind != PLAIN && s->out_bytes > FREE_BYTES &&
        s->out_bytes / (s->in_bytes + 1) > s->limits.ratio_max)
        return err_set(e, ERR_TOO_LARGE, 0,
                       "the archive grows more than %llu times when decompressed",
                       (unsigned long long)s->limits.ratio_max);
    return 0;
}

static int read_plain(struct source *s, struct str *ret, struct err *e)
{
    if (fill(s, 1, e) < 0)
        return -1;
    *ret = s->in;
    s->in = str_make(s->in_buf, 0);
    return ret->n > 0;
}

int source_read(struct source *s, struct str *ret, struct err *e)
{
    int r;

    if (s->kind == UNKNOWN && detect(s, e) < 0)
        return -1;
    do {
        size_t n = 0;

        if (s->kind == PLAIN) {
            r = read_plain(s, ret, e);
        } else {
            r = s->kind == GZIP ? read_gzip(s, &n, e) : read_zstd(s, &n, e);
            *ret = str_make(s->out_buf, n);
        }
        if (r <= 0)
            return r;
    } while (ret->n == 0);
    s->out_bytes += ret->n;
    hash_add(&s->hash, ret->p, ret->n);
    return check_limits(s, e) < 0 ? -1 : 1;
}

uint64_t source_bytes(const struct source *s)
{
    return s->out_bytes;
}

const char *source_compression(const struct source *s)
{
    static const char *const names[] = {
        [UNKNOWN] = "none", [PLAIN] = "none", [GZIP] = "gzip", [ZSTD] = "zstd"};

    return names[s->kind];
}

void source_digest(struct source *s, char to[2 * HASH_SIZE + 1])
{
    unsigned char digest[HASH_SIZE];

    hash_end(&s->hash, digest);
    enc_hex(digest, sizeof digest, to);
}
