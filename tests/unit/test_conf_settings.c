#include "conf/setting.h"

#include "unit.h"

#include <ctype.h>

static void every_row_is_complete(void **state)
{
    (void)state;
    for (size_t i = 0; i < setting_count; i++) {
        const struct setting *s = &setting_table[i];

        if (!s->f.text || !isupper((unsigned char)s->f.text[0]) || !strchr(s->f.text, '.'))
            fail_msg("'%s' has no text that is a sentence", s->f.name);
        if (!s->f.preset == !s->preset)
            fail_msg("'%s' has no default, or two", s->f.name);
        if ((s->f.type == OP_INT || s->f.type == OP_SIZE || s->f.type == OP_DURATION ||
             s->f.type == OP_STR || s->f.type == OP_LIST) &&
            s->f.max == 0)
            fail_msg("'%s' has no bound", s->f.name);
        assert_int_equal(s->f.type == OP_CHOICE, s->f.choices != NULL);
        assert_true(s->f.offset < sizeof(struct config));
        assert_ptr_equal(setting_find(str_of(s->f.name)), s);
    }
}

static void keys_and_aliases_are_unique(void **state)
{
    (void)state;
    for (size_t i = 0; i < setting_count; i++) {
        for (size_t j = i + 1; j < setting_count; j++) {
            assert_string_not_equal(setting_table[i].f.name, setting_table[j].f.name);
            assert_int_not_equal(setting_table[i].f.offset, setting_table[j].f.offset);
        }
        for (const struct setting_alias *a = setting_table[i].alias; a && a->name; a++) {
            const struct setting_alias *found;

            assert_ptr_equal(setting_find_alias(str_of(a->name), &found), &setting_table[i]);
            assert_ptr_equal(found, a);
            assert_null(setting_find(str_of(a->name)));
        }
    }
}

/* Every member of struct config in front of listen_optional is a row: a forgotten one leaves a gap
 * that no padding explains. */
static void every_member_has_a_row(void **state)
{
    size_t covered = 0;

    (void)state;
    for (size_t i = 0; i < setting_count; i++) {
        const struct setting *s = &setting_table[i];

        if (s->f.type == OP_LIST)
            covered += sizeof(struct conf_list);
        else if (s->f.type == OP_BOOL)
            covered += sizeof(bool);
        else if (s->f.type == OP_CHOICE && !s->as_text)
            covered += sizeof(int);
        else
            covered += 8;
    }
    assert_true(offsetof(struct config, listen_optional) - covered < 8 * 4);
}

static void foreign_names_do_not_hide_ours(void **state)
{
    (void)state;
    for (size_t i = 0; i < setting_count; i++) {
        AUTO(buf_done) struct buf variable = {0};

        setting_variable(&setting_table[i], &variable);
        assert_false(setting_is_foreign(buf_str(&variable)));
        if (strcmp(setting_table[i].f.name, "hosts") != 0)
            assert_false(setting_is_foreign(str_of(setting_table[i].f.name)));
    }
    assert_true(setting_is_foreign(STR("SANDBOX_IMAGE")));
    assert_false(setting_is_foreign(STR("SANDBOX")));
    assert_true(setting_is_section(STR("logging.")));
    assert_false(setting_is_section(STR("nothing.")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_is_complete),
        cmocka_unit_test(keys_and_aliases_are_unique),
        cmocka_unit_test(every_member_has_a_row),
        cmocka_unit_test(foreign_names_do_not_hide_ours),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
