#include "cli/context.h"

#include "base/fd.h"
#include "base/mem.h"
#include "cli/verbs.h"
#include "proto/json.h"
#include "unit.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

static char dir[64];

static int setup(void **state)
{
    static const char *const names[] = {"HOLT_SERVER", "HOLT_TOKEN", "HOLT_CONTEXT", "HOLT_CACERT"};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        unsetenv(names[i]);
    (void)snprintf(dir, sizeof dir, "/tmp/holt-test-XXXXXX");
    assert_non_null(mkdtemp(dir));
    setenv("XDG_CONFIG_HOME", dir, 1);
    setenv("HOLT_STATE", dir, 1);
    return 0;
}

static void remove_file(const char *name)
{
    AUTO(mem_free) char *path = xasprintf("%s/%s", dir, name);

    (void)remove(path);
}

static int teardown(void **state)
{
    (void)state;
    remove_file("holt/contexts.json");
    remove_file("holt");
    remove_file("admin-token");
    return rmdir(dir);
}

static void add(const char *name, const char *url, bool use)
{
    struct cli c = {0};
    struct err e = {0};
    AUTO(json_decref)
    json_t *args = json_pack("{s:s,s:s,s:b}", "name", name, "url", url, "use", use);

    assert_int_equal(context_add_run(&c, NULL, args, &e), 0);
}

static struct target choose(const struct cli *c)
{
    struct target t = {0};
    struct err e = {0};

    assert_int_equal(target_choose(c, &t, &e), 0);
    return t;
}

static void the_file_is_readable_by_its_owner_alone(void **state)
{
    AUTO(mem_free) char *path = contexts_path();
    struct stat s;

    (void)state;
    setenv("HOLT_TOKEN", "t1", 1);
    add("one", "https://one.example", false);
    assert_int_equal(stat(path, &s), 0);
    assert_int_equal(s.st_mode & 07777, 0600);
    assert_int_equal(chmod(path, 0644), 0);
    add("two", "https://two.example", true);
    assert_int_equal(stat(path, &s), 0);
    assert_int_equal(s.st_mode & 07777, 0600);
}

static void the_current_context_is_used_with_its_own_token(void **state)
{
    struct cli c = {0};
    AUTO(target_done) struct target t = {0};

    (void)state;
    setenv("HOLT_TOKEN", "t1", 1);
    add("one", "https://one.example", false);
    setenv("HOLT_TOKEN", "t2", 1);
    add("two", "https://two.example", false);
    unsetenv("HOLT_TOKEN");
    t = choose(&c);
    assert_string_equal(t.server, "https://one.example"); /* the first became the current one */
    assert_string_equal(t.token, "t1");
    target_done(&t);
    setenv("HOLT_CONTEXT", "two", 1);
    t = choose(&c);
    assert_string_equal(t.token, "t2");
    target_done(&t);
    c.context = "one"; /* a flag is stronger than the environment */
    t = choose(&c);
    assert_string_equal(t.token, "t1");
}

static void a_token_does_not_follow_to_another_server(void **state)
{
    struct cli c = {.server = "https://elsewhere.example"};
    AUTO(mem_free) char *path = xasprintf("%s/admin-token", dir);
    AUTO(target_done) struct target t = {0};

    (void)state;
    setenv("HOLT_TOKEN", "t1", 1);
    add("one", "https://one.example", true);
    unsetenv("HOLT_TOKEN");
    assert_int_equal(file_replace(path, 0600, STR("admin\n")), 0);
    t = choose(&c);
    assert_null(t.token);
    target_done(&t);
    c.server = NULL;
    setenv("HOLT_SERVER", "http://127.0.0.1.example:80", 1);
    t = choose(&c);
    assert_null(t.token);
    target_done(&t);
    setenv("HOLT_SERVER", "http://127.0.0.1:9", 1);
    t = choose(&c);
    assert_string_equal(t.token, "admin"); /* this machine's */
}

static void without_anything_it_is_the_local_daemon(void **state)
{
    struct cli c = {0};
    AUTO(target_done) struct target t = {0};

    (void)state;
    t = choose(&c);
    assert_string_equal(t.server, CONTEXT_SERVER_DEFAULT);
    assert_null(t.token);
}

static void local_servers_are_told_from_others(void **state)
{
    (void)state;
    assert_true(server_is_local("http://127.0.0.1:8122"));
    assert_true(server_is_local("http://127.9.9.9"));
    assert_true(server_is_local("https://localhost/x"));
    assert_true(server_is_local("http://[::1]:80"));
    assert_true(server_is_local("unix:/run/x"));
    assert_false(server_is_local("http://127.0.0.1.example"));
    assert_false(server_is_local("http://localhost.example:1"));
    assert_false(server_is_local("http://[::1"));
    assert_false(server_is_local("http://[::10]:1"));
    assert_false(server_is_local("http://example/127.0.0.1"));
    assert_false(server_is_local("nonsense"));
}

static void mistakes_leave_the_file_alone(void **state)
{
    static const char *const bad[][2] = {
        {"", "http://h"},    {"a/b", "http://h"}, {"-x", "http://h"},      {"x", "ftp://h"},
        {"x", "http://u@h"}, {"x", "http://h:0"}, {"x", "http://h:99999"}, {"x", "unix:rel"},
        {"x", "http://"},    {"one", "http://h"}};
    struct cli c = {0};
    AUTO(json_decref) json_t *all = NULL;
    struct err e;

    (void)state;
    add("one", "https://one.example", false);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        AUTO(json_decref)
        json_t *args = json_pack("{s:s,s:s}", "name", bad[i][0], "url", bad[i][1]);

        assert_int_equal(context_add_run(&c, NULL, args, &e), -1);
    }
    assert_int_equal(e.code, ERR_CONFLICT); /* the last: it exists */
    assert_int_equal(contexts_read(&all, &e), 0);
    assert_int_equal(json_object_size(json_object_get(all, "contexts")), 1);
}

static void a_broken_file_is_named(void **state)
{
    static const char *const texts[] = {"{", "[]", "{\"contexts\":{\"a\":{}}}"};
    AUTO(mem_free) char *path = contexts_path();
    json_t *all;
    struct err e;

    (void)state;
    add("one", "https://one.example", false);
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        assert_int_equal(file_replace(path, 0600, str_of(texts[i])), 0);
        assert_int_equal(contexts_read(&all, &e), -1);
        assert_non_null(strstr(e.msg, "contexts.json"));
    }
}

static void use_and_rm_change_the_current_one(void **state)
{
    struct cli c = {0};
    struct err e = {0};
    AUTO(json_decref) json_t *two = json_pack("{s:s}", "name", "two"), *all = NULL;

    (void)state;
    add("one", "https://one.example", false);
    assert_int_equal(context_use_run(&c, NULL, two, &e), -1);
    assert_int_equal(err_table[e.code].exit, 2);
    add("two", "https://two.example", false);
    assert_int_equal(context_use_run(&c, NULL, two, &e), 0);
    assert_int_equal(context_rm_run(&c, NULL, two, &e), 0);
    assert_int_equal(context_rm_run(&c, NULL, two, &e), -1);
    assert_int_equal(contexts_read(&all, &e), 0);
    assert_true(json_is_null(json_object_get(all, "current")));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_file_is_readable_by_its_owner_alone),
        TEST(the_current_context_is_used_with_its_own_token),
        TEST(a_token_does_not_follow_to_another_server),
        TEST(without_anything_it_is_the_local_daemon),
        TEST(local_servers_are_told_from_others),
        TEST(mistakes_leave_the_file_alone),
        TEST(a_broken_file_is_named),
        TEST(use_and_rm_change_the_current_one),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
