#include "cli/habits.h"

#include "cli/args.h"
#include "unit.h"

static struct arena arena;
static struct cmd_set set;

/* One word of a comma-separated list after the other. */
static bool next_word(struct str *rest, char *to, size_t size)
{
    struct str word = str_cut(*rest, ',', rest);

    (void)snprintf(to, size, STR_FMT, STR_ARG(word));
    return word.n > 0;
}

/* A hint for a flag that exists is never seen; one for a verb that does not exist neither. */
static void every_habit_is_of_a_verb_and_no_flag_of_it(void **state)
{
    (void)state;
    for (size_t i = 0; i < habit_count; i++) {
        struct str verbs = str_of(habits[i].verbs);
        char verb[32], flag[32];

        while (next_word(&verbs, verb, sizeof verb)) {
            const struct cmd *cmd = cmd_set_find(&set, verb);
            struct str flags = str_of(habits[i].flags);

            assert_non_null(cmd);
            while (next_word(&flags, flag, sizeof flag)) {
                if (args_find(cmd->args, cmd->arg_count, str_of(flag)))
                    fail_msg("holt %s has %s", verb, flag);
                assert_non_null(habit_hint(verb, str_of(flag)));
            }
        }
    }
}

static void hints_are_whole(void **state)
{
    struct err e = {0};

    (void)state;
    for (size_t i = 0; i < habit_count; i++)
        assert_true(strlen(habits[i].hint) < sizeof e.hint);
    assert_null(habit_hint("run", STR("--frobnicate")));
    assert_null(habit_hint("token create", STR("-p")));
}

/* An alias never hides a verb, and always means one. */
static void every_alias_is_a_verb_of_another_name(void **state)
{
    (void)state;
    for (size_t i = 0; i < verb_alias_count; i++) {
        const struct cmd *cmd = cmd_set_find(&set, verb_aliases[i].alias);

        assert_non_null(cmd);
        assert_string_equal(cmd->verb, verb_aliases[i].verb);
    }
    assert_string_equal(cmd_set_find(&set, "volume list")->verb, "volume ls");
    assert_string_equal(cmd_set_find(&set, "image delete")->verb, "image rm");
    assert_null(cmd_set_find(&set, "volume images"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_habit_is_of_a_verb_and_no_flag_of_it),
        cmocka_unit_test(hints_are_whole),
        cmocka_unit_test(every_alias_is_a_verb_of_another_name),
    };
    int r;

    cmd_set_build(op_table, &arena, &set);
    r = cmocka_run_group_tests(tests, NULL, NULL);
    arena_done(&arena);
    return r;
}
