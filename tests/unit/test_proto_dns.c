#include "proto/dns.h"

#include "unit.h"

#include <stdio.h>

#define HEAD "\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00"
static char asked[256];

static uint32_t address(void *arg, const char *name)
{
    (void)arg;
    (void)snprintf(asked, sizeof asked, "%s", name);
    return 0xc6120001;
}

static size_t answered(struct str query, uint8_t *to)
{
    asked[0] = '\0';
    return dns_answer(query, address, NULL, to);
}

static void a_name_has_one_address(void **state)
{
    const struct str q = STR(HEAD "\3WwW\4Test\0\0\1\0\1");
    uint8_t a[DNS_MESSAGE_MAX];
    size_t n = answered(q, a);

    (void)state;
    assert_int_equal(n, q.n + 16);
    assert_memory_equal(a, "\x12\x34\x81\x80\0\1\0\1\0\0\0\0", 12);
    assert_memory_equal(a + 12, q.p + 12, q.n - 12); /* with the capitals it was asked by */
    assert_memory_equal(a + q.n, "\xc0\x0c\0\1\0\1\0\0\0\x3c\0\4\xc6\x12\0\1", 16);
    assert_string_equal(asked, "www.test");
}

static void others_get_no_address(void **state)
{
    static const struct {
        struct str query;
        int code;
    } t[] = {
        {STR(HEAD "\1a\0\0\x1c\0\1"), 0}, /* AAAA */
        {STR(HEAD "\1a\0\0\x10\0\1"), 0}, /* TXT */
        {STR(HEAD "\1a\0\0\xff\0\1"), 0}, /* ANY */
        {STR(HEAD "\1a\0\0\1\0\3"), 5},   /* CHAOS */
        {STR(HEAD "\0\0\1\0\1"), 3},      /* the root */
        {STR(HEAD "\3a.b\0\0\1\0\1"), 3}, /* a dot inside a label */
        {STR(HEAD "\3a b\0\0\1\0\1"), 3},
        {STR(HEAD "\3"
                  "127"
                  "\1"
                  "1\0\0\1\0\1"),
         3},                               /* "127.1" */
        {STR(HEAD "\xc0\x0c\0\1\0\1"), 1}, /* a pointer to itself */
        {STR(HEAD "\5a\0\0\1\0\1"), 1},    /* a label past the end */
        {STR(HEAD "\1a\0\0\1"), 1},
        {STR(HEAD), 1},
        {STR("\0\0\x01\0\0\2\0\0\0\0\0\0\1a\0\0\1\0\1\1b\0\0\1\0\1"), 1}, /* two questions */
        {STR("\0\0\x28\0\0\1\0\0\0\0\0\0\1a\0\0\1\0\1"), 4},              /* UPDATE */
    };
    uint8_t a[DNS_MESSAGE_MAX];

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(t); i++) {
        size_t n = answered(t[i].query, a);

        assert_true(n >= 12);
        assert_int_equal(a[3] & 15, t[i].code);
        assert_int_equal(a[7], 0);
        assert_string_equal(asked, "");
    }
    assert_int_equal(answered(STR("short"), a), 0);
    assert_int_equal(answered(STR("\0\0\x81\0\0\1\0\0\0\0\0\0\1a\0\0\1\0\1"), a), 0);
}

/* Names of every length fit: the longest legal one and the first that is not. */
static void lengths(void **state)
{
    char q[600];
    uint8_t a[DNS_MESSAGE_MAX];

    (void)state;
    for (size_t labels = 1; labels < 140; labels++) {
        size_t n = 12, size;

        memcpy(q, HEAD, 12);
        for (size_t i = 0; i < labels; i++) {
            q[n++] = 1;
            q[n++] = 'a';
        }
        memcpy(q + n, "\0\0\1\0\1", 5);
        size = answered(str_make(q, n + 5), a);
        assert_true(size <= sizeof a);
        assert_int_equal(a[7], labels <= 127);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_name_has_one_address),
        cmocka_unit_test(others_get_no_address),
        cmocka_unit_test(lengths),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
