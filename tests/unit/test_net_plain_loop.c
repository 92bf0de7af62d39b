#include "net/plain_loop.h"

#include "unit.h"

#include <dirent.h>
#include <sys/prctl.h>
#include <unistd.h>

static void it_has_no_ring_and_changes_no_other_thread(void **state)
{
    uv_loop_t loop;
    char target[256], path[300];
    struct dirent *entry;
    DIR *d;

    (void)state;
    assert_int_equal(plain_loop_init(&loop), 0);
    d = opendir("/proc/self/fd");
    assert_non_null(d);
    while ((entry = readdir(d))) {
        ssize_t n;

        (void)snprintf(path, sizeof path, "/proc/self/fd/%s", entry->d_name);
        n = readlink(path, target, sizeof target - 1);
        target[n > 0 ? n : 0] = '\0';
        assert_null(strstr(target, "io_uring"));
    }
    (void)closedir(d);
    assert_int_equal(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0), 0); /* newuidmap is setuid */
    assert_int_equal(prctl(PR_GET_SECCOMP, 0, 0, 0, 0), 0);
    assert_int_equal(uv_run(&loop, UV_RUN_NOWAIT), 0);
    assert_int_equal(uv_loop_close(&loop), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_has_no_ring_and_changes_no_other_thread),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
