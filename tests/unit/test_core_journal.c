#include "core/exec/journal.h"

#include "box_fixture.h"

static char id[ID_SIZE]; /* of the one sandbox */

static int setup(void **state)
{
    struct sandbox_info i;

    (void)box_setup(state, "journal");
    sandbox_info(create(*state), &i);
    (void)snprintf(id, sizeof id, "%s", i.id);
    return 0;
}

/* --- a reader that writes down what it is told --- */

struct told {
    struct journal *j;
    struct buf text; /* "start;out:abc;end;note:n;" */
    int64_t last_us;
    size_t count, pause_at;
    bool gap, ended;
};

static int on_entry(void *arg, const struct journal_entry *n)
{
    static const char *const kinds[] = {"start", "out", "end", "note"};
    struct told *t = arg;

    assert_true(n->us > t->last_us); /* each moment is later */
    t->last_us = n->us;
    t->gap = t->gap || n->gap;
    t->count++;
    if (n->bytes.n > 0 && n->bytes.n < 100)
        buf_printf(&t->text, "%s:" STR_FMT ";", kinds[n->kind], STR_ARG(n->bytes));
    else
        buf_printf(&t->text, "%s;", kinds[n->kind]);
    return t->count == t->pause_at;
}

static void on_end(void *arg, const struct err *e)
{
    struct told *t = arg;

    assert_true(e->code != ERR_NONE);
    t->ended = true;
    t->j = NULL;
}

static void follow(struct fixture *f, struct told *t, int64_t after_us, size_t last)
{
    static const struct journal_ops ops = {.entry = on_entry, .end = on_end};

    t->j = journal_open(f->s, &(struct journal_from){after_us, last}, &ops, t);
    assert_int_equal(t->count, 0); /* not from within the call */
    settle(f);
}

/* The store's thread takes its time. */
static void until(struct fixture *f, const struct told *t, size_t count)
{
    for (int i = 0; i < 200 && t->count < count && !t->ended; i++)
        settle(f);
    assert_int_equal(t->count, count);
}

static void done(struct told *t)
{
    journal_close(t->j);
    buf_done(&t->text);
}

/* What a new reader is told, of everything or of the last. */
static void expect(struct fixture *f, int64_t after_us, size_t last, const char *text)
{
    struct told t = {0};

    size_t count = 0;

    for (const char *c = text; *c; c++)
        count += *c == ';';
    follow(f, &t, after_us, last);
    until(f, &t, count);
    assert_string_equal(buf_cstr(&t.text), text);
    done(&t);
}

static void add(struct fixture *f, const char *text)
{
    struct err e = {0};

    assert_int_equal(journal_add(f->s, str_of(text), &e), 0);
}

static struct script_exec *start(struct fixture *f)
{
    exec_start(f->s, &(struct exec_spec){.shell = STR("x")}, &tester, on_exec, f);
    await(f);
    return &script.execs[script.exec_count - 1];
}

/* --- tests --- */

static void commands_and_notes_in_one_order(void **state)
{
    struct fixture *f = *state;
    struct told live = {0};
    struct script_exec *one, *two;

    follow(f, &live, 0, 0);
    add(f, "before");
    one = start(f);
    script_output(one, STR("a"));
    until(f, &live, 3);
    two = start(f);
    script_output(two, STR("b"));
    until(f, &live, 5);
    add(f, "between");
    script_output(one, STR("c"));
    until(f, &live, 7);
    script_exit(one, 0);
    until(f, &live, 8);
    script_exit(two, 1);
    until(f, &live, 9);
    assert_string_equal(buf_cstr(&live.text),
                        "note:before;start;out:a;start;out:b;note:between;out:c;end;end;");
    expect(f, 0, 0, buf_cstr(&live.text));
    expect(f, 0, 3, "out:c;end;end;");
    expect(f, 0, 1, "end;");
    expect(f, 0, 1000, buf_cstr(&live.text));
    expect(f, live.last_us, 0, "");
    done(&live);
}

static void a_moment_says_where_to_go_on(void **state)
{
    struct fixture *f = *state;
    struct told first = {0}, second = {0};

    for (int i = 0; i < 10; i++) {
        char text[8];

        (void)snprintf(text, sizeof text, "%d", i);
        add(f, text);
    }
    first.pause_at = 4;
    follow(f, &first, 0, 0);
    assert_string_equal(buf_cstr(&first.text), "note:0;note:1;note:2;note:3;");
    follow(f, &second, first.last_us, 0);
    assert_string_equal(buf_cstr(&second.text), "note:4;note:5;note:6;note:7;note:8;note:9;");
    journal_resume(first.j);
    until(f, &first, 10);
    add(f, "10");
    until(f, &first, 11);
    until(f, &second, 7);
    done(&first);
    done(&second);
}

static void it_is_the_same_after_a_restart(void **state)
{
    struct fixture *f = *state;
    struct told before = {0}, after = {0};
    struct script_exec *x = start(f);
    struct err e = {0};

    script_output(x, STR("kept"));
    settle(f);
    add(f, "n");
    script_exit(x, 0);
    settle(f);
    follow(f, &before, 0, 0);
    until(f, &before, 4);
    assert_string_equal(buf_cstr(&before.text), "start;out:kept;note:n;end;");
    journal_close(before.j);
    close_all(f);
    open_all(f);
    f->s = sandbox_find(f->all, &principal_system, str_of(id), &e);
    assert_non_null(f->s);
    follow(f, &after, 0, 0);
    until(f, &after, 4);
    assert_string_equal(buf_cstr(&after.text), buf_cstr(&before.text));
    assert_true(after.last_us == before.last_us);
    add(f, "later");
    until(f, &after, 5);
    assert_true(after.last_us > before.last_us);
    done(&after);
    buf_done(&before.text);
}

/* A note is whole, wherever it lies in the file; the oldest go, and who missed some is told. */
/* Only so many commands are kept: who is too slow for them hears that some are missing, once. */
static void erased_commands_are_a_gap(void **state)
{
    struct fixture *f = *state;
    struct told slow = {.pause_at = 1}, quick = {0}, new = {0}, tail = {0};

    follow(f, &slow, 0, 0);
    follow(f, &quick, 0, 0);
    for (size_t i = 1; i <= 8; i++) {
        script_exit(start(f), 0);
        until(f, &quick, 2 * i);
    }
    assert_false(quick.gap);
    assert_int_equal(slow.count, 1);
    slow.pause_at = 2;
    journal_resume(slow.j);
    until(f, &slow, 2);
    assert_true(slow.gap);
    slow.gap = false;
    slow.pause_at = 0;
    journal_resume(slow.j);
    until(f, &slow, 9); /* the start of the first, and what is kept */
    assert_false(slow.gap);
    follow(f, &new, 0, 0);
    until(f, &new, 8);
    assert_true(new.gap);
    follow(f, &tail, 0, 3); /* asked for no more than that */
    until(f, &tail, 3);
    assert_false(tail.gap);
    done(&slow);
    done(&quick);
    done(&new);
    done(&tail);
}

static void notes_are_whole_and_bounded(void **state)
{
    struct fixture *f = *state;
    AUTO(mem_free) char *big = xmalloc(JOURNAL_NOTE_MAX);
    struct told t = {0}, old = {0};
    struct err e = {0};

    memset(big, 'n', JOURNAL_NOTE_MAX);
    add(f, "first");
    follow(f, &old, 0, 0);
    for (size_t i = 0; i < 120; i++) {
        assert_int_equal(journal_add(f->s, str_make(big, JOURNAL_NOTE_MAX - i * 37), &e), 0);
        turn(f);
    }
    until(f, &old, 121);
    assert_false(old.gap);
    follow(f, &t, 0, 0);
    assert_true(t.gap && t.count >= 20 && t.count < 60);
    assert_null(strstr(buf_cstr(&t.text), "first"));
    done(&t);
    done(&old);
    add(f, "last");
    expect(f, 0, 1, "note:last;");
}

static void it_ends_with_its_sandbox(void **state)
{
    struct fixture *f = *state;
    struct told t = {0}, late = {0};
    struct sandbox *s = sandbox_ref(f->s);
    struct err e = {0};

    add(f, "x");
    follow(f, &t, 0, 0);
    sandbox_destroy(f->s, &tester, on_sandbox, f);
    await(f);
    settle(f);
    assert_true(t.ended);
    f->s = s;
    follow(f, &late, 0, 0);
    assert_true(late.ended && late.count == 0);
    assert_int_equal(journal_add(s, STR("y"), &e), -1);
    assert_int_equal(e.code, ERR_GONE);
    sandbox_unref(s);
    buf_done(&t.text);
    buf_done(&late.text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(commands_and_notes_in_one_order, setup, box_teardown),
        cmocka_unit_test_setup_teardown(a_moment_says_where_to_go_on, setup, box_teardown),
        cmocka_unit_test_setup_teardown(it_is_the_same_after_a_restart, setup, box_teardown),
        cmocka_unit_test_setup_teardown(erased_commands_are_a_gap, setup, box_teardown),
        cmocka_unit_test_setup_teardown(notes_are_whole_and_bounded, setup, box_teardown),
        cmocka_unit_test_setup_teardown(it_ends_with_its_sandbox, setup, box_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
