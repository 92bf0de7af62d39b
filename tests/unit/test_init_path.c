#include "init/path.h"

#include "unit.h"

#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char dir[64];

static struct str in_dir(const char *name)
{
    static char path[PATH_MAX];

    (void)snprintf(path, sizeof path, "%s/%s", dir, name);
    return str_of(path);
}

static void names_without_an_entry_are_refused(void **state)
{
    static const char *const names[] = {"", "/", ".", "..", "a/..", "a/.", "//"};
    char name[256];
    struct err e;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        assert_int_equal(path_parent(str_of(names[i]), name, &e), -1);
        assert_int_equal(e.code, ERR_INVALID);
    }
}

static void the_last_component_is_found(void **state)
{
    char name[256];
    struct err e;
    int fd = path_parent(in_dir("sub//"), name, &e);

    (void)state;
    assert_true(fd >= 0);
    assert_string_equal(name, "sub");
    fd_close(fd);
}

static void directories_are_made_and_removed(void **state)
{
    struct err e;
    struct stat st;
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    (void)state;
    assert_true(fd >= 0);
    assert_int_equal(path_make_all(in_dir("a//b/c/"), 0700, &e), 0);
    assert_int_equal(path_make_all(in_dir("a/b/c"), 0700, &e), 0);
    assert_int_equal(stat(in_dir("a/b/c").p, &st), 0);
    assert_int_equal(symlink(dir, in_dir("a/b/up").p), 0);
    assert_int_equal(path_remove_all(fd, "a", &e), 0);
    assert_int_equal(stat(dir, &st), 0);
    assert_int_equal(path_remove_all(fd, "a", &e), -1);
    assert_int_equal(e.code, ERR_NOT_FOUND);
    fd_close(fd);
}

static void nothing_leads_out_from_beneath(void **state)
{
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    (void)state;
    assert_true(fd >= 0);
    assert_int_equal(symlink("/etc", in_dir("etc").p), 0);
    assert_int_equal(path_beneath(fd, "..", O_PATH), -EXDEV);
    assert_int_equal(path_beneath(fd, "/etc", O_PATH), -EXDEV);
    assert_int_equal(path_beneath(fd, "etc/passwd", O_PATH), -EXDEV);
    assert_int_equal(path_beneath(fd, "none", O_PATH), -ENOENT);
    assert_int_equal(unlink(in_dir("etc").p), 0);
    fd_close(fd);
}

static void the_kernels_files_are_not_opened(void **state)
{
    struct err e;

    (void)state;
    assert_int_equal(path_open(STR("/proc/self/status"), O_RDONLY, 0, &e), -1);
    assert_int_equal(e.code, ERR_FORBIDDEN);
    assert_int_equal(path_open(STR("/proc"), O_PATH, 0, &e), -1);
    assert_int_equal(e.code, ERR_FORBIDDEN);
    assert_int_equal(path_open(STR("/proc/self/root/etc"), O_PATH, 0, &e), -1);
    assert_int_equal(e.sys, ELOOP);
}

static void only_regular_files_are_emptied(void **state)
{
    struct err e;
    struct stat st;
    int fd;

    (void)state;
    assert_int_equal(mkfifo(in_dir("fifo").p, 0600), 0);
    assert_int_equal(path_open_regular(in_dir("fifo"), O_RDONLY, 0, true, &e), -1);
    assert_int_equal(e.code, ERR_INVALID);
    assert_non_null(strstr(e.msg, "a FIFO"));
    assert_int_equal(path_open_regular(in_dir("."), O_RDONLY, 0, false, &e), -1);
    assert_non_null(strstr(e.msg, "a directory"));
    fd = path_open_regular(in_dir("file"), O_WRONLY | O_CREAT, 0640, true, &e);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "text", 4), 4);
    fd_close(fd);
    fd = path_open_regular(in_dir("file"), O_WRONLY, 0, false, &e);
    assert_true(fd >= 0 && fstat(fd, &st) == 0 && st.st_size == 4);
    fd_close(fd);
    fd = path_open_regular(in_dir("file"), O_WRONLY, 0, true, &e);
    assert_true(fd >= 0 && fstat(fd, &st) == 0 && st.st_size == 0);
    fd_close(fd);
}

static int make_dir(void **state)
{
    (void)state;
    (void)snprintf(dir, sizeof dir, "/tmp/holt-path-test.XXXXXX");
    return mkdtemp(dir) && mkdir(in_dir("sub").p, 0755) == 0 ? 0 : -1;
}

static int remove_dir(void **state)
{
    struct err e;

    (void)state;
    return path_remove_all(AT_FDCWD, dir, &e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_without_an_entry_are_refused),
        cmocka_unit_test(the_last_component_is_found),
        cmocka_unit_test(directories_are_made_and_removed),
        cmocka_unit_test(nothing_leads_out_from_beneath),
        cmocka_unit_test(the_kernels_files_are_not_opened),
        cmocka_unit_test(only_regular_files_are_emptied),
    };

    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
