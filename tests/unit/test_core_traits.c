#include "core/sandbox/traits.h"

#include "ops/sandbox.h"
#include "unit.h"

static void set(struct sandbox_traits *t, const struct trait *c, int64_t v)
{
    if (c->type == TRAIT_FLAG)
        *(bool *)((char *)t + c->offset) = v != 0;
    else
        *(int64_t *)((char *)t + c->offset) = v;
}

static json_t *written(void (*write)(struct jw *, const struct sandbox_traits *),
                       const struct sandbox_traits *t)
{
    AUTO(buf_done) struct buf to = {0};
    struct jw w = {.to = &to};
    struct err e = {0};
    json_t *o;

    jw_object(&w);
    write(&w, t);
    jw_object_end(&w);
    assert_int_equal(json_read(buf_str(&to), &o, &e), 0);
    return o;
}

/* What a row says is what was written, and one trait is not taken for another. */
static void each_comes_back_from_its_row(void **state)
{
    (void)state;
    for (size_t i = 0; i < trait_count; i++) {
        struct sandbox_traits t = {0}, back = {0}, none = {0};
        AUTO(json_decref) json_t *row = NULL;

        set(&t, &trait_table[i], 7);
        row = written(traits_put, &t);
        traits_get(&back, row);
        assert_memory_equal(&back, trait_table[i].type == TRAIT_TIME ? &none : &t, sizeof t);
    }
}

static void a_row_of_an_older_release_has_none(void **state)
{
    AUTO(json_decref) json_t *row = json_object();
    struct sandbox_traits t = {.hub = true, .limits.pids = 3, .ttl_ms = 9};

    (void)state;
    traits_get(&t, row);
    assert_false(t.hub);
    assert_int_equal(t.limits.pids, 0);
    assert_int_equal(t.ttl_ms, 9);
}

static void what_a_request_leaves_out_is_none(void **state)
{
    struct sandbox_traits t = {.ttl_ms = OP_ABSENT, .limits = {.pids = OP_ABSENT, .nofile = 16}};

    (void)state;
    traits_settle(&t);
    assert_int_equal(t.ttl_ms, 0);
    assert_int_equal(t.limits.pids, 0);
    assert_int_equal(t.limits.nofile, 16);
}

static bool is_described(const char *name)
{
    for (size_t i = 0; i < op_sandbox_get.out_count; i++)
        if (strcmp(op_sandbox_get.out[i].name, name) == 0)
            return true;
    return false;
}

static void each_reply_is_described(void **state)
{
    const struct sandbox_traits t = {.wide = true, .relay = true, .idle_ttl_ms = 5};
    AUTO(json_decref) json_t *o = written(traits_reply, &t);
    const char *key;
    json_t *v;

    (void)state;
    json_object_foreach(o, key, v) if (!is_described(key))
        fail_msg("a reply has '%s', and no row says so", key);
    assert_string_equal(json_string_value(json_object_get(o, "syscalls")), "wide");
    assert_string_equal(json_string_value(json_object_get(o, "rootfs")), "rw");
    assert_true(json_is_true(json_object_get(o, "relay")));
    assert_true(json_is_false(json_object_get(o, "hub")));
    assert_true(json_is_null(json_object_get(o, "ttl_ms")));
    assert_int_equal(json_integer_value(json_object_get(o, "idle_ttl_ms")), 5);
}

#if defined(__has_builtin) && __has_builtin(__builtin_clear_padding)
#define FINDS_PADDING 1
#endif

/* A member without a row would be lost at the next restart. */
static void no_member_lacks_a_row(void **state)
{
    struct sandbox_traits t;
    unsigned char bytes[sizeof t];

    (void)state;
#ifdef FINDS_PADDING
    memset(&t, 0xff, sizeof t);
    __builtin_clear_padding(&t);
#else
    skip(); /* this compiler does not tell members from padding */
#endif
    t.reach = SANDBOX_REACHES_NOTHING; /* made anew of the policy */
    for (size_t i = 0; i < trait_count; i++)
        set(&t, &trait_table[i], 0);
    memcpy(bytes, &t, sizeof t);
    for (size_t i = 0; i < sizeof bytes; i++)
        if (bytes[i])
            fail_msg("the member at byte %zu of struct sandbox_traits has no row", i);
}

/* What a change does not have stays, also where it says something else. */
static void a_change_takes_what_is_given(void **state)
{
    (void)state;
    for (size_t i = 0; i < trait_count; i++) {
        struct sandbox_traits t = {0}, to, given = {0}, want = {0};

        memset(&to, 1, sizeof to);
        assert_false(traits_any(&given));
        set(&given, &trait_table[i], 1);
        set(&to, &trait_table[i], 7);
        set(&want, &trait_table[i], 7);
        assert_true(traits_any(&given));
        traits_change(&t, &to, &given);
        assert_memory_equal(&t, &want, sizeof t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_comes_back_from_its_row),
        cmocka_unit_test(a_row_of_an_older_release_has_none),
        cmocka_unit_test(what_a_request_leaves_out_is_none),
        cmocka_unit_test(a_change_takes_what_is_given),
        cmocka_unit_test(each_reply_is_described),
        cmocka_unit_test(no_member_lacks_a_row),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
