#include "core/exec/console.h"

#include "unit.h"

struct person {
    struct console_seat seat;
    int demoted;
};

static void demoted(struct console_seat *s)
{
    struct person *p = CONTAINER_OF(s, struct person, seat);

    p->demoted++;
}

static struct person person(void)
{
    return (struct person){.seat.changed = demoted};
}

static void the_first_controls_and_the_others_watch(void **state)
{
    struct consoles *c = consoles_new();
    struct person a = person(), b = person(), d = person();
    struct err e = {0};

    (void)state;
    assert_int_equal(console_sit(c, "ex_1", CONSOLE_ANY, false, &a.seat, &e), 0);
    assert_int_equal(console_sit(c, "ex_1", CONSOLE_ANY, false, &b.seat, &e), 0);
    assert_int_equal(a.seat.role, CONSOLE_CONTROLLER);
    assert_int_equal(b.seat.role, CONSOLE_OBSERVER);
    assert_int_equal(console_sit(c, "ex_1", CONSOLE_CONTROLLER, false, &d.seat, &e), -1);
    assert_int_equal(e.code, ERR_CONFLICT);
    assert_string_equal(e.object, "exec/ex_1");
    assert_null(d.seat.console);
    /* another command has a console of its own */
    assert_int_equal(console_sit(c, "ex_2", CONSOLE_CONTROLLER, false, &d.seat, &e), 0);
    console_leave(&a.seat);
    console_leave(&b.seat);
    console_leave(&d.seat);
    console_leave(&d.seat);
    consoles_free(c);
}

static void control_is_free_again_when_its_holder_goes(void **state)
{
    struct consoles *c = consoles_new();
    struct person a = person(), b = person(), d = person();
    struct err e = {0};

    (void)state;
    assert_int_equal(console_sit(c, "ex_1", CONSOLE_CONTROLLER, false, &a.seat, &e), 0);
    assert_int_equal(console_sit(c, "ex_1", CONSOLE_OBSERVER, false, &b.seat, &e), 0);
    console_leave(&a.seat);
    assert_int_equal(b.seat.role, CONSOLE_OBSERVER);
    assert_int_equal(console_sit(c, "ex_1", CONSOLE_ANY, false, &d.seat, &e), 0);
    assert_int_equal(d.seat.role, CONSOLE_CONTROLLER);
    assert_int_equal(a.demoted + b.demoted + d.demoted, 0);
    console_leave(&b.seat);
    console_leave(&d.seat);
    consoles_free(c);
}

static void taking_demotes_the_holder_once(void **state)
{
    struct consoles *c = consoles_new();
    struct person a = person(), b = person();
    struct err e = {0};

    (void)state;
    assert_int_equal(console_sit(c, "ex_1", CONSOLE_CONTROLLER, true, &a.seat, &e), 0);
    assert_int_equal(console_sit(c, "ex_1", CONSOLE_CONTROLLER, true, &b.seat, &e), 0);
    assert_int_equal(a.demoted, 1);
    assert_int_equal(a.seat.role, CONSOLE_OBSERVER);
    assert_int_equal(b.seat.role, CONSOLE_CONTROLLER);
    console_leave(&a.seat); /* who was demoted takes nothing away with him */
    assert_int_equal(console_sit(c, "ex_1", CONSOLE_CONTROLLER, false, &a.seat, &e), -1);
    console_leave(&b.seat);
    consoles_free(c);
}

static void count_member(void *arg, const struct console_seat *s)
{
    (void)s;
    ++*(int *)arg;
}

static void control_is_handed_to_a_member_that_may_have_it(void **state)
{
    struct consoles *c = consoles_new();
    struct person a = person(), b = person(), d = person();
    struct err e = {0};
    int members = 0;

    (void)state;
    a.seat.name = "ada";
    b.seat.name = "bob";
    b.seat.may_control = true;
    d.seat.name = "eve";
    assert_int_equal(console_sit(c, "ex_1", CONSOLE_CONTROLLER, false, &a.seat, &e), 0);
    assert_int_equal(console_sit(c, "ex_1", CONSOLE_OBSERVER, false, &b.seat, &e), 0);
    assert_int_equal(console_sit(c, "ex_1", CONSOLE_OBSERVER, false, &d.seat, &e), 0);
    console_each(c, "ex_1", count_member, &members);
    assert_int_equal(members, 3);
    assert_int_equal(console_give(&a.seat, STR("eve"), &e), -1);
    assert_int_equal(e.code, ERR_FORBIDDEN);
    assert_int_equal(console_give(&a.seat, STR("joe"), &e), -1);
    assert_int_equal(e.code, ERR_NOT_FOUND);
    assert_int_equal(console_give(&d.seat, STR("bob"), &e), -1);
    assert_int_equal(e.code, ERR_CONFLICT);
    assert_int_equal(console_give(&a.seat, STR("bob"), &e), 0);
    assert_int_equal(a.seat.role, CONSOLE_OBSERVER);
    assert_int_equal(b.seat.role, CONSOLE_CONTROLLER);
    assert_int_equal(a.demoted, 0); /* it knows already */
    assert_int_equal(b.demoted, 1);
    assert_int_equal(console_take(&a.seat, &e), 0);
    assert_int_equal(b.seat.role, CONSOLE_OBSERVER);
    console_release(&a.seat);
    assert_int_equal(a.seat.role, CONSOLE_OBSERVER);
    console_leave(&a.seat);
    console_leave(&b.seat);
    console_leave(&d.seat);
    consoles_free(c);
}

static void input_that_is_being_written_cannot_be_taken(void **state)
{
    struct consoles *c = consoles_new();
    struct console_seat writer = {0};
    struct person a = person();
    struct err e = {0};

    (void)state;
    assert_int_equal(console_sit(c, "ex_1", CONSOLE_CONTROLLER, false, &writer, &e), 0);
    assert_int_equal(console_sit(c, "ex_1", CONSOLE_CONTROLLER, true, &a.seat, &e), -1);
    assert_int_equal(console_sit(c, "ex_1", CONSOLE_ANY, true, &a.seat, &e), 0);
    assert_int_equal(a.seat.role, CONSOLE_OBSERVER);
    console_leave(&a.seat);
    console_leave(&writer);
    consoles_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_controls_and_the_others_watch),
        cmocka_unit_test(control_is_free_again_when_its_holder_goes),
        cmocka_unit_test(taking_demotes_the_holder_once),
        cmocka_unit_test(control_is_handed_to_a_member_that_may_have_it),
        cmocka_unit_test(input_that_is_being_written_cannot_be_taken),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
