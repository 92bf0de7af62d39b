#include "init/within.h"

#include "unit.h"

#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char top[64], roots[192];

static struct str at(const char *name)
{
    static char path[PATH_MAX];

    (void)snprintf(path, sizeof path, "%s/%s", top, name);
    return str_of(path);
}

static int write_at(const char *name)
{
    struct err e = {0};
    int fd = within_open_write(&(struct within_write){.path = at(name),
                                                      .roots = str_of(roots),
                                                      .mode = 0644,
                                                      .parents = true,
                                                      .truncate = true},
                               &e);

    fd_close(fd);
    return fd >= 0 ? 0 : e.code == ERR_FORBIDDEN ? -EXDEV : -e.sys;
}

static bool is_there(const char *name)
{
    struct stat st;

    return lstat(at(name).p, &st) == 0;
}

static void files_are_made_within(void **state)
{
    (void)state;
    assert_int_equal(write_at("work/new"), 0);
    assert_int_equal(write_at("work/a/b/c"), 0);
    assert_int_equal(write_at("out/x"), 0);
    assert_int_equal(write_at("work/to-out/y"), 0); /* a link from one root into another */
    assert_true(is_there("out/y"));
}

static void nothing_is_made_outside(void **state)
{
    static const char *const names[] = {
        "else/x", "work2/x", "work/../else/x", "work/link/x", "work/link/a/b/x", "work/dangling",
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        assert_int_equal(write_at(names[i]), -EXDEV);
    assert_false(is_there("else/x") || is_there("else/a") || is_there("else/gone"));
}

static void what_is_outside_keeps_its_content(void **state)
{
    struct stat st;

    (void)state;
    assert_int_equal(write_at("work/kept"), -EXDEV);
    assert_int_equal(stat(at("else/kept").p, &st), 0);
    assert_int_equal(st.st_size, 4);
}

static int set_up(void **state)
{
    int fd;

    (void)state;
    (void)snprintf(top, sizeof top, "/tmp/within-XXXXXX");
    if (!mkdtemp(top))
        return -1;
    (void)snprintf(roots, sizeof roots, "%s/work:%s/out", top, top);
    for (const char *const *d = (const char *const[]){"work", "work2", "out", "else", NULL}; *d;
         d++)
        if (mkdir(at(*d).p, 0755) < 0)
            return -1;
    fd = open(at("else/kept").p, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0 || write(fd, "kept", 4) != 4)
        return -1;
    fd_close(fd);
    return symlink("../else", at("work/link").p) ||
           symlink("../else/gone", at("work/dangling").p) ||
           symlink("../out", at("work/to-out").p) || symlink("../else/kept", at("work/kept").p);
}

static int tear_down(void **state)
{
    AUTO(fd_close) int tmp = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct err e;

    (void)state;
    return path_remove_all(tmp, top + strlen("/tmp/"), &e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_are_made_within),
        cmocka_unit_test(nothing_is_made_outside),
        cmocka_unit_test(what_is_outside_keeps_its_content),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
