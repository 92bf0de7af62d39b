#include "core/network/secret.h"

#include "core/network/secret_internal.h"
#include "ground.h"
#include "proto/binding.h"

#include <sys/stat.h>
#include <unistd.h>

#define VALUE "canary-0123456789"

/* Sandboxes that nobody runs. */
struct fixture {
    struct ground g;
    struct secrets *l;
    /* what the last callback said */
    bool called;
    struct err e;
    char id[ID_SIZE];
};

static const struct principal operator= {.role = ROLE_OPERATOR, .actor = "token/tk_tester" };

static void open_all(struct fixture *f)
{
    struct err e = {0};

    ground_open(&f->g);
    assert_int_equal(secrets_open(f->g.store, f->g.dir, &f->l, &e), 0);
}

static void close_all(struct fixture *f)
{
    ground_close(&f->g);
    f->l = secrets_free(f->l);
}

static const char *at(const struct fixture *f, const char *name)
{
    static char path[128];

    (void)snprintf(path, sizeof path, "%s/%s", f->g.dir, name);
    return path;
}

static int setup(void **state)
{
    struct fixture *f = xzalloc(sizeof *f);

    assert_int_equal(scratch_make(f->g.dir, "secret"), 0);
    open_all(f);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    close_all(f);
    assert_int_equal(scratch_remove(f->g.dir), 0);
    mem_free(f);
    return 0;
}

static void done(void *arg, struct secret *s, const struct err *e)
{
    struct fixture *f = arg;
    struct secret_info i;

    f->called = true;
    f->e = *e;
    if (!s)
        return;
    secret_info(s, &i);
    (void)snprintf(f->id, sizeof f->id, "%s", i.id);
}

static int wait_done(struct fixture *f)
{
    while (!f->called)
        (void)uv_run(&f->g.loop, UV_RUN_ONCE);
    return f->e.code == ERR_NONE ? 0 : -1;
}

static int set_how(struct fixture *f, const char *name, const char *value, const char *host,
                   enum secret_how how)
{
    struct str hosts[] = {str_of(host)};
    const struct secret_spec spec = {
        .name = str_of(name), .value = str_of(value), .hosts = {hosts, host ? 1 : 0}};

    f->called = false;
    if (secret_set(f->l, &spec, how, &(struct secret_call){&operator, done, f}, &f->e) < 0)
        return -1;
    return wait_done(f);
}

static int set(struct fixture *f, const char *name, const char *value, const char *host)
{
    return set_how(f, name, value, host, SECRET_MAKE_OR_CHANGE);
}

static int remove_it(struct fixture *f, const char *name)
{
    struct secret *s = secret_find(f->l, &principal_system, str_of(name), &f->e);

    f->called = false;
    if (!s || secret_remove(s, &(struct secret_call){&operator, done, f}, &f->e) < 0)
        return -1;
    return wait_done(f);
}

/* What holt-egress would be told of the last one that was set. */
static char *printed(const struct fixture *f)
{
    struct sandbox_secret one = {.placeholder = "holt-secret-0123456789abcdef"};
    struct buf to = {0};

    (void)snprintf(one.id, sizeof one.id, "%s", f->id);
    secrets_print(f->l, &one, 1, &to);
    return buf_steal(&to);
}

static void assert_told(const struct fixture *f, const char *value)
{
    AUTO(mem_free) char *list = printed(f);
    AUTO(bindings_free) struct bindings *b = NULL;
    struct err e = {0};

    assert_int_equal(bindings_parse(str_of(list), &b, &e), 0); /* as holt-egress reads it */
    if (value)
        assert_non_null(strstr(list, value));
    else
        assert_string_equal(list, "[]");
}

static void a_value_is_kept_sealed_and_told(void **state)
{
    struct fixture *f = *state;
    struct stat st;

    assert_int_equal(access(at(f, "secret.key"), F_OK), -1); /* made at first use */
    assert_int_equal(set(f, "gh", VALUE, "API.example.com."), 0);
    assert_int_equal(stat(at(f, "secret.key"), &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    assert_told(f, VALUE);
    close_all(f);
    open_all(f);
    assert_told(f, VALUE);
    assert_told(f, "\"hosts\":[\"api.example.com\"]");
    assert_int_equal(set(f, "gh", "rotated-value", NULL), 0);
    assert_told(f, "rotated-value");
    assert_told(f, "api.example.com");
    assert_int_equal(set(f, "gh", NULL, "*.example.org"), 0);
    assert_told(f, "rotated-value");
    assert_told(f, "*.example.org");
    assert_int_equal(remove_it(f, "gh"), 0);
    assert_told(f, NULL);
}

static void one_of_the_same_name_is_another(void **state)
{
    struct fixture *f = *state;
    char first[ID_SIZE];

    assert_int_equal(set(f, "a", VALUE, "a.test"), 0);
    memcpy(first, f->id, sizeof first);
    assert_int_equal(set_how(f, "a", VALUE, "a.test", SECRET_MAKE), -1);
    assert_int_equal(f->e.code, ERR_CONFLICT);
    assert_int_equal(remove_it(f, "a"), 0);
    assert_int_equal(set(f, "a", VALUE, "a.test"), 0);
    assert_string_not_equal(first, f->id);
    memcpy(f->id, first, sizeof first);
    assert_told(f, NULL);
}

static void what_is_wrong_is_said_without_the_value(void **state)
{
    static const struct {
        const char *name, *value, *host, *why;
    } wrong[] = {
        {"a b", VALUE, "a.test", "is not a valid name"},
        {"", VALUE, "a.test", "is not a valid name"},
        {"a", VALUE, NULL, "at least one host"},
        {"a", NULL, "a.test", "'value' is needed"},
        {"a", "abc", "a.test", "4 to 4096 bytes"},
        {"a", VALUE "\r\nX: y", "a.test", "not allowed in a header"},
        {"a", VALUE, "10.0.0.1", "is an address"},
        {"a", VALUE, "*.com", "top-level"},
        {"a", VALUE, "a b.test", "hosts"},
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        f->e = (struct err){0};
        assert_int_equal(set(f, wrong[i].name, wrong[i].value, wrong[i].host), -1);
        assert_non_null(strstr(f->e.msg, wrong[i].why));
        assert_null(strstr(f->e.msg, VALUE));
        assert_null(strstr(f->e.hint, VALUE));
    }
    assert_null(secret_next(f->l, &principal_system, STR("")));
}

static void without_its_key_nothing_is_told(void **state)
{
    struct fixture *f = *state;
    struct secret *s;

    assert_int_equal(set(f, "a", VALUE, "a.test"), 0);
    close_all(f);
    assert_int_equal(unlink(at(f, "secret.key")), 0);
    open_all(f);
    assert_told(f, NULL);
    s = secret_find(f->l, &principal_system, STR("a"), &f->e);
    assert_int_equal(secret_check(s, true, &f->e), -1);
    assert_non_null(strstr(f->e.msg, "is missing"));
    assert_non_null(strstr(f->e.hint, "backup"));
    assert_int_equal(set(f, "b", VALUE, "a.test"), -1); /* no second key beside the lost one */
    assert_int_equal(access(at(f, "secret.key"), F_OK), -1);
    assert_int_equal(remove_it(f, "a"), 0);
    assert_int_equal(set(f, "a", VALUE, "a.test"), 0);
    assert_told(f, VALUE);
}

static void a_wrong_or_open_key_is_refused(void **state)
{
    struct fixture *f = *state;
    unsigned char other[SEAL_KEY];

    assert_int_equal(set(f, "a", VALUE, "a.test"), 0);
    close_all(f);
    assert_int_equal(chmod(at(f, "secret.key"), 0644), 0);
    open_all(f);
    assert_told(f, NULL);
    assert_int_equal(set(f, "a", VALUE, NULL), -1);
    assert_non_null(strstr(f->e.hint, "chmod 600"));
    close_all(f);
    assert_int_equal(secret_key_make(at(f, "secret.key"), other, &f->e), 0);
    open_all(f);
    assert_told(f, NULL);
    assert_int_equal(set(f, "a", VALUE, NULL), -1);
    assert_non_null(strstr(f->e.msg, "is not the key"));
}

/* Whoever can write rows must not be able to send one value where another belongs. */
static int swap(struct store_tx *tx, void *arg, struct err *e)
{
    (void)arg;
    return tx_run(tx,
                  "UPDATE secrets SET sealed = (SELECT sealed FROM secrets WHERE name = 'a') "
                  "WHERE name = 'b'",
                  NO_PARAMS, e) < 0
               ? -1
               : 0;
}

static void a_value_opens_under_its_name_only(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(set(f, "a", VALUE, "a.test"), 0);
    assert_int_equal(set(f, "b", "the value of b", "b.test"), 0);
    assert_int_equal(store_now(f->g.store, swap, NULL, &f->e), 0);
    close_all(f);
    open_all(f);
    assert_told(f, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_value_is_kept_sealed_and_told, setup, teardown),
        cmocka_unit_test_setup_teardown(one_of_the_same_name_is_another, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_wrong_is_said_without_the_value, setup, teardown),
        cmocka_unit_test_setup_teardown(without_its_key_nothing_is_told, setup, teardown),
        cmocka_unit_test_setup_teardown(a_wrong_or_open_key_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(a_value_opens_under_its_name_only, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
