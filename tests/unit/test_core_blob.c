#include "core/blob.h"

#include "base/fd.h"
#include "team_fixture.h"

#include <dirent.h>
#include <fcntl.h>

#define ABC "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"

struct shelf {
    struct fixture *f;
    struct blobs *all;
    struct blob got;
    enum err_code code;
    size_t consumed;
    int ended;
};

static void shelf_open(struct shelf *s, struct fixture *f)
{
    struct err e = {0};

    *s = (struct shelf){.f = f};
    assert_int_equal(
        blobs_open(
            &(struct blobs_config){.loop = &f->g.loop, .store = f->g.store, .state = f->g.dir},
            &s->all, &e),
        0);
}

static size_t files(const struct shelf *s)
{
    AUTO(mem_free) char *path = xasprintf("%s/blobs", s->f->g.dir);
    DIR *d = opendir(path);
    const struct dirent *en;
    size_t n = 0;

    while ((en = readdir(d)))
        n += en->d_name[0] != '.';
    (void)closedir(d);
    return n;
}

static void turn(struct shelf *s)
{
    while (uv_run(&s->f->g.loop, UV_RUN_NOWAIT) && s->ended == 0)
        (void)usleep(1000);
    for (int i = 0; i < 50; i++) {
        (void)uv_run(&s->f->g.loop, UV_RUN_NOWAIT);
        (void)usleep(1000);
    }
}

static void shelf_close(struct shelf *s)
{
    turn(s);
    blobs_free(s->all);
}

static void on_consumed(void *arg, size_t n)
{
    struct shelf *s = arg;

    s->consumed += n;
}

static void on_done(void *arg, const struct blob *b, const struct err *e)
{
    struct shelf *s = arg;

    s->ended++;
    s->code = e->code;
    if (b)
        s->got = *b;
}

static const struct blob_in_ops ops = {on_consumed, on_done};

static struct blob_in *begin(struct shelf *s, int64_t max)
{
    struct blob_in *in;
    struct err e = {0};

    s->ended = 0;
    assert_int_equal(blob_in_new(s->all, max, &ops, s, &in, &e), 0);
    return in;
}

static void store(struct shelf *s, const char *text)
{
    struct blob_in *in = begin(s, 100);

    for (const char *c = text; *c; c++)
        blob_in_write(in, str_make(c, 1));
    blob_in_end(in);
    turn(s);
    assert_int_equal(s->ended, 1);
    assert_int_equal(s->code, ERR_NONE);
}

static void on_open(void *arg, int fd, const struct err *e)
{
    struct shelf *s = arg;

    s->ended++;
    s->code = e->code;
    fd_close(fd);
}

static enum err_code open_code(struct shelf *s)
{
    s->ended = 0;
    blob_open(s->all, STR(ABC), on_open, s);
    turn(s);
    assert_int_equal(s->ended, 1);
    return s->code;
}

static void one_that_is_named_stays(void **state)
{
    struct shelf s;

    shelf_open(&s, *state);
    store(&s, "abc");
    assert_string_equal(s.got.name, ABC);
    assert_int_equal(s.got.size, 3);
    assert_int_equal(s.consumed, 3);
    blob_release(s.all, ABC, true);
    turn(&s);
    assert_int_equal(open_code(&s), ERR_NONE);
    store(&s, "abc"); /* again, and this time the row is not made */
    blob_release(s.all, ABC, false);
    turn(&s);
    assert_int_equal(open_code(&s), ERR_NONE);
    blob_unused(s.all, STR(ABC));
    turn(&s);
    assert_int_equal(open_code(&s), ERR_NOT_FOUND);
    shelf_close(&s);
}

static void one_that_nobody_names_goes(void **state)
{
    struct shelf s;

    shelf_open(&s, *state);
    store(&s, "abc");
    store(&s, "abc");
    blob_release(s.all, ABC, false);
    turn(&s);
    assert_int_equal(files(&s), 1); /* the second still holds it */
    blob_release(s.all, ABC, false);
    turn(&s);
    assert_int_equal(files(&s), 0);
    shelf_close(&s);
}

/* A commit removes the last row while another upload of the same bytes is on its way. */
static void one_that_is_held_outlives_its_row(void **state)
{
    struct shelf s;

    shelf_open(&s, *state);
    store(&s, "abc");
    blob_release(s.all, ABC, true);
    store(&s, "abc");
    blob_unused(s.all, STR(ABC));
    turn(&s);
    assert_int_equal(files(&s), 1);
    blob_release(s.all, ABC, true);
    turn(&s);
    assert_int_equal(open_code(&s), ERR_NONE);
    store(&s, "abc");
    blob_unused(s.all, STR(ABC));
    blob_release(s.all, ABC, false);
    turn(&s);
    assert_int_equal(files(&s), 0);
    shelf_close(&s);
}

static void what_is_cut_or_too_large_leaves_nothing(void **state)
{
    struct shelf s;
    struct blob_in *in;

    shelf_open(&s, *state);
    in = begin(&s, 2);
    blob_in_write(in, STR("ab"));
    blob_in_write(in, STR("c"));
    turn(&s);
    assert_int_equal(s.ended, 1);
    assert_int_equal(s.code, ERR_TOO_LARGE);
    in = begin(&s, 100);
    blob_in_write(in, STR("ab"));
    blob_in_abort(in);
    in = begin(&s, 100);
    blob_in_write(in, STR("ab"));
    blob_in_end(in);
    blob_in_abort(in); /* while it is on its way to its name */
    turn(&s);
    assert_int_equal(s.ended, 0);
    assert_int_equal(files(&s), 0);
    shelf_close(&s);
}

static void strays_go_at_the_start(void **state)
{
    static const char *const names[] = {"in_00000000000000000000", ABC};
    struct fixture *f = *state;
    struct shelf s;
    struct err e = {0};

    shelf_open(&s, f);
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        AUTO(mem_free) char *path = xasprintf("%s/blobs/%s", f->g.dir, names[i]);

        assert_int_equal(file_replace(path, 0600, STR("abc")), 0);
    }
    blobs_free(s.all);
    assert_int_equal(blobs_open(&(struct blobs_config){.loop = &f->g.loop,
                                                       .store = f->g.store,
                                                       .state = f->g.dir,
                                                       .keep_strays = true},
                                &s.all, &e),
                     0);
    assert_int_equal(files(&s), 1);
    blobs_free(s.all);
    shelf_open(&s, f);
    assert_int_equal(files(&s), 0);
    shelf_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(one_that_is_named_stays, team_setup, team_teardown),
        cmocka_unit_test_setup_teardown(one_that_nobody_names_goes, team_setup, team_teardown),
        cmocka_unit_test_setup_teardown(one_that_is_held_outlives_its_row, team_setup,
                                        team_teardown),
        cmocka_unit_test_setup_teardown(what_is_cut_or_too_large_leaves_nothing, team_setup,
                                        team_teardown),
        cmocka_unit_test_setup_teardown(strays_go_at_the_start, team_setup, team_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
