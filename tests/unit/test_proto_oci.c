#include "proto/oci.h"

#include "unit.h"

#define D1 "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define D2 "sha256:bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define HEX "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define LAYER "application/vnd.oci.image.layer.v1.tar+gzip"

static void references(void **state)
{
    static const struct {
        const char *text, *host, *repository, *tag, *digest;
    } good[] = {
        {"ubuntu", "", "ubuntu", "latest", ""},
        {"ubuntu:22.04", "", "ubuntu", "22.04", ""},
        {"team/app", "", "team/app", "latest", ""},
        {"localhost/app", "localhost", "app", "latest", ""},
        {"localhost:5000/a/b__c:V1", "localhost:5000", "a/b__c", "V1", ""},
        {"r.example.org/a-b.c@" D1, "r.example.org", "a-b.c", "", D1},
        {"127.0.0.1:80/a:1@" D1, "127.0.0.1:80", "a", "1", D1},
    };
    static const char *const bad[] = {
        "",        "Ubuntu", "a:",        "a:b c",     "a//b",         "/a",        "a/",
        "a/../b",  "../a",   "a@sha256:", "a@" HEX,    "a:1/B",        "h:0/a",     "h:99999/a",
        "h:x/a",   "a___b",  "a._b",      "-a",        "a%2fb",        "h.x/a?b=c", "h.x/a#b",
        "u@h.x/a", "a\nb",   "a:-x",      "a@sha512:", "http://h/a:1", ".h.x/a",    "a\tb",
    };
    struct oci_ref r;
    struct err e;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        assert_int_equal(oci_ref_parse(str_of(good[i].text), &r, &e), 0);
        assert_string_equal(r.host, good[i].host);
        assert_string_equal(r.repository, good[i].repository);
        assert_string_equal(r.tag, good[i].tag);
        assert_string_equal(r.digest, good[i].digest);
    }
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        if (oci_ref_parse(str_of(bad[i]), &r, &e) == 0)
            fail_msg("'%s' was taken", bad[i]);
}

static void an_index_is_searched_by_platform_and_name(void **state)
{
    static const char doc[] =
        "{\"schemaVersion\":2,\"manifests\":["
        "{\"digest\":\"" D1
        "\",\"size\":1,\"platform\":{\"os\":\"linux\",\"architecture\":\"arm64\"}},"
        "{\"digest\":\"" D2
        "\",\"size\":2,\"platform\":{\"os\":\"linux\",\"architecture\":\"amd64\"},"
        "\"annotations\":{\"org.opencontainers.image.ref.name\":\"1.2\"}}]}";
    struct oci_want want = {.os = "linux", .arch = "amd64"};
    struct oci_blob b;
    enum oci_media kind;
    struct err e = {0};

    (void)state;
    assert_int_equal(oci_kind(str_of(doc), &kind, &e), 0);
    assert_int_equal(kind, OCI_INDEX);
    assert_int_equal(oci_index_pick(str_of(doc), &want, &b, &e), 0);
    assert_string_equal(b.digest, D2);
    assert_int_equal(b.size, 2);
    want.tag = STR("1.2");
    assert_int_equal(oci_index_pick(str_of(doc), &want, &b, &e), 0);
    want.tag = STR("1.3");
    assert_int_equal(oci_index_pick(str_of(doc), &want, &b, &e), -1);
    assert_int_equal(e.code, ERR_NOT_FOUND);
    want = (struct oci_want){.os = "linux", .arch = "s390x"};
    assert_int_equal(oci_index_pick(str_of(doc), &want, &b, &e), -1);
}

static void a_manifest_is_read(void **state)
{
    AUTO(oci_manifest_done) struct oci_manifest m = {0};
    struct err e = {0};

    (void)state;
    assert_int_equal(
        oci_manifest_read(STR("{\"config\":{\"digest\":\"" D1 "\",\"size\":3},\"layers\":["
                              "{\"mediaType\":\"" LAYER "\",\"digest\":\"" D2 "\",\"size\":4},"
                              "{\"mediaType\":\"" LAYER "\",\"digest\":\"" D1 "\",\"size\":5}]}"),
                          &m, &e),
        0);
    assert_string_equal(m.config.digest, D1);
    assert_int_equal(m.layer_count, 2);
    assert_string_equal(m.layers[0].digest, D2);
    assert_int_equal(m.layers[1].size, 5);
}

static void bad_manifests_are_refused(void **state)
{
    static const char *const bad[] = {
        "",
        "[]",
        "{}",
        "{\"config\":{\"digest\":\"" D1 "\",\"size\":3},\"layers\":[]}",
        "{\"config\":{\"digest\":\"" D1 "\",\"size\":3},\"layers\":{}}",
        "{\"config\":{\"digest\":\"" D1 "\",\"size\":-3},\"layers\":[{\"mediaType\":\"" LAYER
        "\",\"digest\":\"" D2 "\",\"size\":4}]}",
        "{\"config\":{\"digest\":\"" D1 "\",\"size\":3},\"layers\":[{\"mediaType\":\"" LAYER
        "\",\"digest\":\"sha256:../../x\",\"size\":4}]}",
        "{\"config\":{\"digest\":\"" D1 "\",\"size\":3},\"layers\":[{\"mediaType\":\"" LAYER
        "\",\"digest\":\"sha256:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\","
        "\"size\":4}]}",
        "{\"config\":{\"digest\":\"" D1 "\",\"size\":3},\"layers\":[{\"mediaType\":\"" LAYER
        "\",\"digest\":\"" D2 "\",\"size\":1.5}]}",
        "{\"config\":{\"digest\":\"" D1 "\",\"size\":3},\"layers\":[{\"mediaType\":\"" LAYER
        "\",\"digest\":\"" D2 "\",\"size\":9999999999999999}]}",
        "{\"config\":{\"digest\":\"" D1 "\",\"size\":3},\"layers\":[{\"mediaType\":\"text/plain\","
        "\"digest\":\"" D2 "\",\"size\":4}]}",
    };
    struct oci_manifest m;
    enum oci_media kind;
    struct err e;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        if (oci_manifest_read(str_of(bad[i]), &m, &e) == 0)
            fail_msg("number %zu was taken", i);
    assert_int_equal(oci_kind(STR("{\"manifests\":[],\"layers\":[]}"), &kind, &e), -1);
    assert_int_equal(oci_kind(STR("{\"schemaVersion\":1,\"layers\":[]}"), &kind, &e), -1);
}

static void a_config_is_read(void **state)
{
    AUTO(oci_config_done) struct oci_config c = {0};
    struct err e = {0};

    (void)state;
    assert_int_equal(oci_config_read(STR("{\"os\":\"linux\",\"architecture\":\"amd64\",\"config\":{"
                                         "\"Env\":[\"A=b\"],\"Cmd\":[1],\"User\":\"u\"},"
                                         "\"rootfs\":{\"diff_ids\":[\"" D1 "\"]}}"),
                                     &c, &e),
                     0);
    assert_string_equal(c.os, "linux");
    assert_int_equal(c.diff_count, 1);
    assert_string_equal(c.diff_ids[0], D1);
    assert_string_equal(c.defaults, "{\"env\":[\"A=b\"],\"user\":\"u\"}");
    oci_config_done(&c);
    assert_int_equal(oci_config_read(STR("{\"rootfs\":{\"diff_ids\":[\"x\"]}}"), &c, &e), -1);
    assert_int_equal(oci_config_read(STR("{\"rootfs\":{\"diff_ids\":[]}}"), &c, &e), -1);
    assert_int_equal(oci_config_read(STR("{}"), &c, &e), -1);
}

static void docker_save(void **state)
{
    static const char two[] =
        "[{\"Config\":\"" HEX ".json\",\"RepoTags\":[\"a:1\"],\"Layers\":[\"" HEX
        "/layer.tar\"]},{\"Config\":\"blobs/sha256/" HEX
        "\",\"RepoTags\":[\"b:1\"],\"Layers\":[\"blobs/sha256/" HEX "\"]}]";
    static const char *const bad[] = {
        "[{\"Config\":\"../../etc/passwd\",\"Layers\":[\"" HEX "/layer.tar\"]}]",
        "[{\"Config\":\"" HEX ".json\",\"Layers\":[\"/etc/passwd\"]}]",
        "[{\"Config\":\"" HEX ".json\",\"Layers\":[\"" HEX "/../layer.tar\"]}]",
        "[{\"Config\":\"" HEX ".json\",\"Layers\":[]}]",
        "[{\"Config\":\"" HEX ".json\"}]",
        "[]",
        "{}",
        "[1]",
    };
    AUTO(oci_docker_done) struct oci_docker d = {0};
    struct err e = {0};

    (void)state;
    assert_int_equal(oci_docker_read(str_of(two), STR(""), &d, &e), -1);
    assert_int_equal(oci_docker_read(str_of(two), STR("b:1"), &d, &e), 0);
    assert_string_equal(d.config, "blobs/sha256/" HEX);
    assert_string_equal(d.name, "b:1");
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct oci_docker no;

        if (oci_docker_read(str_of(bad[i]), STR(""), &no, &e) == 0)
            fail_msg("number %zu was taken", i);
    }
}

static void challenges(void **state)
{
    struct oci_challenge c;
    struct err e;

    (void)state;
    assert_int_equal(oci_challenge_parse(STR("Bearer realm=\"https://a/t\", service=\"s,x\" ,"
                                             "scope=\"repository:a/b:pull\", error=\"no\""),
                                         &c, &e),
                     1);
    assert_string_equal(c.realm, "https://a/t");
    assert_string_equal(c.service, "s,x");
    assert_string_equal(c.scope, "repository:a/b:pull");
    assert_int_equal(oci_challenge_parse(STR("Basic realm=\"x\""), &c, &e), 0);
    assert_int_equal(oci_challenge_parse(STR(""), &c, &e), 0);
    assert_int_equal(oci_challenge_parse(STR("Bearer service=\"x\""), &c, &e), -1);
    assert_int_equal(oci_challenge_parse(STR("Bearer realm=\"x"), &c, &e), -1);
    assert_int_equal(oci_challenge_parse(STR("Bearer realm=\"a\\\"b\""), &c, &e), -1);
}

static void tokens(void **state)
{
    AUTO(buf_done) struct buf b = {0};
    struct err e;

    (void)state;
    assert_int_equal(oci_token_read(STR("{\"access_token\":\"t1\"}"), &b, &e), 0);
    assert_string_equal(buf_cstr(&b), "t1");
    assert_int_equal(oci_token_read(STR("{\"token\":\"a\\r\\nX: y\"}"), &b, &e), -1);
    assert_int_equal(oci_token_read(STR("{\"token\":\"\"}"), &b, &e), -1);
    assert_int_equal(oci_token_read(STR("{}"), &b, &e), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(references),
        cmocka_unit_test(an_index_is_searched_by_platform_and_name),
        cmocka_unit_test(a_manifest_is_read),
        cmocka_unit_test(bad_manifests_are_refused),
        cmocka_unit_test(a_config_is_read),
        cmocka_unit_test(docker_save),
        cmocka_unit_test(challenges),
        cmocka_unit_test(tokens),
    };

    return cmocka_run_group_tests_name("proto_oci", tests, NULL, NULL);
}
