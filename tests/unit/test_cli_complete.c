#include "cli/complete.h"

#include "unit.h"

static struct arena arena;
static struct cmd_set set;

static void expect(const char *const *words, const char *want)
{
    AUTO(buf_done) struct buf out = {0};
    size_t n = 0;

    while (words[n])
        n++;
    complete_words(&set, (char *const *)(uintptr_t)words, n, NULL, &out);
    for (char *p = buf_cstr(&out); *p; p++)
        if (*p == '\n')
            *p = ' ';
    assert_string_equal(buf_cstr(&out), want);
}
#define EXPECT(want, ...) expect((const char *const[]){__VA_ARGS__, NULL}, want)

static void verbs(void **state)
{
    (void)state;
    EXPECT(
        "status settings start stop stat signal session snapshot secret shell ssh sbx sandboxctl ",
        "s");
    EXPECT("token ", "tok");
    EXPECT("create ls inspect revoke whoami ", "token", "");
    EXPECT("revoke ", "token", "r");
    EXPECT("verify ", "-o", "json", "audit", "v");
    EXPECT("token ", "help", "tok");
    EXPECT("create ", "help", "token", "c");
    EXPECT("", "nonsense", "");
}

static void words_of_a_command_are_its_own(void **state)
{
    (void)state;
    EXPECT("--memory ", "run", "--mem");
    EXPECT("", "run", "ls", "--mem");
    EXPECT("--tty ", "exec", "build", "--tt");
    EXPECT("", "exec", "build", "--", "ls", "--tt");
}

static void flags_and_their_values(void **state)
{
    (void)state;
    EXPECT("--role --request-timeout ", "token", "create", "--r");
    EXPECT("--ttl --tenant ", "token", "create", "name", "--t");
    EXPECT("observer agent operator admin ", "token", "create", "--role", "");
    EXPECT("operator ", "token", "create", "--role", "=", "op");
    EXPECT("observer agent operator admin ", "token", "create", "--role", "=");
    EXPECT("table json yaml ", "-o", "");
    EXPECT("json ", "token", "ls", "-o", "j");
    EXPECT("--role=operator ", "token", "create", "--role=op"); /* one word in zsh and fish */
    EXPECT("--role=observer --role=agent --role=operator --role=admin ", "token", "create",
           "--role=");
    EXPECT("bash zsh fish ", "completion", "");
    EXPECT("", "token", "create", "");
    EXPECT("--follow ", "events", "--f");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verbs),
        cmocka_unit_test(words_of_a_command_are_its_own),
        cmocka_unit_test(flags_and_their_values),
    };
    int r;

    cmd_set_build(op_table, &arena, &set);
    r = cmocka_run_group_tests(tests, NULL, NULL);
    arena_done(&arena);
    return r;
}
