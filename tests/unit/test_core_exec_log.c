#include "core/exec/exec_log.h"

#include "base/mem.h"
#include "unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define MODEL_MAX (4 << 20)

/* A log in a directory of its own, and what it should hold. */
struct fixture {
    char dir[64], path[96];
    struct exec_log g;
    unsigned char *model[LOG_STREAMS];
    int64_t len[LOG_STREAMS];
    unsigned seed;
};

static int setup(void **state)
{
    struct fixture *f = xzalloc(sizeof *f);

    (void)snprintf(f->dir, sizeof f->dir, "/tmp/holt-log-XXXXXX");
    assert_non_null(mkdtemp(f->dir));
    (void)snprintf(f->path, sizeof f->path, "%s/sb/ex.log", f->dir);
    exec_log_init(&f->g, f->path, 0);
    f->model[0] = xzalloc(MODEL_MAX);
    f->model[1] = xzalloc(MODEL_MAX);
    f->seed = 1;
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    exec_log_done(&f->g);
    (void)unlink(f->path);
    *strrchr(f->path, '/') = '\0';
    (void)rmdir(f->path);
    assert_int_equal(rmdir(f->dir), 0);
    mem_free(f->model[0]);
    mem_free(f->model[1]);
    mem_free(f);
    return 0;
}

static unsigned rnd(struct fixture *f, unsigned n)
{
    f->seed = f->seed * 1103515245U + 12345U;
    return (f->seed >> 8) % n;
}

/* What exec_log_cut promised is what the log has. */
static void check_cut(struct fixture *f, struct log_cut cut)
{
    static char block[LOG_BLOCK];
    int64_t pos = cut.pos;
    struct log_record r, told;
    struct str bytes;
    size_t used;
    struct err e = {0};

    while (exec_log_cut_next(&cut, &told)) {
        int n;

        do { /* past the end of a block, and the size that begins one */
            assert_int_equal(exec_log_block(&f->g, &pos, block, &bytes, &e), 0);
            n = exec_log_next(bytes, &r, &used, &e);
            assert_true(n >= 0);
            pos += (int64_t)used;
        } while (n == 0 || r.stream == LOG_SIZE);
        assert_int_equal(pos, cut.pos);
        assert_true(r.seq == told.seq && r.time_us == told.time_us && r.stream == told.stream);
        assert_memory_equal(r.at, told.at, sizeof r.at);
        assert_int_equal(r.bytes.n, told.bytes.n);
        assert_memory_equal(r.bytes.p, told.bytes.p, r.bytes.n);
    }
    assert_int_equal(cut.pos, f->g.size);
}

static void append(struct fixture *f, enum log_stream s, size_t n)
{
    struct str bytes = str_make(f->model[s] + f->len[s], n);
    struct log_cut cut = exec_log_cut(&f->g, s, 1000, bytes);
    struct err e = {0};

    assert_true(f->len[s] + (int64_t)n <= MODEL_MAX);
    for (size_t i = 0; i < n; i++)
        f->model[s][f->len[s] + (int64_t)i] = (unsigned char)rnd(f, 256);
    assert_int_equal(exec_log_append(&f->g, s, &(int64_t){1000}, bytes, &e), 0);
    f->len[s] += (int64_t)n;
    assert_int_equal(f->g.end[s], f->len[s]);
    check_cut(f, cut);
}

/* Reads to the end from these offsets; every byte from `from` on must be the model's. */
static void check_from(struct fixture *f, int64_t out, int64_t err)
{
    const int64_t want[LOG_STREAMS] = {out, err};
    int64_t at[LOG_STREAMS] = {i64_max(out, f->g.from[0]), i64_max(err, f->g.from[1])};
    static char block[LOG_BLOCK];
    int64_t pos = 0;
    uint64_t seq = 0;
    struct str bytes;
    struct err e = {0};

    assert_int_equal(exec_log_seek(&f->g, want, &pos, &e), 0);
    for (;;) {
        struct log_record r;
        size_t used;

        assert_int_equal(exec_log_block(&f->g, &pos, block, &bytes, &e), 0);
        if (bytes.n == 0)
            break;
        while (bytes.n > 0) {
            int n = exec_log_next(bytes, &r, &used, &e);

            assert_true(n >= 0);
            bytes = str_skip(bytes, used);
            pos += (int64_t)used;
            if (n == 0)
                continue;
            assert_true(seq == 0 || r.seq == seq);
            seq = r.seq + 1;
            if (r.stream == LOG_SIZE)
                continue;
            assert_memory_equal(r.bytes.p, f->model[r.stream] + r.at[r.stream], r.bytes.n);
            assert_true(r.at[r.stream] <= at[r.stream]); /* nothing is missed */
            at[r.stream] = i64_max(at[r.stream], r.at[r.stream] + (int64_t)r.bytes.n);
        }
    }
    for (int s = 0; s < LOG_STREAMS; s++)
        if (want[s] != INT64_MAX)
            assert_int_equal(at[s], i64_max(f->len[s], i64_max(want[s], f->g.from[s])));
}

static void reopen(struct fixture *f)
{
    int64_t keep = f->g.keep;
    struct err e = {0};

    exec_log_done(&f->g);
    exec_log_init(&f->g, f->path, keep);
    assert_int_equal(exec_log_recover(&f->g, &e), 0);
}

/* The size of the terminal at this offset of the output, as a reader from the first kept block
 * learns it. */
static void check_sizes(struct fixture *f, const int64_t *at, const int *rows, size_t n)
{
    static char block[LOG_BLOCK];
    struct err e = {0};
    int64_t pos = f->g.first;
    int r_now = 0, c_now = 0;
    bool any = false;

    while (pos < f->g.size) {
        struct log_record r;
        struct str bytes;
        size_t used;

        assert_int_equal(exec_log_block(&f->g, &pos, block, &bytes, &e), 0);
        pos += (int64_t)bytes.n;
        for (; bytes.n > 0; bytes = str_skip(bytes, used)) {
            size_t k = n;

            if (exec_log_next(bytes, &r, &used, &e) == 0)
                continue;
            any = any || r.stream == LOG_SIZE;
            if (r.stream == LOG_SIZE) {
                exec_log_size(&r, &r_now, &c_now);
                continue;
            }
            while (k > 0 && at[k - 1] > r.at[LOG_OUT])
                k--;
            if (k == 0)
                continue;
            assert_true(any);
            assert_int_equal(r_now, rows[k - 1]);
            assert_int_equal(c_now, rows[k - 1] + 1);
        }
    }
}

static void sizes_survive_a_crash_and_the_drop_of_old_blocks(void **state)
{
    struct fixture *f = *state;
    int64_t at[64];
    int rows[64];
    struct err e = {0};

    f->g.keep = LOG_KEEP_MIN;
    for (size_t k = 0; k < ARRAY_LEN(at); k++) {
        append(f, LOG_OUT, 1 + rnd(f, 12000));
        at[k] = f->len[LOG_OUT];
        rows[k] = 1 + (int)rnd(f, 500);
        assert_int_equal(exec_log_resize(&f->g, &(int64_t){2000}, rows[k], rows[k] + 1, &e), 0);
        check_sizes(f, at, rows, k + 1);
        if (k % 8 == 7) {
            reopen(f);
            assert_int_equal(f->g.rows, rows[k]);
            assert_int_equal(f->g.cols, rows[k] + 1);
        }
    }
    append(f, LOG_OUT, 100000); /* whole blocks without a resize */
    reopen(f);
    assert_true(f->g.first > 0);
    assert_int_equal(f->g.rows, rows[ARRAY_LEN(at) - 1]);
    check_sizes(f, at, rows, ARRAY_LEN(at));
    check_from(f, 0, 0);
}

static void small_output_is_in_memory_and_fits_a_row(void **state)
{
    struct fixture *f = *state;
    struct exec_log other;
    struct stat st;
    struct err e = {0};
    bool small = false;

    append(f, LOG_OUT, 100);
    append(f, LOG_ERR, 50);
    assert_false(f->g.in_file);
    assert_int_equal(stat(f->path, &st), -1);
    check_from(f, 0, 0);
    check_from(f, 99, 50);
    assert_int_equal(exec_log_settle(&f->g, &small, &e), 0);
    assert_true(small);
    exec_log_init(&other, f->path, 0);
    assert_int_equal(exec_log_load(&other, buf_str(&f->g.mem), &e), 0);
    assert_int_equal(other.end[LOG_OUT], 100);
    assert_int_equal(other.end[LOG_ERR], 50);
    exec_log_done(&other);
}

static void what_was_spilled_and_is_small_comes_back(void **state)
{
    struct fixture *f = *state;
    struct err e = {0};
    bool small = false;

    append(f, LOG_OUT, 5000);
    assert_int_equal(exec_log_spill(&f->g, &e), 0);
    append(f, LOG_OUT, 3000);
    assert_true(f->g.in_file);
    check_from(f, 4000, INT64_MAX);
    assert_int_equal(exec_log_settle(&f->g, &small, &e), 0);
    assert_true(small);
    assert_false(f->g.in_file);
    exec_log_unlink(&f->g);
    assert_int_equal(access(f->path, F_OK), -1);
    check_from(f, 0, 0);
}

static void any_offset_of_any_sizes(void **state)
{
    static const unsigned sizes[] = {1, 7, 40, 41, 300, 4096, 65000, 65496, 65497, 65527};
    struct fixture *f = *state;

    for (int i = 0; i < 150; i++) {
        append(f, (enum log_stream)rnd(f, 2), 1 + rnd(f, sizes[rnd(f, ARRAY_LEN(sizes))]));
        if (i % 25 == 24)
            reopen(f);
    }
    check_from(f, 0, 0);
    for (int i = 0; i < 100; i++)
        check_from(f, rnd(f, (unsigned)f->len[0] + 10), rnd(f, (unsigned)f->len[1] + 10));
    check_from(f, INT64_MAX, 17);
    check_from(f, 17, INT64_MAX);
}

/* A block's end with 0 to 60 bytes left, where a head may or may not fit. */
static void block_borders(void **state)
{
    struct fixture *f = *state;

    for (unsigned left = 0; left <= 60; left++) {
        append(f, LOG_OUT, 20000);
        append(f, LOG_OUT, LOG_BLOCK - LOG_HEAD - (size_t)(f->g.size % LOG_BLOCK) - left);
        append(f, LOG_ERR, 3);
        if (f->len[LOG_OUT] > MODEL_MAX - 3 * LOG_BLOCK)
            break;
    }
    reopen(f);
    check_from(f, 0, 0);
}

static void torn_records_are_cut(void **state)
{
    struct fixture *f = *state;

    append(f, LOG_OUT, 30000);
    append(f, LOG_OUT, 30000);
    append(f, LOG_ERR, 2000);
    append(f, LOG_OUT, 100);
    for (int64_t cut = 1; cut < 2180; cut += 37) {
        struct exec_log g;
        struct err e = {0};
        AUTO(mem_free) char *copy = xasprintf("%s/copy", f->dir);
        AUTO(mem_free) char *command = xasprintf("%s", copy);
        char bytes[LOG_BLOCK];
        ssize_t n = pread(f->g.fd, bytes, sizeof bytes, 0);
        int fd = open(command, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

        assert_int_equal(n, f->g.size);
        assert_int_equal(write(fd, bytes, (size_t)(n - cut)), n - cut);
        assert_int_equal(close(fd), 0);
        exec_log_init(&g, copy, 0);
        assert_int_equal(exec_log_recover(&g, &e), 0);
        assert_int_equal(g.end[LOG_OUT], 60000);
        assert_int_equal(g.end[LOG_ERR], cut <= 140 ? 2000 : 0);
        /* It goes on behind what is whole. */
        assert_int_equal(exec_log_append(&g, LOG_OUT, &(int64_t){1}, STR("more"), &e), 0);
        assert_int_equal(g.end[LOG_OUT], 60004);
        exec_log_done(&g);
        (void)unlink(copy);
    }
}

static void garbage_at_the_end_is_cut(void **state)
{
    struct fixture *f = *state;
    char junk[5000];

    append(f, LOG_OUT, 40000);
    memset(junk, 0, sizeof junk);
    assert_int_equal(pwrite(f->g.fd, junk, sizeof junk, f->g.size), sizeof junk);
    reopen(f);
    check_from(f, 0, 0);
    memset(junk, 'x', sizeof junk);
    assert_int_equal(pwrite(f->g.fd, junk, sizeof junk, f->g.size), sizeof junk);
    reopen(f);
    append(f, LOG_ERR, 10);
    check_from(f, 0, 0);
}

/* What a longer, failed write left behind is whole, and does not continue what is before it. */
static void a_stale_record_is_cut(void **state)
{
    struct fixture *f = *state;
    char record[LOG_HEAD + 100];

    append(f, LOG_OUT, 20000);
    append(f, LOG_ERR, 100);
    append(f, LOG_OUT, 10);
    assert_int_equal(pread(f->g.fd, record, sizeof record, 20000 + LOG_HEAD), sizeof record);
    assert_int_equal(pwrite(f->g.fd, record, sizeof record, f->g.size), sizeof record);
    reopen(f);
    assert_int_equal(f->g.end[LOG_ERR], 100);
    check_from(f, 0, 0);
}

static void old_blocks_go_and_the_gap_is_known(void **state)
{
    struct fixture *f = *state;
    struct stat st;

    f->g.keep = 256 << 10;
    for (int i = 0; i < 60; i++) {
        append(f, (enum log_stream)(i % 3 == 0), 30000 + rnd(f, 20000));
        assert_true(exec_log_kept(&f->g) >= i64_min(f->g.keep, f->len[0] + f->len[1]));
        assert_true(exec_log_kept(&f->g) <= f->g.keep + LOG_BLOCK);
    }
    assert_true(f->g.from[LOG_OUT] > 0 && f->g.from[LOG_ERR] > 0);
    check_from(f, 0, 0);
    check_from(f, f->g.from[LOG_OUT] + 5, f->len[LOG_ERR]);
    assert_int_equal(fstat(f->g.fd, &st), 0);
    assert_true(st.st_blocks * 512 <= 640 << 10);
    {
        int64_t from = f->g.from[LOG_OUT], first = f->g.first;

        reopen(f);
        assert_int_equal(f->g.from[LOG_OUT], from);
        assert_int_equal(f->g.first, first);
        check_from(f, 0, 0);
    }
}

static void tiny_records_do_not_fill_the_disk(void **state)
{
    struct fixture *f = *state;

    f->g.keep = 128 << 10;
    for (int i = 0; i < 60000; i++)
        append(f, LOG_OUT, 1);
    assert_true(f->g.size - f->g.first <= 4 * f->g.keep + 2 * LOG_BLOCK);
    check_from(f, 0, 0);
}

static void a_held_log_drops_nothing_unread(void **state)
{
    struct fixture *f = *state;

    f->g.keep = 128 << 10;
    f->g.hold = true;
    for (int i = 0; i < 10; i++)
        append(f, LOG_OUT, 60000);
    assert_int_equal(f->g.from[LOG_OUT], 0);
    f->g.floor = 3 * LOG_BLOCK;
    exec_log_retain(&f->g);
    assert_int_equal(f->g.first, 3 * LOG_BLOCK);
    f->g.floor = INT64_MAX;
    exec_log_retain(&f->g);
    assert_true(exec_log_kept(&f->g) <= f->g.keep + LOG_BLOCK);
}

static void a_damaged_row_is_refused(void **state)
{
    struct fixture *f = *state;
    struct exec_log other;
    struct err e = {0};

    append(f, LOG_OUT, 100);
    append(f, LOG_OUT, 100);
    buf_data(&f->g.mem)[150] ^= 1;
    exec_log_init(&other, f->path, 0);
    assert_int_equal(exec_log_load(&other, buf_str(&f->g.mem), &e), -1);
    assert_int_equal(e.code, ERR_INTERNAL);
    exec_log_done(&other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(small_output_is_in_memory_and_fits_a_row, setup, teardown),
        cmocka_unit_test_setup_teardown(sizes_survive_a_crash_and_the_drop_of_old_blocks, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(what_was_spilled_and_is_small_comes_back, setup, teardown),
        cmocka_unit_test_setup_teardown(any_offset_of_any_sizes, setup, teardown),
        cmocka_unit_test_setup_teardown(block_borders, setup, teardown),
        cmocka_unit_test_setup_teardown(torn_records_are_cut, setup, teardown),
        cmocka_unit_test_setup_teardown(garbage_at_the_end_is_cut, setup, teardown),
        cmocka_unit_test_setup_teardown(a_stale_record_is_cut, setup, teardown),
        cmocka_unit_test_setup_teardown(old_blocks_go_and_the_gap_is_known, setup, teardown),
        cmocka_unit_test_setup_teardown(tiny_records_do_not_fill_the_disk, setup, teardown),
        cmocka_unit_test_setup_teardown(a_held_log_drops_nothing_unread, setup, teardown),
        cmocka_unit_test_setup_teardown(a_damaged_row_is_refused, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
