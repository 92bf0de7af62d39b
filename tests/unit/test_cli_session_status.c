#include "cli/session.h"

#include "proto/json.h"
#include "unit.h"

static void statuses(void **state)
{
    static const struct {
        const char *exec;
        int status;
    } t[] = {
        {"{\"exit_code\":0,\"signal\":null}", 0},
        {"{\"exit_code\":300}", 44},
        {"{\"exit_code\":137,\"signal\":9}", 137},
        {"{\"exit_code\":127,\"failure\":\"whatever\"}", 127},
        {"{\"exit_code\":null,\"signal\":15}", -1},
        {"{\"exit_code\":null,\"failure\":\"the sandbox vanished\"}", -1},
        {"{\"exit_code\":\"0\"}", -1},
        {"{\"exit_code\":-1}", -1},
        {"{}", -1},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(t); i++) {
        AUTO(json_decref) json_t *exec = NULL;
        struct err e;

        assert_int_equal(json_read(str_of(t[i].exec), &exec, &e), 0);
        assert_int_equal(session_status(exec), t[i].status);
    }
    assert_int_equal(session_status(NULL), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(statuses)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
