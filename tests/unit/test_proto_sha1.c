#include "proto/sha1.h"

#include "base/enc.h"
#include "unit.h"

#include <openssl/evp.h>

/* The examples of FIPS 180-4, and every length around the block's borders against OpenSSL. */
static void hashes(void **state)
{
    unsigned char got[SHA1_SIZE], want[EVP_MAX_MD_SIZE];
    char text[2 * SHA1_SIZE + 1], data[300];
    unsigned n;

    (void)state;
    sha1(STR("abc"), got);
    enc_hex(got, sizeof got, text);
    assert_string_equal(text, "a9993e364706816aba3e25717850c26c9cd0d89d");
    sha1((struct str){0}, got);
    enc_hex(got, sizeof got, text);
    assert_string_equal(text, "da39a3ee5e6b4b0d3255bfef95601890afd80709");
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (char)(i * 7);
    for (size_t i = 0; i <= sizeof data; i++) {
        sha1(str_make(data, i), got);
        assert_int_equal(EVP_Digest(data, i, want, &n, EVP_sha1(), NULL), 1);
        assert_memory_equal(got, want, SHA1_SIZE);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(hashes)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
