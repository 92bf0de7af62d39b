#include "core/image/image.h"

#include "base/clock.h"
#include "base/fd.h"
#include "conf/conf.h"
#include "ground.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

/* An unpacker that unpacks nothing: it takes every byte and says what it is told to. */
struct fake_run {
    uv_timer_t timer;
    struct unpack_events events;
    char *dir;
    bool keeps; /* the directory */
};
static struct ground g;
static struct unpacker *unpacker;
static struct images *images;
static const char *report = "format=root\nentries=1\nbytes=7\ndiff_id=sha256:"
                            "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n";
static char *alias_texts[] = {(char[]){"ubuntu:22.04=host"}, (char[]){"old=app"}};
static struct conf_list aliases = {alias_texts, 2};

static void run_closed(uv_handle_t *h)
{
    struct fake_run *f = h->data;

    mem_free(f->dir);
    mem_free(f);
}

static void run_ends(uv_timer_t *t)
{
    struct fake_run *f = t->data;
    struct unpack_events ev = f->events;
    struct unpack_result r = {0};
    struct err e = {0};

    if (!f->keeps)
        (void)rmdir(f->dir);
    uv_close((uv_handle_t *)t, run_closed);
    if (f->keeps)
        (void)!unpack_result_parse(str_of(report), &r, &e);
    if (ev.done)
        ev.done(ev.arg, &r, &e);
}

static void run_eof(struct unpack *x)
{
    struct fake_run *f = (struct fake_run *)x;

    (void)uv_timer_start(&f->timer, run_ends, 0, 0);
}

static int run_start(struct unpacker *u, const struct unpack_spec *s, struct unpack **ret,
                     struct err *e)
{
    struct fake_run *f = xzalloc(sizeof *f);

    (void)u, (void)e;
    f->events = s->events;
    f->dir = xasprintf("%s/layers/%s/fs", g.dir, s->layer);
    (void)mkdir(f->dir, 0755);
    (void)uv_timer_init(&g.loop, &f->timer);
    f->timer.data = f;
    *ret = (struct unpack *)f;
    if (s->mode == UNPACK_CLEAR)
        run_eof(*ret);
    else
        f->keeps = true;
    return 0;
}

static size_t run_write(struct unpack *x, struct str bytes)
{
    (void)x;
    return bytes.n;
}

static void run_cancel(struct unpack *x)
{
    struct fake_run *f = (struct fake_run *)x;

    f->events = (struct unpack_events){0};
    run_eof(x);
}

static const struct unpacker_ops fake_ops = {run_start, run_write, run_eof, run_cancel};
static struct unpacker fake_unpacker = {&fake_ops};

static int setup(void **st)
{
    (void)st;
    assert_int_equal(scratch_make(g.dir, "image"), 0);
    ground_open(&g);
    unpacker = &fake_unpacker;
    return 0;
}

static void open_images(void)
{
    struct err e = {0};

    assert_int_equal(images_open(&(struct images_config){.loop = &g.loop,
                                                         .store = g.store,
                                                         .state = g.dir,
                                                         .unpacker = unpacker,
                                                         .limits = {1 << 20, 100, 1000},
                                                         .images_max = 8,
                                                         .jobs_max = 2,
                                                         .aliases = &aliases},
                                 &images, &e),
                     0);
}

static size_t layers(void)
{
    char path[100];
    DIR *d;
    size_t n = 0;

    (void)snprintf(path, sizeof path, "%s/layers", g.dir);
    d = opendir(path);
    for (const struct dirent *en; (en = readdir(d));)
        n += en->d_name[0] != '.';
    (void)closedir(d);
    return n;
}

static void turn_until_layers(size_t n)
{
    int64_t end = clock_mono_ms() + 5000;

    while (layers() != n && clock_mono_ms() < end)
        (void)uv_run(&g.loop, UV_RUN_ONCE);
    assert_int_equal(layers(), n);
}

static int teardown(void **st)
{
    (void)st;
    images_close(images);
    ground_close(&g);
    images = images_free(images);
    return scratch_remove(g.dir);
}

static const struct principal me = {.role = ROLE_ADMIN, .actor = "test"};
static int ended;
static struct err outcome;

static void done(void *arg, struct image *i, const struct err *e)
{
    (void)arg, (void)i;
    ended++;
    outcome = *e;
}

static void consumed(void *arg, size_t n)
{
    (void)arg, (void)n;
}

static void import(const char *name, const char *bytes)
{
    struct image_import *m;
    struct image *i;
    struct err e = {0};
    int before = ended;

    assert_int_equal(image_import_begin(images,
                                        &(struct image_import_spec){.name = str_of(name),
                                                                    .format = IMAGE_TAR,
                                                                    .consumed = consumed},
                                        &me, done, NULL, &m, &i, &e),
                     0);
    image_import_write(m, str_of(bytes));
    image_import_end(m);
    while (ended == before)
        (void)uv_run(&g.loop, UV_RUN_ONCE);
}

static void removed(void *arg, const struct err *e)
{
    (void)arg;
    ended++;
    outcome = *e;
}

static void forget(const char *name)
{
    int before = ended;

    image_remove(images, str_of(name), &me, removed, NULL);
    while (ended == before)
        (void)uv_run(&g.loop, UV_RUN_ONCE);
    assert_int_equal(outcome.code, ERR_NONE);
}

static void names_aliases_and_use(void **st)
{
    struct image_use u;
    struct err e = {0};

    (void)st;
    open_images();
    assert_int_equal(images_use(images, &principal_system, STR(""), &u, &e), 0);
    assert_string_equal(u.id, "host");
    assert_int_equal(images_use(images, &principal_system, STR("ubuntu:22.04"), &u, &e), 0);
    assert_string_equal(u.id, "host");
    assert_true(u.aliased);
    assert_int_equal(u.layer_count, 0);
    assert_int_equal(images_use(images, &principal_system, STR("debian"), &u, &e), -1);
    assert_int_equal(e.code, ERR_NOT_FOUND);

    import("app", "one");
    assert_int_equal(outcome.code, ERR_NONE);
    assert_int_equal(images_use(images, &principal_system, STR("old"), &u, &e), 0);
    assert_true(u.aliased);
    assert_int_equal(u.layer_count, 1);
    assert_true(strlen(u.layers[0]) <= 31);
}

static void a_held_layer_outlives_its_image(void **st)
{
    struct image_use u;
    struct err e = {0};
    char layer[ID_SIZE];

    (void)st;
    open_images();
    import("app", "one");
    turn_until_layers(1);
    assert_int_equal(images_use(images, &principal_system, STR("app:latest"), &u, &e), 0);
    (void)snprintf(layer, sizeof layer, "%s", u.layers[0]);
    forget("app");
    for (int i = 0; i < 20; i++)
        (void)uv_run(&g.loop, UV_RUN_NOWAIT);
    assert_int_equal(layers(), 1);
    /* A restart: the sandbox that is still there says so before the sweep. */
    images_close(images);
    (void)uv_run(&g.loop, UV_RUN_NOWAIT);
    images = images_free(images);
    open_images();
    images_hold(images, str_of(layer));
    images_sweep(images);
    for (int i = 0; i < 20; i++)
        (void)uv_run(&g.loop, UV_RUN_NOWAIT);
    assert_int_equal(layers(), 1);
    images_release(images, str_of(layer));
    turn_until_layers(0);
}

static void the_same_archive_is_one_layer(void **st)
{
    (void)st;
    open_images();
    import("a", "same");
    import("b", "same");
    turn_until_layers(1);
    forget("a");
    assert_int_equal(layers(), 1);
    forget("b");
    turn_until_layers(0);
}

static void a_lying_unpacker_is_not_believed(void **st)
{
    static const char *const bad[] = {"",
                                      "format=../x\n",
                                      "diff_id=sha256:x\n",
                                      "entries=-1\n",
                                      "bytes=99999999999999999999\n",
                                      "error=invalid it says no\n"};
    const char *good = report;

    (void)st;
    open_images();
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        report = bad[i];
        import("a", "x");
        report = good;
        if (outcome.code == ERR_NONE)
            fail_msg("report %zu was believed", i);
        turn_until_layers(0);
    }
}

static void limits_hold(void **st)
{
    struct image_import *m[2];
    struct image *i;
    struct err e = {0};
    const struct image_import_spec s = {.format = IMAGE_TAR, .consumed = consumed};

    (void)st;
    open_images();
    assert_int_equal(image_import_begin(images, &s, &me, done, NULL, &m[0], &i, &e), 0);
    assert_int_equal(image_import_begin(images, &s, &me, done, NULL, &m[1], &i, &e), 0);
    assert_int_equal(image_import_begin(images, &s, &me, done, NULL, &m[1], &i, &e), -1);
    assert_int_equal(e.code, ERR_LIMIT);
    image_import_abort(m[0]);
    assert_int_equal(outcome.code, ERR_CANCELLED);
    {
        AUTO(mem_free) char *big = xzalloc((1 << 20) + 1);

        image_import_write(m[1], str_make(big, (1 << 20) + 1));
        assert_int_equal(outcome.code, ERR_TOO_LARGE);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(names_aliases_and_use, setup, teardown),
        cmocka_unit_test_setup_teardown(a_held_layer_outlives_its_image, setup, teardown),
        cmocka_unit_test_setup_teardown(the_same_archive_is_one_layer, setup, teardown),
        cmocka_unit_test_setup_teardown(a_lying_unpacker_is_not_believed, setup, teardown),
        cmocka_unit_test_setup_teardown(limits_hold, setup, teardown),
    };

    return cmocka_run_group_tests_name("core_image", tests, NULL, NULL);
}
