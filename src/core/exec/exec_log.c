/* exec_log: the log of a command's output: write, recover, drop, seek. */
#include "core/exec/exec_log.h"

#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define PUNCH_BYTES (4LL << 20)
#define HEAD_BYTES (1LL << 20)
#define SIZE_BYTES 4 /* content of a record of LOG_SIZE: u16 rows, u16 columns */

/* A record's head, little-endian:
 *   0 u32 check of the rest   4 u16 length   6 u8 stream, or 2: a size   7 u8 0
 *   8 u64 seq   16 u64 time_us   24 u64 stdout's offset   32 u64 stderr's offset
 * A record has at least one byte of content: the last bytes of a block, at most LOG_HEAD, that have
 * no room for that are zero. */

static void put(unsigned char *to, uint64_t v, int bytes)
{
    for (int i = 0; i < bytes; i++)
        to[i] = (unsigned char)(v >> (8 * i));
}

static uint64_t get(const unsigned char *p, int bytes)
{
    uint64_t v = 0;

    for (int i = bytes - 1; i >= 0; i--)
        v = v << 8 | p[i];
    return v;
}

/* FNV-1a with its own start value: zeros left by a file system do not pass. */
static uint32_t check_of(const unsigned char *head)
{
    uint32_t h = 0x686f6c74;

    for (size_t i = 4; i < LOG_HEAD; i++)
        h = (h ^ head[i]) * 16777619U;
    return h;
}

static void put_head(unsigned char *to, const struct log_record *r)
{
    put(to + 4, r->bytes.n, 2);
    to[6] = (unsigned char)r->stream;
    to[7] = 0;
    put(to + 8, r->seq, 8);
    put(to + 16, (uint64_t)r->time_us, 8);
    put(to + 24, (uint64_t)r->at[LOG_OUT], 8);
    put(to + 32, (uint64_t)r->at[LOG_ERR], 8);
    put(to, check_of(to), 4);
}

/* False: not a record's head.  ret->bytes.n: length of the content that follows. */
static bool get_head(const unsigned char *p, struct log_record *ret)
{
    if (get(p, 4) != check_of(p) || p[7] != 0 || p[6] >= LOG_KINDS)
        return false;
    ret->stream = (enum log_stream)p[6];
    ret->seq = get(p + 8, 8);
    ret->time_us = (int64_t)get(p + 16, 8);
    ret->at[LOG_OUT] = (int64_t)get(p + 24, 8);
    ret->at[LOG_ERR] = (int64_t)get(p + 32, 8);
    ret->bytes = str_make(NULL, (size_t)get(p + 4, 2));
    if (ret->stream == LOG_SIZE && ret->bytes.n != SIZE_BYTES)
        return false;
    return ret->bytes.n > 0 && ret->bytes.n <= LOG_RECORD_MAX && ret->at[LOG_OUT] >= 0 &&
           ret->at[LOG_ERR] >= 0;
}

void exec_log_init(struct exec_log *g, const char *path, int64_t keep)
{
    *g = (struct exec_log){.path = xstrdup(path), .fd = -1, .keep = keep};
}

void exec_log_done(struct exec_log *g)
{
    fd_close(g->fd);
    buf_done(&g->mem);
    mem_free(g->path);
    g->path = NULL;
    g->fd = -1;
}

int64_t exec_log_kept(const struct exec_log *g)
{
    return g->end[LOG_OUT] - g->from[LOG_OUT] + g->end[LOG_ERR] - g->from[LOG_ERR];
}

/* --- the file --- */

static int log_failed(const struct exec_log *g, struct err *e, const char *what, int sys)
{
    const char *name = strrchr(g->path, '/');

    return err_set(e, err_code_from_errno(sys), sys, "%s the output log '%s'", what,
                   name ? name + 1 : g->path);
}

static int need_fd(struct exec_log *g, bool make, struct err *e)
{
    if (g->fd >= 0)
        return 0;
    g->fd = open(g->path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | (make ? O_CREAT : 0), 0600);
    if (g->fd < 0 && errno == ENOENT && make) {
        char *slash = strrchr(g->path, '/');
        int r;

        *slash = '\0';
        r = dir_make_all(g->path, 0700);
        *slash = '/';
        if (r < 0)
            return log_failed(g, e, "make the directory of", -r);
        g->fd = open(g->path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_CREAT, 0600);
    }
    return g->fd < 0 ? log_failed(g, e, "open", errno) : 0;
}

/* At an offset and not O_APPEND: overwrites the remains of a failed write. */
static int write_at(struct exec_log *g, struct str head, struct str bytes, struct err *e)
{
    int64_t at = g->size;

    while (head.n + bytes.n > 0) {
        struct iovec v[2] = {{(void *)(uintptr_t)head.p, head.n},
                             {(void *)(uintptr_t)bytes.p, bytes.n}};
        ssize_t n = pwritev(g->fd, v, 2, at);
        size_t of_head;

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return log_failed(g, e, "write to", errno);
        of_head = size_min(head.n, (size_t)n);
        head = str_skip(head, of_head);
        bytes = str_skip(bytes, (size_t)n - of_head);
        at += n;
    }
    return 0;
}

/* 0 bytes: the end of the file. */
static ssize_t read_at(const struct exec_log *g, void *to, size_t n, int64_t at)
{
    ssize_t got;

    do
        got = pread(g->fd, to, n, at);
    while (got < 0 && errno == EINTR);
    return got;
}

static int read_head(struct exec_log *g, int64_t pos, struct log_record *ret, struct err *e)
{
    unsigned char head[LOG_HEAD];
    ssize_t n = read_at(g, head, sizeof head, pos);

    if (n < 0)
        return log_failed(g, e, "read", errno);
    if (n < LOG_HEAD || !get_head(head, ret))
        return err_set(e, ERR_INTERNAL, 0, "the output log is damaged at byte %lld",
                       (long long)pos);
    return 0;
}

/* --- retention --- */

/* The beginning stays: it shows what the command was about to do.  Whole blocks, at most 1 MiB. */
static int64_t head_size(const struct exec_log *g)
{
    return i64_min(HEAD_BYTES, g->keep / 4) / LOG_BLOCK * LOG_BLOCK;
}

int64_t exec_log_disk(const struct exec_log *g)
{
    int64_t hole = g->no_punch ? 0 : i64_max(g->punched - head_size(g), 0);

    return g->in_file ? g->size - hole : 0;
}

/* In large pieces: each costs the file system's journal as much as a small one. */
static void punch(struct exec_log *g)
{
    int64_t from = i64_max(g->punched, head_size(g)), to = g->first;

    if (g->no_punch || to - from < i64_min(PUNCH_BYTES, g->keep / 4))
        return;
    g->punched = to;
    if (fallocate(g->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, from, to - from) == 0)
        return;
    g->no_punch = true;
    log_warn("the file system cannot free the dropped part of an output log",
             LOG_C("path", g->path));
}

/* Drops the oldest block while the rest is enough, or while tiny records make the file several
 * times as large as its content. */
void exec_log_retain(struct exec_log *g)
{
    if (g->keep == 0 || !g->in_file)
        return;
    for (;;) {
        int64_t next = g->first + LOG_BLOCK;
        bool large = g->size - g->first >= 4 * g->keep + LOG_BLOCK;
        struct log_record r;
        struct err e;

        if (next >= g->size || (g->hold && next > g->floor) ||
            (exec_log_kept(g) < g->keep && !large) || read_head(g, next, &r, &e) < 0)
            return;
        if (g->end[LOG_OUT] - r.at[LOG_OUT] + g->end[LOG_ERR] - r.at[LOG_ERR] < g->keep && !large)
            return;
        g->first = next;
        g->from[LOG_OUT] = r.at[LOG_OUT];
        g->from[LOG_ERR] = r.at[LOG_ERR];
        punch(g);
    }
}

/* --- writing --- */

/* size is that of mem, so that the same function writes both. */
int exec_log_spill(struct exec_log *g, struct err *e)
{
    int64_t size = g->size;
    int r;

    if (g->in_file)
        return 0;
    if (need_fd(g, true, e) < 0)
        return -1;
    g->size = 0;
    r = write_at(g, buf_str(&g->mem), str_make(NULL, 0), e);
    g->size = size;
    if (r < 0)
        return -1;
    g->in_file = true;
    buf_done(&g->mem);
    return 0;
}

static int put_bytes(struct exec_log *g, struct str head, struct str bytes, struct err *e)
{
    if (!g->in_file) {
        buf_add_str(&g->mem, head);
        buf_add_str(&g->mem, bytes);
    } else if (write_at(g, head, bytes, e) < 0) {
        return -1;
    }
    g->size += (int64_t)(head.n + bytes.n);
    return 0;
}

static size_t left_in_block(int64_t pos)
{
    return LOG_BLOCK - (size_t)(pos % LOG_BLOCK);
}

struct log_cut exec_log_cut(const struct exec_log *g, enum log_stream s, int64_t time_us,
                            struct str bytes)
{
    return (struct log_cut){.rest = {.seq = g->seq,
                                     .time_us = time_us,
                                     .stream = s,
                                     .at = {g->end[LOG_OUT], g->end[LOG_ERR]},
                                     .bytes = bytes},
                            .pos = g->size,
                            .sized = g->sized};
}

bool exec_log_cut_next(struct log_cut *c, struct log_record *ret)
{
    size_t left = left_in_block(c->pos);

    if (c->rest.bytes.n == 0)
        return false;
    if (left <= LOG_HEAD) {
        c->pos += (int64_t)left;
        left = LOG_BLOCK;
    }
    if (left == LOG_BLOCK && c->sized && c->pos > 0) { /* the size that begins a block */
        c->pos += LOG_HEAD + SIZE_BYTES;
        c->rest.seq++;
        left -= LOG_HEAD + SIZE_BYTES;
    }
    *ret = c->rest;
    ret->bytes.n = size_min(c->rest.bytes.n, left - LOG_HEAD);
    c->pos += (int64_t)(LOG_HEAD + ret->bytes.n);
    c->rest.seq++;
    c->rest.time_us++;
    c->rest.at[ret->stream] += (int64_t)ret->bytes.n;
    c->rest.bytes = str_skip(c->rest.bytes, ret->bytes.n);
    return true;
}

static int put_record(struct exec_log *g, const struct log_record *r, struct err *e)
{
    unsigned char head[LOG_HEAD];

    put_head(head, r);
    if (put_bytes(g, str_make(head, sizeof head), r->bytes, e) < 0)
        return -1;
    if (r->stream < LOG_STREAMS)
        g->end[r->stream] += (int64_t)r->bytes.n;
    g->seq++;
    return 0;
}

static int put_size(struct exec_log *g, int64_t time_us, struct err *e)
{
    unsigned char size[SIZE_BYTES];
    struct log_record r = {.seq = g->seq,
                           .time_us = time_us,
                           .stream = LOG_SIZE,
                           .at = {g->end[LOG_OUT], g->end[LOG_ERR]},
                           .bytes = str_make((const char *)size, sizeof size)};

    put(size, (uint64_t)g->rows, 2);
    put(size + 2, (uint64_t)g->cols, 2);
    return put_record(g, &r, e);
}

/* Makes room for a record with `need` bytes of content: fills the block if it has less.  A new
 * block begins with the size of the terminal. */
static int need_room(struct exec_log *g, size_t need, int64_t time_us, struct err *e)
{
    static const char zeros[LOG_HEAD + SIZE_BYTES];
    size_t left = left_in_block(g->size);

    if (left < LOG_HEAD + need && put_bytes(g, str_make(zeros, left), str_make(NULL, 0), e) < 0)
        return -1;
    if (g->sized && g->size % LOG_BLOCK == 0 && g->size > 0)
        return put_size(g, time_us, e);
    return 0;
}

static int append_one(struct exec_log *g, const struct log_record *r, struct err *e)
{
    return need_room(g, 1, r->time_us, e) < 0 ? -1 : put_record(g, r, e);
}

struct log_mark { /* to undo a failed append: only for a file, whose size we keep */
    int64_t size, end[LOG_STREAMS];
    uint64_t seq;
};

static struct log_mark mark_of(const struct exec_log *g)
{
    return (struct log_mark){g->size, {g->end[LOG_OUT], g->end[LOG_ERR]}, g->seq};
}

static int undo_append(struct exec_log *g, const struct log_mark *m)
{
    g->size = m->size;
    g->seq = m->seq;
    memcpy(g->end, m->end, sizeof m->end);
    return -1;
}

int exec_log_resize(struct exec_log *g, int64_t *time_us, int rows, int cols, struct err *e)
{
    const struct log_mark before = mark_of(g);
    const int was_rows = g->rows, was_cols = g->cols;

    if (buf_len(&g->mem) + SIZE_BYTES + LOG_HEAD > LOG_SMALL && exec_log_spill(g, e) < 0)
        return -1;
    /* first room with the old size, which a new block begins with, then the new one */
    if (need_room(g, SIZE_BYTES, *time_us, e) < 0)
        return undo_append(g, &before);
    g->rows = rows;
    g->cols = cols;
    if (put_size(g, *time_us, e) < 0) {
        g->rows = was_rows;
        g->cols = was_cols;
        return undo_append(g, &before);
    }
    g->sized = true;
    g->last_us = i64_max(g->last_us, *time_us);
    exec_log_retain(g);
    return 0;
}

int exec_log_append(struct exec_log *g, enum log_stream s, int64_t *time_us, struct str bytes,
                    struct err *e)
{
    const struct log_mark before = mark_of(g);
    struct log_cut cut = exec_log_cut(g, s, *time_us, bytes);
    struct log_record r;

    if (buf_len(&g->mem) + bytes.n + LOG_HEAD > LOG_SMALL && exec_log_spill(g, e) < 0)
        return -1;
    while (exec_log_cut_next(&cut, &r)) {
        if (append_one(g, &r, e) < 0)
            return undo_append(g, &before);
        *time_us = r.time_us;
    }
    assert(g->size == cut.pos);
    g->last_us = i64_max(g->last_us, *time_us);
    exec_log_retain(g);
    return 0;
}

void exec_log_skip(struct exec_log *g, enum log_stream s, int64_t to)
{
    g->end[s] = i64_max(g->end[s], to);
    if (g->size == 0)
        g->from[s] = g->end[s];
}

/* --- parsing --- */

int exec_log_next(struct str bytes, struct log_record *ret, size_t *ret_used, struct err *e)
{
    static const char zeros[LOG_HEAD + SIZE_BYTES];

    if (bytes.n <= LOG_HEAD ||
        (bytes.n < sizeof zeros && memcmp(bytes.p, zeros, bytes.n) == 0)) { /* the end of a block */
        *ret_used = bytes.n;
        return 0;
    }
    if (!get_head((const unsigned char *)bytes.p, ret) || bytes.n - LOG_HEAD < ret->bytes.n)
        return err_set(e, ERR_INTERNAL, 0, "an output log is damaged");
    ret->bytes.p = bytes.p + LOG_HEAD;
    *ret_used = LOG_HEAD + ret->bytes.n;
    return 1;
}

void exec_log_size(const struct log_record *r, int *ret_rows, int *ret_cols)
{
    const unsigned char *p = (const unsigned char *)r->bytes.p;

    assert(r->stream == LOG_SIZE && r->bytes.n == SIZE_BYTES);
    *ret_rows = (int)get(p, 2);
    *ret_cols = (int)get(p + 2, 2);
}

/* Takes consecutive whole records of one block; returns their length in bytes. */
static size_t take_records(struct exec_log *g, struct str block)
{
    size_t taken = 0, used;
    struct log_record r;
    struct err e;
    bool any = false;

    while (taken < block.n && exec_log_next(str_skip(block, taken), &r, &used, &e) > 0) {
        if (any &&
            (r.seq != g->seq || r.at[LOG_OUT] < g->end[LOG_OUT] || r.at[LOG_ERR] < g->end[LOG_ERR]))
            break;
        any = true;
        g->seq = r.seq + 1;
        g->last_us = r.time_us;
        g->end[LOG_OUT] = r.at[LOG_OUT];
        g->end[LOG_ERR] = r.at[LOG_ERR];
        if (r.stream == LOG_SIZE) {
            exec_log_size(&r, &g->rows, &g->cols);
            g->sized = true;
        } else {
            g->end[r.stream] += (int64_t)r.bytes.n;
        }
        taken += used;
    }
    return taken;
}

/* The oldest block after the punched hole, which begins after the kept beginning: lseek(2). */
static void find_first(struct exec_log *g)
{
    int64_t hole = lseek(g->fd, 0, SEEK_HOLE);
    int64_t data = hole >= 0 && hole < g->size ? lseek(g->fd, hole, SEEK_DATA) : 0;
    struct log_record r;
    struct err e;

    g->first = data < 0 ? 0 : (data + LOG_BLOCK - 1) / LOG_BLOCK * LOG_BLOCK;
    while (g->first < g->size && read_head(g, g->first, &r, &e) < 0)
        g->first += LOG_BLOCK;
    g->punched = g->first;
    if (g->first < g->size) {
        g->from[LOG_OUT] = r.at[LOG_OUT];
        g->from[LOG_ERR] = r.at[LOG_ERR];
    }
}

int exec_log_recover(struct exec_log *g, struct err *e)
{
    AUTO(mem_free) char *block = xmalloc(LOG_BLOCK);
    struct stat st;
    int64_t pos;
    size_t taken = 0;

    if (need_fd(g, false, e) < 0)
        return e->sys == ENOENT ? (*e = (struct err){0}, 0) : -1;
    if (fstat(g->fd, &st) < 0)
        return log_failed(g, e, "look at", errno);
    g->in_file = true;
    for (pos = st.st_size / LOG_BLOCK * LOG_BLOCK; pos >= 0 && taken == 0; pos -= LOG_BLOCK) {
        ssize_t n = read_at(g, block, LOG_BLOCK, pos);

        if (n < 0)
            return log_failed(g, e, "read", errno);
        taken = take_records(g, str_make(block, (size_t)n));
        g->size = pos + (int64_t)taken;
    }
    if (ftruncate(g->fd, g->size) < 0)
        return log_failed(g, e, "cut", errno);
    find_first(g);
    exec_log_retain(g);
    return 0;
}

int exec_log_load(struct exec_log *g, struct str records, struct err *e)
{
    if (records.n > LOG_SMALL)
        return err_set(e, ERR_INTERNAL, 0, "the output in the row is too large");
    buf_clear(&g->mem);
    g->seq = 0;
    if (take_records(g, records) != records.n)
        return err_set(e, ERR_INTERNAL, 0, "the output in the row is damaged");
    buf_add_str(&g->mem, records);
    g->in_file = false;
    g->size = (int64_t)records.n;
    return 0;
}

int exec_log_settle(struct exec_log *g, bool *ret_small, struct err *e)
{
    *ret_small = g->size <= LOG_SMALL;
    if (!g->in_file || !*ret_small)
        return 0;
    if (g->size > 0) {
        char *to;

        buf_clear(&g->mem);
        if (need_fd(g, false, e) < 0 || buf_reserve(&g->mem, LOG_SMALL, &to) < 0 ||
            read_at(g, to, (size_t)g->size, 0) != (ssize_t)g->size)
            return log_failed(g, e, "read", errno);
        buf_added(&g->mem, (size_t)g->size);
    }
    g->in_file = false;
    return 0;
}

void exec_log_unlink(struct exec_log *g)
{
    if (g->fd >= 0 || g->in_file)
        (void)unlink(g->path);
    if (!g->in_file) {
        fd_close(g->fd);
        g->fd = -1;
    }
}

void exec_log_forget(struct exec_log *g)
{
    buf_done(&g->mem);
    fd_close(g->fd);
    g->fd = -1;
}

/* --- reading --- */

/* The last block whose first record is not too far. */
static int bisect(struct exec_log *g,
                  bool (*is_before)(const struct log_record *r, const void *arg), const void *arg,
                  int64_t *ret_pos, struct err *e)
{
    int64_t low = g->first / LOG_BLOCK, high = g->size / LOG_BLOCK;

    *ret_pos = g->first;
    if (!g->in_file)
        return 0;
    if (need_fd(g, false, e) < 0)
        return -1;
    if (high > low && g->size % LOG_BLOCK == 0)
        high--;
    while (low < high) {
        int64_t mid = (low + high + 1) / 2;
        struct log_record r;

        if (read_head(g, mid * LOG_BLOCK, &r, e) < 0)
            return -1;
        if (is_before(&r, arg))
            low = mid;
        else
            high = mid - 1;
    }
    *ret_pos = low * LOG_BLOCK;
    return 0;
}

static bool offsets_before(const struct log_record *r, const void *arg)
{
    const int64_t *want = arg;

    return r->at[LOG_OUT] <= want[LOG_OUT] && r->at[LOG_ERR] <= want[LOG_ERR];
}

int exec_log_seek(struct exec_log *g, const int64_t want[LOG_STREAMS], int64_t *ret_pos,
                  struct err *e)
{
    return bisect(g, offsets_before, want, ret_pos, e);
}

static bool time_before(const struct log_record *r, const void *arg)
{
    return r->time_us <= *(const int64_t *)arg;
}

int exec_log_seek_time(struct exec_log *g, int64_t after_us, int64_t *ret_pos, struct err *e)
{
    return bisect(g, time_before, &after_us, ret_pos, e);
}

int exec_log_block(struct exec_log *g, int64_t *pos, char *block, struct str *ret, struct err *e)
{
    size_t n;
    ssize_t got;

    *pos = i64_max(*pos, g->first);
    n = (size_t)i64_min((int64_t)left_in_block(*pos), g->size - *pos);
    if (!g->in_file) {
        *ret = str_make(buf_data(&g->mem) + *pos, n);
        return 0;
    }
    if (need_fd(g, false, e) < 0)
        return -1;
    got = read_at(g, block, n, *pos);
    if (got < 0 || (size_t)got != n)
        return log_failed(g, e, "read", got < 0 ? errno : EIO);
    *ret = str_make(block, n);
    return 0;
}

static int add_records(struct str block, enum log_stream s, int64_t until, size_t max,
                       struct buf *to, struct err *e)
{
    struct log_record r;
    size_t used;
    int n;

    while (block.n > 0 && (n = exec_log_next(block, &r, &used, e)) != 0) {
        if (n < 0)
            return -1;
        if (r.stream == s && r.at[s] == (int64_t)buf_len(to) && r.at[s] < until)
            buf_add(to, r.bytes.p, size_min(r.bytes.n, max - buf_len(to)));
        block = str_skip(block, used);
    }
    return 0;
}

int exec_log_beginning(struct exec_log *g, enum log_stream s, size_t max, struct buf *to,
                       struct err *e)
{
    int64_t end = i64_min(head_size(g), g->first);
    AUTO(mem_free) char *block = NULL;

    if (!g->in_file || end == 0)
        return 0;
    if (need_fd(g, false, e) < 0)
        return -1;
    block = xmalloc(LOG_BLOCK);
    for (int64_t pos = 0; pos < end && buf_len(to) < max; pos += LOG_BLOCK) {
        ssize_t n = read_at(g, block, LOG_BLOCK, pos);

        if (n < 0)
            return log_failed(g, e, "read", errno);
        if (add_records(str_make(block, (size_t)n), s, g->from[s], max, to, e) < 0)
            return -1;
    }
    return 0;
}
