/* Tests of Ed25519 with the vectors of RFC 8032, section 7.1. */
#include "proto/ed25519.h"

#include "base/enc.h"
#include "unit.h"

static void known_answers(void **state)
{
    static const struct {
        const char *seed, *key, *message, *signature;
    } v[] = {
        {"9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
         "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a", "",
         "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701"
         "cf9b"
         "46bd25bf5f0595bbe24655141438e7a100b"},
        {"4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
         "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c", "r",
         "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d"
         "0f11"
         "d8c387b2eaeb4302aeeb00d291612bb0c00"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(v); i++) {
        unsigned char signature[ED25519_SIGNATURE];
        char text[2 * ED25519_SIGNATURE + 1];
        struct ed25519 k;
        struct err e = {0};

        assert_int_equal(dec_hex(str_of(v[i].seed), k.seed, sizeof k.seed), 0);
        assert_int_equal(ed25519_of_seed(&k, &e), 0);
        enc_hex(k.public_key, sizeof k.public_key, text);
        assert_string_equal(text, v[i].key);
        assert_int_equal(ed25519_sign(&k, str_of(v[i].message), signature, &e), 0);
        enc_hex(signature, sizeof signature, text);
        assert_string_equal(text, v[i].signature);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(known_answers)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
