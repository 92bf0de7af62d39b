#include "proto/digest.h"

#include "base/enc.h"
#include "unit.h"

#include <pthread.h>

static void assert_hex(const unsigned char *sum, const char *want)
{
    char text[2 * SHA256_SIZE + 1];

    enc_hex(sum, SHA256_SIZE, text);
    assert_string_equal(text, want);
}

#define ABC "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" /* FIPS 180-4 */

static void known_answers(void **state)
{
    unsigned char sum[SHA256_SIZE];

    (void)state;
    sha256(STR("abc"), sum);
    assert_hex(sum, ABC);
    sha256(STR(""), sum);
    assert_hex(sum, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    hmac_sha256(STR("Jefe"), STR("what do ya want for nothing?"), sum); /* RFC 4231, case 2 */
    assert_hex(sum, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
}

static void parts_are_the_same_as_the_whole(void **state)
{
    struct sha256_state *s = sha256_new();
    unsigned char sum[SHA256_SIZE];

    (void)state;
    for (int round = 0; round < 2; round++) { /* it starts anew after its end */
        sha256_add(s, "a", 1);
        sha256_add(s, "bc", 2);
        sha256_end(s, sum);
        assert_hex(sum, ABC);
    }
    sha256_free(s);
    sha256_free(NULL);
}

static void *hash_abc(void *to)
{
    sha256(STR("abc"), to);
    return NULL;
}

/* LeakSanitizer sees a state that outlives its thread. */
static void each_thread_frees_its_state(void **state)
{
    unsigned char sums[8][SHA256_SIZE];
    pthread_t threads[8];

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(threads); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, hash_abc, sums[i]), 0);
    for (size_t i = 0; i < ARRAY_LEN(threads); i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_hex(sums[i], ABC);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_answers),
        cmocka_unit_test(parts_are_the_same_as_the_whole),
        cmocka_unit_test(each_thread_frees_its_state),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
