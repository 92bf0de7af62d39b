#include "team_fixture.h"

#include <time.h>

static int post(struct team *t, void *arg, struct err *e)
{
    return message_send(t, arg, e);
}

static int inbox(struct team *t, void *arg, struct err *e)
{
    return message_inbox(t, STR("b"), true, 100, arg, e);
}

static int ack(struct team *t, void *arg, struct err *e)
{
    return message_acknowledge(t, *(struct str *)arg, e);
}

static struct message mail(const char *from, const char *to)
{
    return (struct message){
        .from = str_of(from), .to = str_of(to), .type = STR("text"), .content = STR("hello")};
}

static void unread_is_what_is_not_acknowledged(void **state)
{
    struct fixture *f = *state;
    struct message m = mail("a", "b");
    struct message_list l;

    assert_int_equal(run(f, post, &m), ERR_NONE);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(run(f, inbox, &l), ERR_NONE);
        assert_int_equal(l.n, 1);
    }
    as_agent(f, "c");
    assert_int_equal(run(f, ack, &m.id), ERR_NOT_FOUND);
    assert_int_equal(run(f, inbox, &l), ERR_FORBIDDEN);
    as_agent(f, "b");
    assert_int_equal(run(f, ack, &m.id), ERR_NONE);
    assert_int_equal(run(f, inbox, &l), ERR_NONE);
    assert_int_equal(l.n, 0);
}

static void senders_are_slowed_down(void **state)
{
    struct fixture *f = *state;
    struct message m = mail("a", "b");

    for (int i = 0; i < 3; i++) {
        m = mail("a", "b");
        assert_int_equal(run(f, post, &m), ERR_NONE);
        f->t.now_ms += 1000;
    }
    m = mail("a", "c");
    assert_int_equal(run(f, post, &m), ERR_LIMIT);
    assert_int_equal(f->t.retry_ms, 57000);
    m = mail("z", "c");
    assert_int_equal(run(f, post, &m), ERR_NONE);
    f->t.now_ms += 57001;
    m = mail("a", "c");
    assert_int_equal(run(f, post, &m), ERR_NONE);
    m = mail("a", "c");
    m.content =
        str_make("xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
                 "xxxxxxxxxxxxxxxxxxxxxxxxx",
                 101);
    assert_int_equal(run(f, post, &m), ERR_TOO_LARGE);
}

static void a_full_inbox_loses_what_was_read(void **state)
{
    struct fixture *f = *state;
    struct message m[5];
    static const char *const from[] = {"s0", "s1", "s2", "s3", "s4"};
    struct message_list l;

    for (int i = 0; i < 4; i++) {
        m[i] = mail(from[i], "b");
        assert_int_equal(run(f, post, &m[i]), ERR_NONE);
    }
    m[4] = mail("s4", "b");
    assert_int_equal(run(f, post, &m[4]), ERR_LIMIT);
    assert_int_equal(run(f, ack, &m[2].id), ERR_NONE);
    m[4] = mail("s4", "b");
    assert_int_equal(run(f, post, &m[4]), ERR_NONE);
    assert_int_equal(run(f, inbox, &l), ERR_NONE);
    assert_int_equal(l.n, 4);
    assert_int_equal(run(f, ack, &m[2].id), ERR_NOT_FOUND);
}

static int whole_inbox(struct team *t, void *arg, struct err *e)
{
    return message_inbox(t, STR("*"), false, 100, arg, e);
}

static int between(struct team *t, void *arg, struct err *e)
{
    return message_history(t, STR("a"), STR("b"), 2, arg, e);
}

static void assert_ids(const struct message_list *l, const struct message *const *want, size_t n)
{
    assert_int_equal(l->n, n);
    for (size_t i = 0; i < n; i++)
        assert_true(str_eq(l->v[i].id, want[i]->id));
}

static void what_everybody_was_told_goes_by_age(void **state)
{
    struct fixture *f = *state;
    struct message m[6];
    struct message_list l;

    f->t.conf.message_rate = 0;
    for (int i = 0; i < 4; i++) {
        m[i] = mail("a", "*");
        assert_int_equal(run(f, post, &m[i]), ERR_NONE);
    }
    assert_int_equal(run(f, ack, &m[1].id), ERR_NONE);
    m[4] = mail("a", "*"); /* in the place of an unread one */
    assert_int_equal(run(f, post, &m[4]), ERR_NONE);
    assert_int_equal(run(f, whole_inbox, &l), ERR_NONE);
    assert_ids(&l, (const struct message *[]){&m[1], &m[2], &m[3], &m[4]}, 4);
    m[5] = mail("a", "*"); /* of a read one */
    assert_int_equal(run(f, post, &m[5]), ERR_NONE);
    assert_int_equal(run(f, whole_inbox, &l), ERR_NONE);
    assert_ids(&l, (const struct message *[]){&m[2], &m[3], &m[4], &m[5]}, 4);
    for (size_t i = 0; i < l.n; i++)
        assert_true(l.v[i].delivered && !l.v[i].acknowledged);
}

static void history_is_both_ways_newest_first(void **state)
{
    struct fixture *f = *state;
    struct message m[4] = {mail("a", "b"), mail("b", "a"), mail("a", "b"), mail("c", "b")};
    struct message_list l;

    for (size_t i = 0; i < ARRAY_LEN(m); i++)
        assert_int_equal(run(f, post, &m[i]), ERR_NONE);
    assert_int_equal(run(f, ack, &m[0].id), ERR_NONE);
    assert_int_equal(run(f, between, &l), ERR_NONE);
    assert_ids(&l, (const struct message *[]){&m[2], &m[1]}, 2);
}

static void urls(void **state)
{
    static const char *const blocked[] = {
        "https://evil.com",
        "x HTTPS://EVIL.COM y",
        "http://8.8.8.8",
        "http://10.0.0.1",
        "http://a.b",
        "http://evil.c",
        "http://localhost.evil.com",
        "http://127.0.0.1.evil.com",
        "http://172.28.evil.com",
        "http://172.28.0.9.evil.com",
        "http://172.280.0.1",
        "http://evil.technology",
        "http://m\xc3\xbcnchen.de",
        "http://localhost@evil.com",
        "http://localhost:80@evil.com/",
        "http://user@evil.com",
        "ftp://evil.com",
        "ws://evil.com",
        "hxxp://evil.com",
        "http:/evil.com",
        "http:\\\\evil.com",
        "http://localhost\\@evil.com",
        "http://134744072/",
        "http://0x08080808",
        "http://127.1",
        "http://[2001:db8::1]/",
        "http://%65vil.com",
        "http://evil.",
        "xhttp://evil.com",
        "http:///evil.com",
        "a http://hub:80 b https://evil.com",
        "http://localhost.",
        "https:evil.com",
        "http://[::1].evil.com",
        "http\xe2\x80\x8b://evil.com",         /* zero width space */
        "h\xc2\xadttp:/\xe2\x81\xa0/evil.com", /* soft hyphen, word joiner */
        "\xef\xbd\x88\xef\xbd\x94\xef\xbd\x94\xef\xbd\x90://evil.com", /* full width */
        "http\xef\xbc\x9a\xef\xbc\x8f\xef\xbc\x8f"
        "evil.com",
        "http%3A%2F%2Fevil.com",
        "http://ev\til.com",
        "http:/\n/evil.com",
    };
    static const char *const allowed[] = {
        "http://localhost:3000/x",
        "http://127.0.0.1/api",
        "http://172.28.0.9:8080",
        "http://hub:8080",
        "https://evil",
        "evil.com",
        "http://[::1]/",
        "http://user@localhost:80",
        "",
        "ratio 3:4",
        "see http://hub, then",
        "C:/x",
        "std::vector",
        "http://hub?x=a.b",
        "http://hub/a.b",
        "ports http:8080, https:8443.",
        "http://hub\nmain.py is done", /* not one word */
        "100%25 of caf\xc3\xa9s",
        "http://[::1]:80, then",
        "http://",
        "http:// is a scheme",
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(blocked); i++)
        if (message_is_safe(str_of(blocked[i])))
            fail_msg("'%s' got through", blocked[i]);
    for (size_t i = 0; i < ARRAY_LEN(allowed); i++)
        if (!message_is_safe(str_of(allowed[i])))
            fail_msg("'%s' was blocked", allowed[i]);
}

static void a_text_of_schemes_is_judged_soon(void **state)
{
    AUTO(buf_done) struct buf text = {0};
    clock_t begun;

    (void)state;
    while (buf_len(&text) < 1048576)
        buf_add_str(&text, STR("http:"));
    begun = clock();
    assert_false(message_is_safe(buf_str(&text)));
    assert_true(clock() - begun < CLOCKS_PER_SEC);
}

int main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, team_setup, team_teardown)
    const struct CMUnitTest tests[] = {
        TEST(unread_is_what_is_not_acknowledged),
        TEST(senders_are_slowed_down),
        TEST(a_full_inbox_loses_what_was_read),
        TEST(what_everybody_was_told_goes_by_age),
        TEST(history_is_both_ways_newest_first),
        cmocka_unit_test(urls),
        cmocka_unit_test(a_text_of_schemes_is_judged_soon),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
