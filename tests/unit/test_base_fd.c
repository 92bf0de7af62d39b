#include "base/fd.h"

#include "base/mem.h"
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static void a_file_is_replaced_whole(void **state)
{
    char dir[] = "/tmp/holt-fd-XXXXXX";
    AUTO(mem_free) char *deep = NULL, *path = NULL;
    AUTO(buf_done) struct buf b = {0}, small = {0};
    struct stat st;

    (void)state;
    assert_non_null(mkdtemp(dir));
    deep = xasprintf("%s/a/b", dir);
    path = xasprintf("%s/a/b/f", dir);
    assert_int_equal(dir_make_all(deep, 0700), 0);
    assert_int_equal(dir_make_all(deep, 0700), 0);
    assert_int_equal(file_replace(path, 0600, STR("old")), 0);
    assert_int_equal(dir_make_all(path, 0700), -ENOTDIR);
    assert_int_equal(file_replace(path, 0640, STR("the new content")), 0);
    assert_int_equal(file_read(path, 100, &b), 0);
    assert_string_equal(buf_cstr(&b), "the new content");
    assert_int_equal(file_read(path, 5, &small), -EFBIG);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0640);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(deep), 0); /* no temporary file is left */
    deep[strlen(deep) - 2] = '\0';
    assert_int_equal(rmdir(deep), 0);
    assert_int_equal(rmdir(dir), 0);
    assert_int_equal(file_replace(path, 0600, STR("x")), -ENOENT);
}

static void the_limit_of_files_is_raised(void **state)
{
    struct rlimit was, now;

    (void)state;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
    now = (struct rlimit){64, was.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &now), 0);
    assert_int_equal(fd_limit_raise(), was.rlim_max);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &now), 0);
    assert_int_equal(now.rlim_cur, was.rlim_max);
}

static void spares_are_there_when_nothing_else_is(void **state)
{
    struct rlimit was, now;
    struct fd_spares s = {0};
    int fd;

    (void)state;
    assert_true(fd_spares_fill(&s));
    assert_true(fd_spares_fill(&s)); /* as they are */
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
    now = (struct rlimit){(rlim_t)s.fd[FD_SPARES - 1] + 1, was.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &now), 0);
    while (dup(0) >= 0) /* below the limit may be holes */
        ;
    fd_spares_free(&s);
    fd = dup(0);
    assert_true(fd >= 0);
    assert_false(fd_spares_fill(&s));
    fd_close(fd);
    assert_true(fd_spares_fill(&s));
    fd_spares_free(&s);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_is_replaced_whole),
        cmocka_unit_test(the_limit_of_files_is_raised),
        cmocka_unit_test(spares_are_there_when_nothing_else_is),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
