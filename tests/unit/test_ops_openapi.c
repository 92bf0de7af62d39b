#include "ops/op.h"

#include "proto/json.h"
#include "unit.h"

static json_t *description(void)
{
    AUTO(buf_done) struct buf a = {0}, b = {0};
    json_t *tree = NULL;
    struct err e = {0};

    op_openapi(&a, "1.2.3");
    op_openapi(&b, "1.2.3");
    assert_true(str_eq(buf_str(&a), buf_str(&b)));
    assert_int_equal(json_read(buf_str(&a), &tree, &e), 0);
    return tree;
}

static const json_t *at(const json_t *tree, const char *const *keys)
{
    for (; tree && *keys; keys++)
        tree = json_object_get(tree, *keys);
    return tree;
}
#define AT(tree, ...) at(tree, (const char *const[]){__VA_ARGS__, NULL})

static void every_operation_is_described(void **state)
{
    AUTO(json_decref) json_t *tree = description();

    (void)state;
    assert_string_equal(json_string_value(AT(tree, "info", "version")), "1.2.3");
    for (size_t i = 0; i < op_count; i++) {
        const struct op *op = op_table[i];
        bool any = strcmp(op->method, "*") == 0;
        char method[8] = "get", path[128];
        const char *dots = strstr(op->path, "...}");
        const json_t *o;

        for (size_t c = 0; op->method[c] && !any; c++)
            method[c] = (char)(op->method[c] | 0x20);
        method[any ? 3 : strlen(op->method)] = '\0';
        (void)snprintf(path, sizeof path, "%.*s%s",
                       (int)(dots ? (size_t)(dots - op->path) : strlen(op->path)), op->path,
                       dots ? "}" : "");
        o = AT(tree, "paths", path, method);
        assert_int_equal(any, AT(tree, "paths", path, "options") != NULL);
        if (!o)
            fail_msg("%s is not in it", op->name);
        assert_string_equal(json_string_value(AT(o, "x-permission")), perm_name(op->perm));
        assert_int_equal(AT(o, "security") != NULL, op->perm == PERM_NONE);
        assert_non_null(AT(o, "responses", "default"));
    }
}

static void fields_carry_their_ranges(void **state)
{
    AUTO(json_decref) json_t *tree = description();
    const json_t *body = AT(tree, "components", "schemas", "TokenCreateInput");
    const json_t *limit;

    (void)state;
    assert_int_equal(json_integer_value(AT(body, "properties", "name", "maxLength")), 100);
    assert_string_equal(json_string_value(json_array_get(AT(body, "required"), 0)), "name");
    assert_string_equal(json_string_value(AT(body, "properties", "role", "default")), "observer");
    limit = json_array_get(AT(tree, "paths", "/holt/v1/events", "get", "parameters"), 4);
    assert_string_equal(json_string_value(AT(limit, "name")), "limit");
    assert_int_equal(json_integer_value(AT(limit, "schema", "maximum")), 1000);
    assert_int_equal(json_integer_value(AT(limit, "schema", "default")), 100);
}

static void check_refs(const json_t *root, const json_t *v)
{
    json_t *o = (json_t *)(uintptr_t)v;
    const json_t *ref = json_object_get(v, "$ref");

    if (ref) {
        struct str rest = str_skip(str_of(json_string_value(ref)), 2);
        const json_t *to = root;

        while (to && rest.n > 0) {
            struct str part = str_cut(rest, '/', &rest);
            char name[64] = "";

            assert_true(part.n < sizeof name);
            memcpy(name, part.p, part.n);
            to = json_object_get(to, name);
        }
        if (!to)
            fail_msg("'%s' points nowhere", json_string_value(ref));
    }
    for (size_t i = 0; i < json_array_size(v); i++)
        check_refs(root, json_array_get(v, i));
    for (void *it = json_object_iter(o); it; it = json_object_iter_next(o, it))
        check_refs(root, json_object_iter_value(it));
}

static void every_reference_points_at_something(void **state)
{
    AUTO(json_decref) json_t *tree = description();

    (void)state;
    check_refs(tree, tree);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_operation_is_described),
        cmocka_unit_test(fields_carry_their_ranges),
        cmocka_unit_test(every_reference_points_at_something),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
