#include "core/identity/identity.h"

#include "base/clock.h"
#include "base/fd.h"
#include "core/event/event.h"
#include "ground.h"

#include <sys/stat.h>
#include <unistd.h>

/* On a real store: what identity promises is about rows. */
struct fixture {
    struct ground g;
    struct identity *i;
    /* what the last callback said */
    bool called;
    enum err_code code;
    char id[ID_SIZE];
    char text[TOKEN_TEXT];
};

static const struct principal admin = {.role = ROLE_ADMIN, .actor = "token/tk_tester"};

static void open_all(struct fixture *f)
{
    struct err e = {0};

    ground_open(&f->g);
    assert_int_equal(identity_open(f->g.store, &f->i, &e), 0);
}

static void close_all(struct fixture *f)
{
    identity_flush(f->i);
    ground_close(&f->g);
    f->i = identity_close(f->i);
}

static void reopen(struct fixture *f)
{
    close_all(f);
    open_all(f);
}

static int setup(void **state)
{
    struct fixture *f = xzalloc(sizeof *f);

    assert_int_equal(scratch_make(f->g.dir, "identity"), 0);
    open_all(f);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    clock_set_fake(NULL);
    close_all(f);
    assert_int_equal(scratch_remove(f->g.dir), 0);
    mem_free(f);
    return 0;
}

static void made(void *arg, const struct token *t, const char *text, const struct err *e)
{
    struct fixture *f = arg;

    f->called = true;
    f->code = e->code;
    f->text[0] = f->id[0] = '\0';
    if (e->code == ERR_NONE) {
        (void)snprintf(f->id, sizeof f->id, "%s", t->id);
        (void)snprintf(f->text, sizeof f->text, "%s", text);
    }
}

static void done(void *arg, const struct err *e)
{
    struct fixture *f = arg;

    f->called = true;
    f->code = e->code;
}

static void await(struct fixture *f)
{
    while (!f->called)
        (void)uv_run(&f->g.loop, UV_RUN_ONCE);
    f->called = false;
}

static enum err_code create(struct fixture *f, struct token_spec spec)
{
    identity_create(f->i, &spec, &admin, made, f);
    await(f);
    return f->code;
}

static enum err_code kill_token(struct fixture *f, const char *id)
{
    identity_revoke(f->i, str_of(id), &admin, done, f);
    await(f);
    return f->code;
}

static void login(struct fixture *f, const char *code)
{
    identity_login(f->i, str_of(code), made, f);
    await(f);
}

static const struct token_spec operator_spec = {.name = {"ci", 2}, .role = ROLE_OPERATOR};

static void a_token_works_and_survives_a_restart(void **state)
{
    struct fixture *f = *state;
    const struct token *t;

    assert_int_equal(create(f, operator_spec), ERR_NONE);
    assert_int_equal(strlen(f->text), 5 + 43);
    assert_true(str_starts(str_of(f->text), STR("holt_")));
    for (int round = 0; round < 2; round++) {
        t = identity_check(f->i, str_of(f->text));
        assert_non_null(t);
        assert_string_equal(t->id, f->id);
        assert_string_equal(t->name, "ci");
        assert_int_equal(t->role, ROLE_OPERATOR);
        assert_null(t->agent);
        reopen(f);
    }
    assert_true(identity_get(f->i, str_of(f->id))->last_used_ms > 0); /* flushed at the end */
}

static void nothing_else_is_a_token(void **state)
{
    struct fixture *f = *state;
    char text[2 * TOKEN_TEXT];

    assert_int_equal(create(f, operator_spec), ERR_NONE);
    assert_null(identity_check(f->i, STR("")));
    assert_null(identity_check(f->i, STR("holt_")));
    assert_null(identity_check(f->i, str_of(f->id)));
    assert_null(identity_check_cookie(f->i, str_of(f->text))); /* a token is no session */
    (void)snprintf(text, sizeof text, "%sx", f->text);
    assert_null(identity_check(f->i, str_of(text)));
    text[strlen(f->text) - 1] ^= 1;
    text[strlen(f->text)] = '\0';
    assert_null(identity_check(f->i, str_of(text)));
}

static void a_revoked_token_is_dead_at_once_and_for_good(void **state)
{
    struct fixture *f = *state;
    char text[TOKEN_TEXT], id[ID_SIZE];

    assert_int_equal(create(f, operator_spec), ERR_NONE);
    memcpy(text, f->text, sizeof text);
    memcpy(id, f->id, sizeof id);
    identity_revoke(f->i, str_of(id), &admin, done, f);
    assert_false(f->called);
    assert_null(identity_check(f->i, str_of(text))); /* before the store has said a word */
    assert_null(identity_get(f->i, str_of(id)));
    await(f);
    assert_int_equal(f->code, ERR_NONE);
    assert_int_equal(kill_token(f, id), ERR_NOT_FOUND);
    reopen(f);
    assert_null(identity_check(f->i, str_of(text)));
    assert_int_equal(kill_token(f, "tk_nobody"), ERR_NOT_FOUND);
}

static void revoking_twice_at_once_is_safe(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(create(f, operator_spec), ERR_NONE);
    identity_revoke(f->i, str_of(f->id), &admin, done, f);
    f->called = false;
    identity_revoke(f->i, str_of(f->id), &admin, done, f);
    assert_int_equal(f->code, ERR_NOT_FOUND);
    f->called = false;
    await(f);
    assert_int_equal(f->code, ERR_NONE);
}

static void an_expired_token_is_dead_and_its_row_goes(void **state)
{
    struct fixture *f = *state;
    struct clock_fake clock = {.wall_ms = clock_wall_ms(), .mono_ns = clock_mono_ns()};
    struct token_spec spec = operator_spec;
    char text[TOKEN_TEXT], id[ID_SIZE];

    clock_set_fake(&clock);
    spec.ttl_ms = 5000;
    assert_int_equal(create(f, spec), ERR_NONE);
    memcpy(text, f->text, sizeof text);
    memcpy(id, f->id, sizeof id);
    clock.wall_ms += 4999;
    assert_non_null(identity_check(f->i, str_of(text)));
    clock.wall_ms += 1;
    assert_null(identity_check(f->i, str_of(text)));
    assert_null(identity_get(f->i, str_of(id)));
    assert_int_equal(create(f, operator_spec), ERR_NONE); /* the next one sweeps */
    clock.wall_ms -= 5000;
    reopen(f);
    assert_null(identity_check(f->i, str_of(text)));
}

static void specs_are_checked(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(create(f, (struct token_spec){.name = STR("x"), .role = ROLE_NONE}),
                     ERR_INVALID);
    assert_int_equal(create(f, (struct token_spec){.name = STR("x"), .role = ROLE_AGENT}),
                     ERR_INVALID);
    assert_int_equal(
        create(f, (struct token_spec){.name = STR("x"), .role = ROLE_ADMIN, .agent = STR("a")}),
        ERR_INVALID);
    assert_int_equal(
        create(f, (struct token_spec){.name = STR("x"), .role = ROLE_AGENT, .agent = STR("a")}),
        ERR_NONE);
    assert_string_equal(identity_check(f->i, str_of(f->text))->agent, "a");
}

static int refuse(struct store_tx *tx, void *arg, const char *id, struct err *e)
{
    (void)tx, (void)arg;
    assert_true(id_is_valid("tk", str_of(id)));
    return err_set(e, ERR_CONFLICT, 0, "no");
}

static void work_in_the_same_transaction_can_undo_it(void **state)
{
    struct fixture *f = *state;
    struct token_spec spec = operator_spec;

    spec.tx_hook = refuse;
    assert_int_equal(create(f, spec), ERR_CONFLICT);
    assert_null(identity_next(f->i, STR("")));
    reopen(f);
    assert_null(identity_next(f->i, STR("")));
}

static void the_list_is_in_order_and_pages(void **state)
{
    enum { COUNT = 40 };
    struct fixture *f = *state;
    char ids[COUNT][ID_SIZE];
    struct str after = {0};
    size_t n = 0;

    for (size_t i = 0; i < COUNT; i++) {
        assert_int_equal(create(f, operator_spec), ERR_NONE);
        memcpy(ids[i], f->id, ID_SIZE);
    }
    assert_int_equal(kill_token(f, ids[7]), ERR_NONE);
    for (const struct token *t; (t = identity_next(f->i, after)); n++) {
        assert_string_equal(t->id, ids[n < 7 ? n : n + 1]);
        after = str_of(t->id);
    }
    assert_int_equal(n, COUNT - 1);
    assert_string_equal(identity_next(f->i, str_of(ids[7]))->id, ids[8]); /* gone, but a place */
}

static void the_first_start_makes_an_admin(void **state)
{
    struct fixture *f = *state;
    AUTO(mem_free) char *path = xasprintf("%s/admin-token", f->g.dir);
    AUTO(buf_done) struct buf text = {0};
    const struct token *t;
    struct stat st;
    struct err e = {0};

    assert_int_equal(identity_first_admin(f->i, path, &e), 1);
    assert_int_equal(file_read(path, 1000, &text), 0);
    t = identity_check(f->i, str_make(buf_data(&text), buf_len(&text) - 1));
    assert_non_null(t);
    assert_int_equal(t->role, ROLE_ADMIN);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    reopen(f);
    assert_int_equal(identity_first_admin(f->i, path, &e), 0);
    t = identity_next(f->i, STR(""));
    assert_int_equal(kill_token(f, t->id), ERR_CONFLICT); /* nobody locks everybody out */
    assert_int_equal(create(f, (struct token_spec){.name = STR("b"), .role = ROLE_ADMIN}),
                     ERR_NONE);
    assert_int_equal(kill_token(f, t->id), ERR_NONE);
}

static void an_admin_token_that_cannot_be_written_stops_the_start(void **state)
{
    struct fixture *f = *state;
    struct err e = {0};

    assert_int_equal(identity_first_admin(f->i, "/nowhere/admin-token", &e), -1);
    assert_non_null(strstr(e.msg, "/nowhere/admin-token"));
    assert_null(identity_next(f->i, STR("")));
}

static void a_code_logs_in_once(void **state)
{
    struct fixture *f = *state;
    char code[TOKEN_TEXT], cookie[TOKEN_TEXT];

    identity_login_code(f->i, ROLE_OBSERVER, NULL, code);
    login(f, "holtc_wrong");
    assert_int_equal(f->code, ERR_UNAUTHENTICATED);
    login(f, code);
    assert_int_equal(f->code, ERR_NONE);
    memcpy(cookie, f->text, sizeof cookie);
    assert_int_equal(identity_check_cookie(f->i, str_of(cookie))->role, ROLE_OBSERVER);
    assert_null(identity_check(f->i, str_of(cookie))); /* a session is no bearer token */
    assert_null(identity_check_cookie(f->i, str_of(code)));
    login(f, code);
    assert_int_equal(f->code, ERR_UNAUTHENTICATED);
    reopen(f);
    assert_non_null(identity_check_cookie(f->i, str_of(cookie)));
}

static void codes_and_sessions_end(void **state)
{
    struct fixture *f = *state;
    struct clock_fake clock = {.wall_ms = clock_wall_ms(), .mono_ns = clock_mono_ns()};
    char code[TOKEN_TEXT], first[TOKEN_TEXT];

    clock_set_fake(&clock);
    identity_login_code(f->i, ROLE_ADMIN, NULL, code);
    clock.mono_ns += LOGIN_CODE_MS * 1000000LL;
    login(f, code);
    assert_int_equal(f->code, ERR_UNAUTHENTICATED);
    identity_login_code(f->i, ROLE_ADMIN, NULL, first);
    for (int i = 0; i < 16; i++)
        identity_login_code(f->i, ROLE_ADMIN, NULL, code);
    login(f, first); /* many codes push the oldest out */
    assert_int_equal(f->code, ERR_UNAUTHENTICATED);
    login(f, code);
    assert_non_null(identity_check_cookie(f->i, str_of(f->text)));
    clock.wall_ms += SESSION_MS;
    assert_null(identity_check_cookie(f->i, str_of(f->text)));
}

static void log_in_from(struct fixture *f, const struct token *from, char *cookie)
{
    char code[TOKEN_TEXT];

    assert_non_null(from);
    identity_login_code(f->i, from->role, from, code);
    login(f, code);
    assert_int_equal(f->code, ERR_NONE);
    memcpy(cookie, f->text, TOKEN_TEXT);
}

static void what_came_from_a_token_ends_with_it(void **state)
{
    struct fixture *f = *state;
    char root[ID_SIZE], code[TOKEN_TEXT], first[TOKEN_TEXT], second[TOKEN_TEXT];
    const struct token *t;

    assert_int_equal(create(f, operator_spec), ERR_NONE);
    memcpy(root, f->id, sizeof root);
    log_in_from(f, identity_get(f->i, str_of(root)), first);
    log_in_from(f, identity_check_cookie(f->i, str_of(first)), second);
    assert_string_equal(identity_check_cookie(f->i, str_of(second))->root, root);
    identity_login_code(f->i, ROLE_OPERATOR, identity_check_cookie(f->i, str_of(second)), code);
    reopen(f); /* it is in the rows too; codes are not */
    t = identity_check_cookie(f->i, str_of(second));
    assert_non_null(t);
    identity_login_code(f->i, ROLE_OPERATOR, t, code);
    assert_int_equal(kill_token(f, root), ERR_NONE);
    assert_null(identity_check_cookie(f->i, str_of(first)));
    assert_null(identity_check_cookie(f->i, str_of(second)));
    login(f, code);
    assert_int_equal(f->code, ERR_UNAUTHENTICATED);
    reopen(f);
    assert_null(identity_check_cookie(f->i, str_of(second)));
    assert_null(identity_next(f->i, STR(""))); /* their rows went with it */
}

static void a_session_ends_no_later_than_what_it_came_from(void **state)
{
    struct fixture *f = *state;
    struct clock_fake clock = {.wall_ms = clock_wall_ms(), .mono_ns = clock_mono_ns()};
    struct token_spec spec = operator_spec;
    char first[TOKEN_TEXT], second[TOKEN_TEXT];

    clock_set_fake(&clock);
    spec.ttl_ms = 60000;
    assert_int_equal(create(f, spec), ERR_NONE);
    log_in_from(f, identity_get(f->i, str_of(f->id)), first);
    clock.wall_ms += 59000;
    assert_non_null(identity_check_cookie(f->i, str_of(first)));
    clock.wall_ms += 1000;
    assert_null(identity_check_cookie(f->i, str_of(first)));

    assert_int_equal(create(f, operator_spec), ERR_NONE); /* for ever, but a session is not */
    log_in_from(f, identity_get(f->i, str_of(f->id)), first);
    clock.wall_ms += SESSION_MS - 1000;
    log_in_from(f, identity_check_cookie(f->i, str_of(first)), second);
    assert_non_null(identity_check_cookie(f->i, str_of(second)));
    clock.wall_ms += 1000;
    assert_null(identity_check_cookie(f->i, str_of(second)));
}

static void one_root_pushes_out_its_own_codes_only(void **state)
{
    struct fixture *f = *state;
    char others[TOKEN_TEXT], first[TOKEN_TEXT], code[TOKEN_TEXT];

    identity_login_code(f->i, ROLE_ADMIN, NULL, others);
    assert_int_equal(create(f, operator_spec), ERR_NONE);
    identity_login_code(f->i, ROLE_OPERATOR, identity_get(f->i, str_of(f->id)), first);
    for (int i = 0; i < 2 * LOGIN_CODES; i++)
        identity_login_code(f->i, ROLE_OPERATOR, identity_get(f->i, str_of(f->id)), code);
    login(f, first);
    assert_int_equal(f->code, ERR_UNAUTHENTICATED);
    login(f, others);
    assert_int_equal(f->code, ERR_NONE);
}

static void the_store_holds_no_secret(void **state)
{
    struct fixture *f = *state;
    AUTO(mem_free) char *db = xasprintf("%s/holt.db", f->g.dir);
    AUTO(buf_done) struct buf content = {0};
    char code[TOKEN_TEXT], token[TOKEN_TEXT];

    assert_int_equal(create(f, operator_spec), ERR_NONE);
    memcpy(token, f->text, sizeof token);
    identity_login_code(f->i, ROLE_ADMIN, NULL, code);
    login(f, code);
    close_all(f);
    assert_int_equal(file_read(db, 1 << 26, &content), 0);
    assert_true(buf_len(&content) > 0);
    assert_null(memmem(buf_data(&content), buf_len(&content), token + 5, 43));
    assert_null(memmem(buf_data(&content), buf_len(&content), code + 6, 43));
    assert_null(memmem(buf_data(&content), buf_len(&content), f->text + 6, 43));
    assert_non_null(memmem(buf_data(&content), buf_len(&content), "token.created", 13));
    open_all(f);
}

static void failures_make_a_peer_wait(void **state)
{
    struct fixture *f = *state;
    struct clock_fake clock = {.wall_ms = 1, .mono_ns = 1000000000};
    int64_t retry_ms = 0;

    clock_set_fake(&clock);
    identity_set_throttle(f->i, 3, 10000);
    for (int i = 0; i < 3; i++) {
        assert_false(identity_throttled(f->i, "10.0.0.1", &retry_ms));
        identity_failed(f->i, "10.0.0.1");
    }
    clock.mono_ns += 4000 * 1000000LL;
    assert_true(identity_throttled(f->i, "10.0.0.1", &retry_ms));
    assert_int_equal(retry_ms, 6000);
    assert_false(identity_throttled(f->i, "10.0.0.2", &retry_ms));
    clock.mono_ns += 6000 * 1000000LL;
    assert_false(identity_throttled(f->i, "10.0.0.1", &retry_ms));
    identity_failed(f->i, "10.0.0.1"); /* a new window begins with one */
    assert_false(identity_throttled(f->i, "10.0.0.1", &retry_ms));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_token_works_and_survives_a_restart),
        TEST(nothing_else_is_a_token),
        TEST(a_revoked_token_is_dead_at_once_and_for_good),
        TEST(revoking_twice_at_once_is_safe),
        TEST(an_expired_token_is_dead_and_its_row_goes),
        TEST(specs_are_checked),
        TEST(work_in_the_same_transaction_can_undo_it),
        TEST(the_list_is_in_order_and_pages),
        TEST(the_first_start_makes_an_admin),
        TEST(an_admin_token_that_cannot_be_written_stops_the_start),
        TEST(a_code_logs_in_once),
        TEST(codes_and_sessions_end),
        TEST(what_came_from_a_token_ends_with_it),
        TEST(a_session_ends_no_later_than_what_it_came_from),
        TEST(one_root_pushes_out_its_own_codes_only),
        TEST(the_store_holds_no_secret),
        TEST(failures_make_a_peer_wait),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
