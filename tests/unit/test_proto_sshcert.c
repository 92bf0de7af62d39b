#include "proto/sshcert.h"

#include "unit.h"

#include "base/enc.h"

/* Made by ssh-keygen -t ed25519 -N '' -C vector; the second has the passphrase "secret". */
static const char private_key[] =
    "-----BEGIN OPENSSH PRIVATE KEY-----\n"
    "b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAAAMwAAAAtzc2gtZW\n"
    "QyNTUxOQAAACADNjrgMt5pObCBZQ8BxI6BTEj2edwxwGk/ZeiivsSPWgAAAJBJPwhDST8I\n"
    "QwAAAAtzc2gtZWQyNTUxOQAAACADNjrgMt5pObCBZQ8BxI6BTEj2edwxwGk/ZeiivsSPWg\n"
    "AAAECsFQQBIh+V2EcoIzOG5yOh7B3yzyj8EK+P6rteFsOiigM2OuAy3mk5sIFlDwHEjoFM\n"
    "SPZ53DHAaT9l6KK+xI9aAAAABnZlY3RvcgECAwQFBgc=\n"
    "-----END OPENSSH PRIVATE KEY-----\n";
static const char public_key[] =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAM2OuAy3mk5sIFlDwHEjoFMSPZ53DHAaT9l6KK+xI9a";
static const char locked_key[] =
    "-----BEGIN OPENSSH PRIVATE KEY-----\n"
    "b3BlbnNzaC1rZXktdjEAAAAACmFlczI1Ni1jdHIAAAAGYmNyeXB0AAAAGAAAABD2wT2gKP\n"
    "FzkqedGNh/DL57AAAAEAAAAAEAAAAzAAAAC3NzaC1lZDI1NTE5AAAAIFHTDeWHlbtgagry\n"
    "qCLR3v28/GHVRLAeVPlNK7GsZuaXAAAAkBe3LZZnOzTpZr/jJokSCcNS9bjBKuZ88G+iQt\n"
    "qOvO8Q+f0N28lWt+HYkikMO/7rcPRRYKQHkXts2u1Qs4N3LhoSwYGh0QAK6LqVBoznO3vl\n"
    "7LHltO3wdUb8WCsX2fp/SRdvaihupB/svEPtveUEoAJ6zPpwmoo/fOUw9NLTNL5zCTasiG\n"
    "1A+dQRL4y2xCdoog==\n"
    "-----END OPENSSH PRIVATE KEY-----\n";

static void a_key_of_ssh_keygen_is_read(void **state)
{
    AUTO(buf_done) struct buf line = {0};
    struct ssh_authority a;
    struct err e = {0};

    (void)state;
    assert_int_equal(ssh_authority_read(str_of(private_key), &a, &e), 0);
    ssh_put_public(&a, &line);
    assert_string_equal(buf_cstr(&line), public_key);
}

static void what_was_written_is_read_again(void **state)
{
    AUTO(buf_done) struct buf file = {0};
    struct ssh_authority a, b;
    struct err e = {0};

    (void)state;
    assert_int_equal(ssh_authority_make(&a, &e), 0);
    ssh_authority_write(&a, &file);
    assert_int_equal(ssh_authority_read(buf_str(&file), &b, &e), 0);
    assert_memory_equal(&a, &b, sizeof a);
}

static void every_damaged_file_is_refused(void **state)
{
    struct ssh_authority a;
    struct err e = {0};

    (void)state;
    assert_int_equal(ssh_authority_read(str_of(locked_key), &a, &e), -1);
    assert_non_null(strstr(e.msg, "passphrase"));
    for (size_t n = 0; n + 60 < sizeof private_key; n++)
        assert_int_equal(ssh_authority_read(str_make(private_key, n), &a, &e), -1);
}

static void keys_are_checked(void **state)
{
    static const char *const bad[] = {"",
                                      "ssh-ed25519",
                                      "ssh-dss AAAAB3NzaC1kc3MAAAA=",
                                      "ssh-ed25519 !!!!",
                                      "ssh-rsa AAAAC3NzaC1lZDI1NTE5AAAA", /* another kind inside */
                                      "no-pty ssh-ed25519 AAAA",
                                      "ssh-ed25519-cert-v01@openssh.com AAAA"};
    AUTO(buf_done) struct buf good = {0}, print = {0};
    struct err e = {0};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        AUTO(buf_done) struct buf blob = {0};

        assert_int_equal(ssh_key_read(str_of(bad[i]), &blob, &e), -1);
    }
    assert_int_equal(ssh_key_read(str_of(public_key), &good, &e), 0);
    ssh_put_fingerprint(buf_str(&good), &print);
    assert_string_equal(buf_cstr(&print), "SHA256:fN8tqjhxfPVEar+J5SN1DsoN40b9/XQ0tghHkfioWoU");
}

static void a_derived_key_is_its_labels_own(void **state)
{
    struct ssh_authority a = {.seed = "0123456789abcdef0123456789abcde"}, one, same, other;
    struct err e = {0};

    (void)state;
    assert_int_equal(ssh_authority_derive(&a, STR("one"), &one, &e), 0);
    assert_int_equal(ssh_authority_derive(&a, STR("one"), &same, &e), 0);
    assert_int_equal(ssh_authority_derive(&a, STR("other"), &other, &e), 0);
    assert_memory_equal(&one, &same, sizeof one);
    assert_memory_not_equal(one.seed, other.seed, sizeof one.seed);
    assert_memory_not_equal(one.seed, a.seed, sizeof one.seed);
}

static bool grants(bool forwarding, const char *extension)
{
    AUTO(buf_done) struct buf blob = {0}, line = {0}, cert = {0};
    struct ssh_authority a;
    struct err e = {0};
    struct str rest, kind, name = STR("me");

    assert_int_equal(ssh_authority_make(&a, &e), 0);
    ssh_put_public(&a, &line);
    assert_int_equal(ssh_key_read(buf_str(&line), &blob, &e), 0);
    buf_clear(&line);
    assert_int_equal(ssh_cert_make(&a, buf_str(&blob),
                                   &(struct ssh_cert_spec){.serial = 1,
                                                           .key_id = "x",
                                                           .principals = &name,
                                                           .principal_count = 1,
                                                           .valid_before_s = 1,
                                                           .forwarding = forwarding},
                                   &line, &e),
                     0);
    kind = str_cut(buf_str(&line), ' ', &rest);
    assert_true(str_eq_c(kind, "ssh-ed25519-cert-v01@openssh.com"));
    assert_int_equal(dec_base64(&cert, str_cut(rest, ' ', &rest)), 0);
    return memmem(buf_data(&cert), buf_len(&cert), extension, strlen(extension)) != NULL;
}

static void forwarding_is_granted_on_request_only(void **state)
{
    (void)state;
    assert_true(grants(false, "permit-pty"));
    assert_false(grants(false, "permit-port-forwarding"));
    assert_true(grants(true, "permit-pty"));
    assert_true(grants(true, "permit-port-forwarding"));
    assert_false(grants(true, "permit-agent-forwarding"));
}

static void a_list_names_its_serials(void **state)
{
    AUTO(buf_done) struct buf krl = {0}, none = {0};
    const uint64_t serials[] = {1, 0x0102030405060708};
    static const unsigned char end[] = {0, 0, 0, 0, 0, 0, 0, 1, 1, 2, 3, 4, 5, 6, 7, 8};
    struct ssh_authority a;
    struct err e = {0};

    (void)state;
    assert_int_equal(ssh_authority_make(&a, &e), 0);
    ssh_krl_make(&a, 7, 1000, serials, ARRAY_LEN(serials), &krl);
    ssh_krl_make(&a, 7, 1000, NULL, 0, &none);
    assert_memory_equal(buf_data(&krl), "SSHKRL\n", 8);
    assert_memory_equal(buf_data(&krl) + buf_len(&krl) - sizeof end, end, sizeof end);
    assert_int_equal(buf_len(&none), 8 + 4 + 3 * 8 + 4 + 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_key_of_ssh_keygen_is_read),
        cmocka_unit_test(what_was_written_is_read_again),
        cmocka_unit_test(every_damaged_file_is_refused),
        cmocka_unit_test(keys_are_checked),
        cmocka_unit_test(a_derived_key_is_its_labels_own),
        cmocka_unit_test(forwarding_is_granted_on_request_only),
        cmocka_unit_test(a_list_names_its_serials),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
