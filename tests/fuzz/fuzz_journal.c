#include "core/exec/exec_log.h"

#include "base/fd.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The records that core/exec/journal.c reads, in a file that a crash may have torn and a disk may
 * have damaged: the input is what happens to it, four bytes a step.  Heads carry checksums, so
 * bytes that come from nowhere would not be looked into. */

struct world {
    struct exec_log g;
    int fd;
    char path[48];
    int64_t moment;
};

static void reopen(struct world *w, bool row)
{
    AUTO(buf_done) struct buf records = {0};
    struct err e = {0};
    bool failed;

    buf_add_str(&records, buf_str(&w->g.mem));
    exec_log_done(&w->g);
    exec_log_init(&w->g, w->path, 2 * LOG_BLOCK);
    failed =
        row ? exec_log_load(&w->g, buf_str(&records), &e) < 0 : exec_log_recover(&w->g, &e) < 0;
    if (!failed)
        return;
    assert(e.msg[0]);
    exec_log_done(&w->g);
    assert(ftruncate(w->fd, 0) == 0);
    exec_log_init(&w->g, w->path, 2 * LOG_BLOCK);
}

/* From a moment on, block by block, record by record; what is damaged is an error, never more. */
static void walk(struct world *w, int64_t after_us)
{
    static char block[LOG_BLOCK];
    struct exec_log *g = &w->g;
    struct err e = {0};
    int64_t pos;

    if (exec_log_seek_time(g, after_us, &pos, &e) < 0)
        return;
    while (pos < g->size) {
        int64_t at = pos;
        struct log_record r;
        struct str bytes;
        size_t used;
        int n = exec_log_block(g, &pos, block, &bytes, &e);

        if (n < 0 || bytes.n == 0)
            return;
        assert(pos >= at && bytes.n <= LOG_BLOCK);
        pos += (int64_t)bytes.n;
        while (bytes.n > 0 && (n = exec_log_next(bytes, &r, &used, &e)) > 0) {
            assert(used > LOG_HEAD && used <= bytes.n && r.stream < LOG_KINDS);
            bytes = str_skip(bytes, used);
        }
        if (n < 0) {
            assert(e.msg[0]);
            return;
        }
    }
}

static void damage(struct world *w, size_t at, uint8_t with)
{
    char c;

    if (buf_len(&w->g.mem) > 0) {
        ((char *)buf_data(&w->g.mem))[at % buf_len(&w->g.mem)] ^= (char)with;
        return;
    }
    if (w->g.size > 0 && pread(w->fd, &c, 1, (off_t)(at % (size_t)w->g.size)) == 1) {
        c = (char)(c ^ (char)with);
        assert(pwrite(w->fd, &c, 1, (off_t)(at % (size_t)w->g.size)) == 1);
    }
}

static void step(struct world *w, const uint8_t *p)
{
    static const char bytes[2 * LOG_BLOCK];
    size_t n = (size_t)p[1] << 8 | p[2];
    struct err e = {0};

    switch (p[0] % 8) {
    case 0:
    case 1:
    case 2:
        w->moment += 1 + p[3];
        (void)!exec_log_append(&w->g, p[0] % 8 == 2 ? LOG_ERR : LOG_OUT, &w->moment,
                               str_make(bytes, n + 1), &e);
        break;
    case 3:
        (void)!exec_log_spill(&w->g, &e);
        break;
    case 4:
        damage(w, n, p[3]);
        break;
    case 5:
        if (w->g.in_file)
            assert(ftruncate(w->fd, (off_t)(n % (size_t)(w->g.size + 1))) == 0);
        reopen(w, false);
        break;
    case 6:
        reopen(w, !w->g.in_file);
        break;
    default:
        walk(w, w->moment - (int64_t)n);
        break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct world w = {.fd = memfd_create("log", MFD_CLOEXEC), .moment = 1000000};

    if (w.fd < 0)
        return 0;
    (void)snprintf(w.path, sizeof w.path, "/proc/self/fd/%d", w.fd);
    exec_log_init(&w.g, w.path, 2 * LOG_BLOCK);
    for (size_t i = 0; i + 4 <= size && i < 400; i += 4)
        step(&w, data + i);
    walk(&w, 0);
    exec_log_done(&w.g);
    fd_close(w.fd);
    return 0;
}
