#include "base/thread.h"

#include "unit.h"

#include <pthread.h>

static void *asked_elsewhere(void *arg)
{
    *(bool *)arg = thread_is_loop();
    return NULL;
}

static bool elsewhere(void)
{
    bool is = false;
    pthread_t t;

    assert_int_equal(pthread_create(&t, NULL, asked_elsewhere, &is), 0);
    assert_int_equal(pthread_join(t, NULL), 0);
    return is;
}

static void only_the_thread_that_claimed_the_loop_is_it(void **state)
{
    (void)state;
    assert_true(thread_is_loop() && elsewhere());
    thread_claim_loop();
    assert_true(thread_is_loop());
    assert_false(elsewhere());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_the_thread_that_claimed_the_loop_is_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
