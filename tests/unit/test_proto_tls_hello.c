#include "proto/tls_hello.h"

#include "base/buf.h"
#include "unit.h"

#include <openssl/ssl.h>

/* OpenSSL's first flight for this name (NULL: without one). */
static void hello(const char *name, struct buf *to)
{
    SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
    SSL *ssl = SSL_new(ctx);
    BIO *in = BIO_new(BIO_s_mem()), *out = BIO_new(BIO_s_mem());
    char *p;
    long n;

    SSL_set_bio(ssl, in, out);
    if (name)
        SSL_set_tlsext_host_name(ssl, name);
    (void)SSL_connect(ssl);
    n = BIO_get_mem_data(out, &p);
    buf_add(to, p, (size_t)n);
    SSL_free(ssl);
    SSL_CTX_free(ctx);
}

static void the_name_is_found_however_it_is_cut(void **state)
{
    AUTO(buf_done) struct buf b = {0}, many = {0};
    char name[HOST_NAME_MAX_LEN + 1];

    (void)state;
    hello("Www.Example.ORG", &b);
    for (size_t n = 0; n < buf_len(&b); n++)
        assert_int_equal(tls_hello_name(str_make(buf_data(&b), n), name), TLS_HELLO_MORE);
    assert_int_equal(tls_hello_name(buf_str(&b), name), TLS_HELLO_NAMED);
    assert_string_equal(name, "www.example.org");
    /* In records of one byte each. */
    for (size_t i = 5; i < buf_len(&b); i++) {
        buf_add(&many, "\x16\x03\x01\x00\x01", 5);
        buf_add(&many, buf_data(&b) + i, 1);
    }
    assert_int_equal(tls_hello_name(buf_str(&many), name), TLS_HELLO_NAMED);
    buf_add_c(&b, "what follows is not looked at");
    assert_int_equal(tls_hello_name(buf_str(&b), name), TLS_HELLO_NAMED);
}

static void without_a_name(void **state)
{
    static const struct str not[] = {
        STR("GET / HTTP/1.1\r\n"),
        STR("\x80\x2e\x01\x03\x01"), /* SSLv2's */
        STR("\x16\x02\x01"),
        STR("\x16\x03\x01\x00\x00"),
        STR("\x16\x03\x01\xff\xff"),
        STR("\x15\x03\x01\x00\x02"),
        STR("\x16\x03\x01\x00\x04\x02\x00\x00\x00"),
        STR("\x16\x03\x01\x00\x04\x01\xff\xff\xff"),
        STR("\x16\x03\x01\x00\x04\x01\x00\x00\x00"),
    };
    AUTO(buf_done) struct buf b = {0};
    char name[HOST_NAME_MAX_LEN + 1];

    (void)state;
    hello(NULL, &b);
    assert_int_equal(tls_hello_name(buf_str(&b), name), TLS_HELLO_UNNAMED);
    for (size_t i = 0; i < ARRAY_LEN(not); i++)
        assert_int_equal(tls_hello_name(not[i], name), TLS_HELLO_NOT);
}

/* Any one byte of the extension turned: never another name than the bytes say, never a crash. */
static void a_damaged_name_is_none(void **state)
{
    AUTO(buf_done) struct buf b = {0};
    char name[HOST_NAME_MAX_LEN + 1], *at;

    (void)state;
    hello("abc.example", &b);
    at = memmem(buf_data(&b), buf_len(&b), "abc.example", 11);
    assert_non_null(at);
    at[3] = '\0';
    assert_int_equal(tls_hello_name(buf_str(&b), name), TLS_HELLO_NOT);
    at[3] = '.';
    at[-3]++; /* the kind of name */
    assert_int_equal(tls_hello_name(buf_str(&b), name), TLS_HELLO_NOT);
    at[-3]--;
    at[-1]--; /* its length */
    assert_int_equal(tls_hello_name(buf_str(&b), name), TLS_HELLO_NOT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_name_is_found_however_it_is_cut),
        cmocka_unit_test(without_a_name),
        cmocka_unit_test(a_damaged_name_is_none),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
