/* The forms of secrets: each is found in a text, and what only looks like one is not. */
#include "core/playbook/generate.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define A16 "ABCDEFGH12345678"
#define A36 "abcdefghijklmnopqrstuvwxyz0123456789"

static void each_form_is_found(void **state)
{
    static const struct {
        const char *text, *what;
    } found[] = {
        {"id AKIA" A16 "\n", "an AWS access key"},
        {"\"ASIA" A16 "\"", "an AWS access key"},
        {"ghp_" A36, "a GitHub token"},
        {"x: gho_" A36, "a GitHub token"},
        {"x=ghs_" A36, "a GitHub token"},
        {"github_pat_" A36 "_more", "a GitHub token"},
        {"glpat-" A16 "-_ab", "a GitLab token"},
        {"xoxb-123456789012-1234567", "a Slack token"},
        {"xoxp-123456789012-1234567", "a Slack token"},
        {"sk_live_" A36, "a Stripe key"},
        {"sk-ant-" A36, "an API key"},
        {"sk-proj-" A36, "an API key"},
        {"AIza" A36, "a Google API key"},
        {"npm_" A36, "an npm token"},
        {"pypi-AgEIcHlwaS5vcmc" A36 A16, "a PyPI token"},
        {"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abcdefghijklm", "a JSON web token"},
        {"holt_" A36, "a token of holt"},
        {"a\n-----BEGIN RSA PRIVATE KEY-----\n", "a private key"},
        {"-----BEGIN CERTIFICATE-----\n-----BEGIN PRIVATE KEY-----\n", "a private key"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(found); i++) {
        const char *what = secret_in_text(str_of(found[i].text));

        if (!what)
            fail_msg("not found: %s", found[i].text);
        assert_string_equal(what, found[i].what);
    }
}

static void what_only_looks_like_one_is_not(void **state)
{
    static const char *const none[] = {
        "",
        "AKIA",
        "AKIAabcdefgh12345678",
        "xAKIA" A16,
        "ghp_short",
        "my_ghp_" A36,
        "-----BEGIN CERTIFICATE-----\nMIIB",
        "-----BEGIN PUBLIC KEY-----",
        "-----BEGIN ",
        "eyJhbGciOiJ",
        "npm_config_registry=https://registry.example.org/abcdefghijklmnop",
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(none); i++)
        if (secret_in_text(str_of(none[i])))
            fail_msg("found in: %s", none[i]);
    assert_null(secret_in_text((struct str){0}));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_form_is_found),
                                       cmocka_unit_test(what_only_looks_like_one_is_not)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
