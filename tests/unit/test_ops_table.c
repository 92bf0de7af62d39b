#include "ops/op.h"

#include "unit.h"

#include <ctype.h>

static void every_text_is_a_sentence(const char *where, const char *name, const char *text)
{
    const char *end;

    if (!text || strlen(text) < 5)
        fail_msg("%s: '%s' has no text", where, name);
    end = text + strcspn(text, "\n");
    if (!isupper((unsigned char)text[0]) && text[0] != '\'')
        fail_msg("%s: the text of '%s' starts small", where, name);
    if (end[-1] != '.' && !strchr(text, '?'))
        fail_msg("%s: the text of '%s' has no full stop", where, name);
}

static void check_input(const struct op *op, const struct op_field *f)
{
    struct arena a = {0};
    char *in = arena_zalloc(&a, op->in_size);
    struct err e = {0};

    every_text_is_a_sentence(op->name, f->name, f->text);
    if (f->pattern)
        assert_non_null(op_pattern(f->pattern));
    assert_int_equal(f->type == OP_CHOICE, f->choices != NULL);
    assert_true(f->offset < op->in_size);
    assert_false(f->required && f->preset);
    if (f->type == OP_JSON)
        assert_int_equal(op_place(op, f), OP_IN_BODY);
    else if (!f->example)
        fail_msg("%s: field '%s' has no example", op->name, f->name);
    if (f->example && op_decode_text(f, str_of(f->example), &a, in, &e) < 0)
        fail_msg("%s: the example: %s", op->name, e.msg);
    if (f->preset && op_decode_text(f, str_of(f->preset), &a, in, &e) < 0)
        fail_msg("%s: the preset: %s", op->name, e.msg);
    arena_done(&a);
}

static void every_row_is_complete(void **state)
{
    (void)state;
    for (size_t i = 0; i < op_count; i++) {
        const struct op *op = op_table[i];
        bool group = false;

        every_text_is_a_sentence("row", op->name, op->text);
        assert_non_null(op->method);
        assert_int_equal(op->path[0], '/');
        assert_true(op->perm < PERM_COUNT);
        assert_true(op->in_count <= 64);
        for (const struct op_group *g = op_groups; g->name; g++)
            group = group || strcmp(g->name, op->group) == 0;
        if (!group)
            fail_msg("'%s' is in no group", op->name);
        for (size_t f = 0; f < op->in_count; f++)
            check_input(op, &op->in[f]);
        for (size_t f = 0; f < op->out_count; f++)
            every_text_is_a_sentence(op->name, op->out[f].name, op->out[f].text);
        assert_int_equal(op->reply == OP_REPLY_OBJECT || op->reply == OP_REPLY_LIST,
                         op->out_count > 0 && op->schema);
        assert_int_equal(op->reply == OP_REPLY_LIST, op->items != NULL);
        assert_int_equal(op->reply == OP_REPLY_EMPTY, op->status == 204);
        assert_ptr_equal(op_find(op->name), op);
    }
    assert_null(op_table[op_count]);
    assert_null(op_find("no.such"));
}

static void names_paths_and_verbs_are_unique(void **state)
{
    (void)state;
    for (size_t i = 0; i < op_count; i++) {
        for (size_t j = i + 1; j < op_count; j++) {
            const struct op *a = op_table[i], *b = op_table[j];

            assert_string_not_equal(a->name, b->name);
            if (a->verb && b->verb)
                assert_string_not_equal(a->verb, b->verb);
            if (strcmp(a->method, b->method) == 0)
                assert_string_not_equal(a->path, b->path);
            if (a->schema && b->schema && strcmp(a->schema, b->schema) == 0)
                assert_ptr_equal(a->out, b->out);
        }
    }
}

static void every_brace_of_a_path_is_a_required_field(void **state)
{
    (void)state;
    for (size_t i = 0; i < op_count; i++) {
        const struct op *op = op_table[i];
        const char *at = op->path;

        while ((at = strchr(at, '{'))) {
            const char *end = strchr(at, '}');
            const struct op_field *f;

            assert_non_null(end);
            f = op_input(op, str_make(at + 1, strcspn(at + 1, ".}")));
            if (!f || !f->required || f->type != OP_STR)
                fail_msg("%s: a brace of '%s' is no required text field", op->name, op->path);
            assert_int_equal(op_place(op, f), OP_IN_PATH);
            at = end;
        }
    }
}

static void columns_are_fields_of_the_reply(void **state)
{
    (void)state;
    for (size_t i = 0; i < op_count; i++) {
        const struct op *op = op_table[i];
        struct str rest = str_of(op->columns);

        while (rest.n > 0) {
            struct str whole = str_cut(rest, ',', &rest);
            struct str name = str_cut(whole, '.', &(struct str){0});
            bool found = false;

            for (size_t f = 0; f < op->out_count; f++)
                found = found || str_eq_c(name, op->out[f].name);
            if (!found)
                fail_msg("%s: column '" STR_FMT "' is not in the reply", op->name, STR_ARG(name));
        }
    }
}

static void permissions_have_names(void **state)
{
    (void)state;
    for (int p = 0; p < PERM_COUNT; p++)
        assert_non_null(perm_name((enum perm)p));
}

static void only_these_need_no_token(void **state)
{
    static const char *const open[] = {
        "healthz", "readyz", "openapi", "login", "access.krl", "login.oidc", "login.oidc_callback"};
    size_t found = 0;

    (void)state;
    for (size_t i = 0; i < op_count; i++) {
        bool expected = false;

        for (size_t j = 0; j < ARRAY_LEN(open); j++)
            expected = expected || strcmp(op_table[i]->name, open[j]) == 0;
        if ((op_table[i]->perm == PERM_NONE) != expected)
            fail_msg("'%s' is open to everybody, or should be", op_table[i]->name);
        found += expected;
    }
    assert_int_equal(found, ARRAY_LEN(open));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_is_complete),
        cmocka_unit_test(names_paths_and_verbs_are_unique),
        cmocka_unit_test(every_brace_of_a_path_is_a_required_field),
        cmocka_unit_test(columns_are_fields_of_the_reply),
        cmocka_unit_test(permissions_have_names),
        cmocka_unit_test(only_these_need_no_token),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
