#include "core/network/authority.h"

#include "base/fd.h"
#include "base/mem.h"
#include "core/keyfile.h"
#include "proto/x509.h"
#include "unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char dir[64];

static const char *at(const char *name)
{
    static char path[128];

    (void)snprintf(path, sizeof path, "%s/%s", dir, name);
    return path;
}

static int setup(void **state)
{
    (void)state;
    (void)snprintf(dir, sizeof dir, "/tmp/holt-authority-XXXXXX");
    return mkdtemp(dir) ? 0 : -1;
}

static int teardown(void **state)
{
    static const char *const names[] = {"ca.key", "ca.crt", "k", "l"};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        (void)unlink(at(names[i]));
    return rmdir(dir);
}

static unsigned mode_of(const char *name)
{
    struct stat st;

    assert_int_equal(stat(at(name), &st), 0);
    return st.st_mode & 07777;
}

static void it_is_made_once(void **state)
{
    struct authority one = {0}, two = {0};
    struct err e = {0};

    (void)state;
    assert_int_equal(authority_open(dir, "a-node", &one, &e), 0);
    assert_int_equal(mode_of("ca.key"), 0600);
    assert_int_equal(mode_of("ca.crt"), 0644);
    assert_int_equal(x509_check_authority(buf_str(&one.cert), buf_str(&one.key), &e), 0);
    assert_int_equal(authority_open(dir, "another", &two, &e), 0);
    assert_string_equal(buf_cstr(&one.cert), buf_cstr(&two.cert));
    assert_string_equal(buf_cstr(&one.key), buf_cstr(&two.key));
    authority_done(&one);
    authority_done(&two);
}

static void a_key_that_others_may_read_is_refused(void **state)
{
    struct authority a = {0};
    struct err e = {0};

    (void)state;
    assert_int_equal(authority_open(dir, "node", &a, &e), 0);
    authority_done(&a);
    assert_int_equal(chmod(at("ca.key"), 0640), 0);
    assert_int_equal(authority_open(dir, "node", &a, &e), -1);
    assert_int_equal(e.code, ERR_FORBIDDEN);
    assert_non_null(strstr(e.msg, "0640"));
    assert_non_null(strstr(e.hint, "chmod 600"));
}

static void a_certificate_without_its_key_is_refused(void **state)
{
    struct authority a = {0}, b = {0};
    struct err e = {0};

    (void)state;
    assert_int_equal(authority_open(dir, "node", &a, &e), 0);
    authority_done(&a);
    assert_int_equal(unlink(at("ca.key")), 0);
    assert_int_equal(authority_open(dir, "node", &a, &e), -1);
    assert_non_null(strstr(e.hint, "remove both"));

    assert_int_equal(x509_make_authority("other", 1, &b.cert, &b.key, &e), 0);
    assert_int_equal(keyfile_write(at("ca.key"), buf_str(&b.key), &e), 0);
    assert_int_equal(authority_open(dir, "node", &a, &e), -1);
    assert_non_null(strstr(e.msg, "the key does not belong to the certificate"));
    authority_done(&b);
}

/* Dying between the two files: nothing was signed yet. */
static void a_key_without_a_certificate_is_made_anew(void **state)
{
    struct authority a = {0};
    struct err e = {0};

    (void)state;
    assert_int_equal(keyfile_write(at("ca.key"), STR("half"), &e), 0);
    assert_int_equal(authority_open(dir, "node", &a, &e), 0);
    authority_done(&a);
    assert_int_equal(authority_open(dir, "node", &a, &e), 0);
    authority_done(&a);
}

static void key_files_are_plain(void **state)
{
    AUTO(buf_done) struct buf text = {0};
    struct err e = {0};

    (void)state;
    assert_int_equal(keyfile_read(at("k"), 16, &text, &e), 0);
    assert_int_equal(keyfile_write(at("k"), STR("0123"), &e), 0);
    assert_int_equal(mode_of("k"), 0600);
    assert_int_equal(keyfile_read(at("k"), 16, &text, &e), 1);
    assert_string_equal(buf_cstr(&text), "0123");
    assert_int_equal(keyfile_read(at("k"), 3, &text, &e), -1);
    assert_int_equal(symlinkat("k", AT_FDCWD, at("l")), 0);
    assert_int_equal(keyfile_read(at("l"), 16, &text, &e), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(it_is_made_once, setup, teardown),
        cmocka_unit_test_setup_teardown(a_key_that_others_may_read_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(a_certificate_without_its_key_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(a_key_without_a_certificate_is_made_anew, setup, teardown),
        cmocka_unit_test_setup_teardown(key_files_are_plain, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
