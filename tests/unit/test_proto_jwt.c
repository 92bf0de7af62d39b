#include "proto/jwt.h"

#include "base/buf.h"
#include "base/enc.h"
#include "proto/digest.h"
#include "unit.h"

#include <stdlib.h>

static char *token(const char *head, const char *claims, const char *key)
{
    struct buf b = {0};
    unsigned char mac[SHA256_SIZE];

    enc_base64url(&b, head, strlen(head));
    buf_add_char(&b, '.');
    enc_base64url(&b, claims, strlen(claims));
    hmac_sha256(str_of(key), buf_str(&b), mac);
    buf_add_char(&b, '.');
    enc_base64url(&b, mac, sizeof mac);
    return buf_steal(&b);
}

static int checked(const char *head, const char *claims, const char *key, struct jwt *ret)
{
    char *t = token(head, claims, key);
    struct err e;
    int r = jwt_check(str_of(t), STR("key"), 1000, ret, &e);

    free(t);
    return r;
}

#define HEAD "{\"typ\":\"JWT\",\"alg\":\"HS256\"}"
#define CLAIMS "{\"session_id\":\"sb_1\",\"exp\":1000}"

static void tokens(void **state)
{
    struct jwt t;
    struct err e;
    char *good = token(HEAD, CLAIMS, "key");

    (void)state;
    assert_int_equal(checked(HEAD, CLAIMS, "key", &t), 0);
    assert_string_equal(t.session, "sb_1");
    assert_int_equal(t.exp_s, 1000);
    assert_int_equal(checked(HEAD, CLAIMS, "other", &t), -1);
    assert_int_equal(checked("{\"alg\":\"none\"}", CLAIMS, "key", &t), -1);
    assert_int_equal(checked("{\"alg\":\"HS512\"}", CLAIMS, "key", &t), -1);
    assert_int_equal(checked("{}", CLAIMS, "key", &t), -1);
    assert_int_equal(checked("[]", CLAIMS, "key", &t), -1);
    assert_int_equal(checked(HEAD, "{\"session_id\":\"sb_1\",\"exp\":999}", "key", &t), -1);
    assert_int_equal(checked(HEAD, "{\"session_id\":\"sb_1\"}", "key", &t), -1);
    assert_int_equal(checked(HEAD, "{\"session_id\":\"sb_1\",\"exp\":\"2000\"}", "key", &t), -1);
    assert_int_equal(checked(HEAD, "{\"session_id\":\"\",\"exp\":2000}", "key", &t), -1);
    assert_int_equal(checked(HEAD, "{\"session_id\":7,\"exp\":2000}", "key", &t), -1);
    assert_int_equal(checked(HEAD, "{\"exp\":2000}", "key", &t), -1);
    for (size_t n = 0; n < strlen(good); n++)
        assert_int_equal(jwt_check(str_make(good, n), STR("key"), 1, &t, &e), -1);
    assert_int_equal(jwt_check(str_of(good), STR(""), 1, &t, &e), -1);
    free(good);
}

static void what_is_minted_is_good_until_its_end(void **state)
{
    struct jwt_claims c = {
        .session = STR("s"), .sandbox = STR("sb_1"), .hosts = STR("a.test,b.test"), .exp_s = 1000};
    AUTO(buf_done) struct buf one = {0}, two = {0}, claims = {0};
    struct str rest, part;
    struct jwt t;
    struct err e;

    (void)state;
    jwt_mint(&c, STR("key"), &one);
    assert_int_equal(jwt_check(buf_str(&one), STR("key"), 1000, &t, &e), 0);
    assert_string_equal(t.session, "s");
    assert_string_equal(t.sandbox, "sb_1");
    assert_int_equal(jwt_check(buf_str(&one), STR("key"), 1001, &t, &e), -1);
    assert_int_equal(jwt_check(buf_str(&one), STR("yek"), 1000, &t, &e), -1);
    (void)str_cut(buf_str(&one), '.', &rest);
    part = str_cut(rest, '.', &rest);
    assert_int_equal(dec_base64(&claims, part), 0);
    assert_string_equal(
        buf_cstr(&claims),
        "{\"iss\":\"sandbox-egress-control\",\"session_id\":\"s\",\"tenant_id\":null,"
        "\"allowed_hosts\":\"a.test,b.test\",\"exp\":1000,\"sandbox_id\":\"sb_1\"}");
    c.tenant = STR("t");
    buf_add_c(&two, "before ");
    jwt_mint(&c, STR("key"), &two);
    assert_int_equal(jwt_check(str_skip(buf_str(&two), 7), STR("key"), 1000, &t, &e), 0);
}

static void headers(void **state)
{
    static const char *const bad[] = {"",
                                      "Basic",
                                      "Basic ",
                                      "Bearer abc",
                                      "Basic ????",
                                      "Basic c2FuZGJveA==",
                                      "Basic c2FuZGJveDp4"};
    AUTO(buf_done) struct buf hold = {0};
    struct str t;
    struct err e;

    (void)state;
    assert_int_equal(jwt_from_basic(STR("basic c2FuZGJveDpqd3RfYS5iLmM="), &hold, &t, &e), 0);
    assert_true(str_eq_c(t, "a.b.c"));
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        AUTO(buf_done) struct buf b = {0};

        assert_int_equal(jwt_from_basic(str_of(bad[i]), &b, &t, &e), -1);
        assert_int_equal(e.code, ERR_UNAUTHENTICATED);
    }
    assert_int_equal(jwt_from_basic((struct str){0}, &hold, &t, &e), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tokens),
        cmocka_unit_test(what_is_minted_is_good_until_its_end),
        cmocka_unit_test(headers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
