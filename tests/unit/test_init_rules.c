#include "init/rules.h"

#include "base/fd.h"
#include "unit.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

/* Path rules: which rights a place has, in one policy and in several. */

struct one_rule {
    uint8_t layer, kind;
    const char *text;
};

/* As holtd sends them: encoded and decoded. */
static void set(const struct one_rule *rules, size_t n)
{
    static uint8_t bytes[GUEST_HEAD + GUEST_PAYLOAD_MAX];
    struct guest_rule_row rows[32];
    struct wire_out o = {.p = bytes, .size = sizeof bytes};
    struct guest_msg m = {.type = GUEST_RULES}, back;
    struct guest_frame f;
    struct err e = {0};
    size_t used;

    for (size_t i = 0; i < n; i++)
        rows[i] = (struct guest_rule_row){rules[i].layer, rules[i].kind, str_of(rules[i].text)};
    m.u.rules.rows = (struct wire_rows){.count = (uint32_t)n, .items = rows};
    assert_int_equal(guest_encode(&m, GUEST_HOST, &o, &e), 0);
    assert_int_equal(guest_parse(str_make(bytes, o.n), GUEST_HOST, &f, &used, &e), 1);
    assert_int_equal(guest_decode(&f, GUEST_HOST, &back, &e), 0);
    rules_set(&back.u.rules);
}
#define SET(...)                                                                                   \
    set((const struct one_rule[]){__VA_ARGS__}, ARRAY_LEN(((const struct one_rule[]){__VA_ARGS__})))

static void assert_rights(const char *path, unsigned at, unsigned throughout)
{
    assert_int_equal(rules_at(0, str_of(path)), at);
    assert_int_equal(rules_throughout(0, str_of(path)), throughout);
}

static void deny_wins(void **state)
{
    (void)state;
    SET({0, GUEST_RULE_NAME, "p"}, {0, GUEST_RULE_PATH_DENY, "/nosuch/deny"},
        {0, GUEST_RULE_PATH_ALLOW, "/nosuch"}, {0, GUEST_RULE_WRITE_DENY, "/nosuch/ro"});
    assert_rights("/nosuch", RULES_ALL, 0);
    assert_rights("/nosuch/a", RULES_ALL, RULES_ALL);
    assert_rights("/nosuch/deny", 0, 0);
    assert_rights("/nosuch/deny/x", 0, 0);
    assert_rights("/nosuch/denying", RULES_ALL, RULES_ALL); /* a prefix ends at a '/' */
    assert_rights("/nosuch/ro/x", RULES_READ, RULES_READ);
    assert_rights("/other", 0, 0);
    assert_rights("/", 0, 0);
    assert_rights("/usr/bin", RULES_READ, RULES_READ); /* nothing runs without */
    assert_rights("/dev/null", RULES_ALL, RULES_ALL);
    assert_true(rules_differ_below(0, STR("/")) && rules_differ_below(0, STR("/nosuch")));
    assert_false(rules_differ_below(0, STR("/nosuch/deny")));
}

static void without_an_allow_list_the_rest_is_free(void **state)
{
    (void)state;
    SET({0, GUEST_RULE_NAME, "p"}, {0, GUEST_RULE_PATH_DENY, "/nosuch"});
    assert_rights("/", RULES_ALL, 0);
    assert_rights("/tmp", RULES_ALL, RULES_ALL);
    SET({0, GUEST_RULE_NAME, "p"}, {0, GUEST_RULE_WRITE_ALLOW, "/nosuch"});
    assert_rights("/tmp", RULES_READ, RULES_READ);
    assert_rights("/nosuch/x", RULES_ALL, RULES_ALL);
    SET({0, GUEST_RULE_NAME, "p"}, {0, GUEST_RULE_PATH_DENY, "/"});
    assert_rights("/usr/bin/ls", 0, 0);
    rules_set(&(struct guest_rules){0});
    assert_false(rules_any());
}

static void links_in_denied_paths_are_followed(void **state)
{
    char dir[] = "/tmp/rules.XXXXXX", target[64], link[64], below[64];

    (void)state;
    assert_non_null(mkdtemp(dir));
    (void)snprintf(target, sizeof target, "%s/real", dir);
    (void)snprintf(link, sizeof link, "%s/link", dir);
    (void)snprintf(below, sizeof below, "%s/link/x/y", dir);
    assert_int_equal(mkdir(target, 0700), 0);
    assert_int_equal(symlink(target, link), 0);
    SET({0, GUEST_RULE_NAME, "p"}, {0, GUEST_RULE_PATH_DENY, link});
    assert_rights(target, 0, 0);
    assert_rights(link, 0, 0); /* nor may the link be replaced */
    SET({0, GUEST_RULE_NAME, "p"}, {0, GUEST_RULE_PATH_DENY, below}); /* it need not exist */
    (void)snprintf(below, sizeof below, "%s/real/x/y/z", dir);
    assert_rights(below, 0, 0);
    assert_rights(target, RULES_ALL, 0);
    /* what is allowed follows none: a command could have put it there */
    SET({0, GUEST_RULE_NAME, "p"}, {0, GUEST_RULE_PATH_ALLOW, link});
    assert_rights(target, 0, 0);
    (void)unlink(link);
    (void)rmdir(target);
    (void)rmdir(dir);
}

static void every_layer_must_allow(void **state)
{
    AUTO(fd_close) int fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    struct err e = {0};

    (void)state;
    SET({0, GUEST_RULE_NAME, "one"}, {0, GUEST_RULE_PATH_DENY, "/nosuch/a"},
        {1, GUEST_RULE_NAME, "two"}, {1, GUEST_RULE_WRITE_DENY, "/nosuch/b"});
    assert_int_equal(rules_layers(), 2);
    assert_int_equal(rules_check_entry(fd, "tmp", RULES_ALL, &e), 0);
    assert_int_equal(rules_check_tree(fd, "nosuch", RULES_READ, &e), -1);
    assert_non_null(strstr(e.msg, "policy 'one'"));
    assert_non_null(strstr(e.msg, "paths_deny /nosuch/a"));
    assert_int_equal(rules_check_entry(fd, "nosuch", RULES_ALL, &e), 0);
    SET({0, GUEST_RULE_NAME, "one"}, {1, GUEST_RULE_NAME, "two"},
        {1, GUEST_RULE_WRITE_DENY, "/nosuch"});
    assert_int_equal(rules_check_entry(fd, "nosuch", RULES_READ, &e), 0);
    assert_int_equal(rules_check_entry(fd, "nosuch", RULES_WRITE, &e), -1);
    assert_int_equal(e.code, ERR_FORBIDDEN);
    assert_non_null(strstr(e.msg, "policy 'two'"));
    assert_non_null(strstr(e.hint, "holt policy update two"));
    rules_set(&(struct guest_rules){0});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(deny_wins),
        cmocka_unit_test(without_an_allow_list_the_rest_is_free),
        cmocka_unit_test(links_in_denied_paths_are_followed),
        cmocka_unit_test(every_layer_must_allow),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
