#include "cli/doctor.h"
#include "cli/doctor_try.h"

#include "base/fd.h"
#include "base/launch.h"
#include "unit.h"

#include <errno.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void all_is_well(int report)
{
    (void)report;
}

static void fails(int report)
{
    try_fail(report, "mount", EPERM);
}

static void dies(int report)
{
    (void)report;
    _exit(7);
}

static void a_try_tells_how_far_it_came(void **state)
{
    struct try_result r;

    (void)state;
    try_run(all_is_well, &r);
    assert_int_equal(r.sys, 0);
    try_run(fails, &r);
    assert_int_equal(r.sys, EPERM);
    assert_string_equal(r.step, "mount");
    try_run(dies, &r);
    assert_int_equal(r.sys, EIO);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* no child is left */
    assert_int_equal(errno, ECHILD);
}

static int setup(void **state)
{
    static char dir[64];

    (void)snprintf(dir, sizeof dir, "/tmp/holt-test-XXXXXX");
    *state = mkdtemp(dir);
    return chdir(dir);
}

static int teardown(void **state)
{
    (void)unlink("f");
    return chdir("/") < 0 ? -1 : rmdir(*state);
}

static void numbers_come_from_files_with_one_number(void **state)
{
    static const struct {
        const char *text;
        int64_t want;
    } rows[] = {{"12\n", 12}, {"0", 0}, {"", -1}, {"max\n", -1}, {"1 2\n", -1}};

    (void)state;
    assert_int_equal(read_number("f"), -1);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        assert_int_equal(file_replace("f", 0600, str_of(rows[i].text)), 0);
        assert_int_equal(read_number("f"), rows[i].want);
    }
}

static void programs_are_found_when_they_can_be_run(void **state)
{
    char path[256];

    setenv("PATH", *state, 1);
    assert_false(find_program("f", path, sizeof path));
    assert_int_equal(file_replace("f", 0600, STR("")), 0);
    assert_false(find_program("f", path, sizeof path));
    assert_int_equal(chmod("f", 0700), 0);
    assert_true(find_program("f", path, sizeof path));
    setenv("PATH", "::", 1);
    assert_false(
        find_program("f", path, sizeof path)); /* an empty entry is not the current folder */
}

static void every_probe_answers_in_words(void **state)
{
    static enum check_state (*const probes[])(struct finding *) = {
        probe_kernel, probe_userns, probe_apparmor,    probe_overlay,    probe_idmap,
        probe_pidfd,  probe_clone3, probe_seccomp,     probe_landlock,   probe_netns,
        probe_nft,    probe_cgroup, probe_controllers, probe_delegation, probe_cgroup_kill,
        probe_subids, probe_tun,    probe_fds,         probe_disk,
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(probes); i++) {
        struct finding f = {0};

        assert_in_range(probes[i](&f), CHECK_OK, CHECK_MISSING);
        assert_true(f.detail[0] != '\0');
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_try_tells_how_far_it_came),
        cmocka_unit_test_setup_teardown(numbers_come_from_files_with_one_number, setup, teardown),
        cmocka_unit_test_setup_teardown(programs_are_found_when_they_can_be_run, setup, teardown),
        cmocka_unit_test(every_probe_answers_in_words),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
