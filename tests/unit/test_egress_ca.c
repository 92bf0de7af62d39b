#include "egress/ca.h"

#include "base/clock.h"
#include "proto/x509.h"
#include "unit.h"

#include <openssl/x509v3.h>

static struct host named(const char *name)
{
    struct host h;
    struct err e;

    assert_int_equal(host_parse(str_of(name), &h, &e), 0);
    return h;
}

static void set(const char *name)
{
    AUTO(buf_done) struct buf cert = {0}, key = {0};
    struct err e = {0};

    if (x509_make_authority(name, 30, &cert, &key, &e) < 0 ||
        ca_set(buf_str(&cert), buf_str(&key), &e) < 0)
        fail_msg("%s", e.msg);
}

static void each_name_has_its_leaf(void **state)
{
    struct host a = named("api.example.com"), b = named("xn--bcher-kva.example"),
                ip = named("192.0.2.7");
    SSL_CTX *one, *again, *two, *three;
    struct err e = {0};
    const X509 *x;

    (void)state;
    assert_int_equal(ca_context(&a, &one, &e), -1);
    assert_false(ca_is_there());
    set("holt");
    assert_true(ca_is_there());
    assert_int_equal(ca_context(&a, &one, &e), 0);
    assert_int_equal(ca_context(&a, &again, &e), 0);
    assert_ptr_equal(one, again);
    assert_int_equal(ca_context(&b, &two, &e), 0);
    assert_ptr_not_equal(one, two);
    x = SSL_CTX_get0_certificate(one);
    assert_int_equal(X509_check_host((X509 *)(uintptr_t)x, "api.example.com", 0, 0, NULL), 1);
    assert_int_equal(X509_check_host((X509 *)(uintptr_t)x, "example.com", 0, 0, NULL), 0);
    assert_int_equal(X509_check_ca((X509 *)(uintptr_t)x), 0);
    assert_int_equal(ca_context(&ip, &three, &e), 0);
    x = SSL_CTX_get0_certificate(three);
    assert_int_equal(X509_check_ip_asc((X509 *)(uintptr_t)x, "192.0.2.7", 0), 1);
    ca_forget();
}

static void leaves_are_bounded_and_made_anew(void **state)
{
    struct clock_fake now = {.wall_ms = clock_wall_ms(), .mono_ns = clock_mono_ns()};
    struct host first = named("first.example");
    SSL_CTX *one, *other;
    const ASN1_TIME *end;
    struct err e = {0};

    (void)state;
    clock_set_fake(&now);
    set("holt");
    assert_int_equal(ca_context(&first, &one, &e), 0);
    SSL_CTX_up_ref(one);
    end = X509_get0_notAfter(SSL_CTX_get0_certificate(one));
    assert_int_equal(ASN1_TIME_cmp_time_t(end, (time_t)(now.wall_ms / 1000 + 86401)), -1);
    now.wall_ms += 13 * 3600 * 1000LL;
    clock_set_fake(&now);
    assert_int_equal(ca_context(&first, &other, &e), 0);
    assert_ptr_not_equal(one, other);
    SSL_CTX_free(one);
    SSL_CTX_up_ref(other);
    for (int i = 0; i < 300; i++) {
        char name[32];
        struct host h;

        now.mono_ns += 1000000;
        clock_set_fake(&now);
        (void)snprintf(name, sizeof name, "h%d.example", i);
        h = named(name);
        assert_int_equal(ca_context(&h, &one, &e), 0);
    }
    assert_int_equal(ca_context(&first, &one, &e), 0);
    assert_ptr_not_equal(one, other); /* the longest unused gave way */
    SSL_CTX_free(other);
    ca_forget();
    clock_set_fake(NULL);
}

static void what_is_no_authority(void **state)
{
    AUTO(buf_done) struct buf cert = {0}, key = {0}, cert2 = {0}, key2 = {0};
    struct err e = {0};

    (void)state;
    assert_int_equal(ca_set(STR("x"), STR("y"), &e), -1);
    assert_int_equal(x509_make_authority("a", 1, &cert, &key, &e), 0);
    assert_int_equal(x509_make_authority("b", 1, &cert2, &key2, &e), 0);
    assert_int_equal(ca_set(buf_str(&cert), buf_str(&key2), &e), -1);
    assert_false(ca_is_there());
    assert_int_equal(ca_set(buf_str(&cert), buf_str(&key), &e), 0);
    assert_int_equal(ca_set(STR("x"), STR("y"), &e), -1);
    assert_true(ca_is_there()); /* what was there stays */
    ca_forget();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_name_has_its_leaf),
        cmocka_unit_test(leaves_are_bounded_and_made_anew),
        cmocka_unit_test(what_is_no_authority),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
