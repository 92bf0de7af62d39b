#include "api/health.h"

#include "fake_xchg.h"
#include "unit.h"

static struct health *health;
static bool serving;

static enum health_state ask(const char *service, void *arg)
{
    (void)arg;
    if (strcmp(service, "") != 0 && strcmp(service, "s") != 0)
        return HEALTH_NO_SUCH_SERVICE;
    return serving ? HEALTH_SERVING : HEALTH_NOT_SERVING;
}

static int setup(void **state)
{
    static const char *const services[] = {"", "s", NULL};

    serving = true;
    health = health_new(ask, services, NULL);
    return fake_setup(state);
}

static int teardown(void **state)
{
    health_free(TAKE(health));
    return fake_teardown(state);
}

/* message: with its frame's head. */
static void call(const char *method, struct str message)
{
    static const char *const fields[] = {"content-type", "application/grpc", NULL};

    grpc_start(fake_request(HTTP_2, "POST", method, fields),
               grpc_find(health_grpc, health_grpc_count, str_of(method)), health);
    xchg_body(fake_x, message);
    xchg_body_end(fake_x);
}

static void check_tells_the_state(void **state)
{
    (void)state;
    call("/grpc.health.v1.Health/Check", str_make("\0\0\0\0\0", 5));
    assert_memory_equal(buf_data(&note.out), "\0\0\0\0\2\x08\x01", 7);
    assert_string_equal(buf_cstr(&note.trailer), "grpc-status: 0\n");
    fake_gone(true);
    buf_clear(&note.out);
    serving = false;
    call("/grpc.health.v1.Health/Check", str_make("\0\0\0\0\3\x0a\x01s", 8));
    assert_memory_equal(buf_data(&note.out), "\0\0\0\0\2\x08\x02", 7);
}

static void check_refuses_what_it_does_not_know(void **state)
{
    (void)state;
    call("/grpc.health.v1.Health/Check", str_make("\0\0\0\0\3\x0a\x01x", 8));
    assert_non_null(strstr(buf_cstr(&note.head), "grpc-status: 5\n"));
    fake_gone(true);
    call("/grpc.health.v1.Health/Check", str_make("\0\0\0\0\2\x0a\x09", 7));
    assert_non_null(strstr(buf_cstr(&note.head), "grpc-status: 3\n"));
    fake_gone(true);
    buf_clear(&note.head);
    call("/grpc.health.v1.Health/Check", STR(""));
    assert_non_null(strstr(buf_cstr(&note.head), "grpc-status: 3\n"));
}

static void list_names_every_service(void **state)
{
    static const char expected[] =
        "\0\0\0\0\x0f\x0a\x04\x12\x02\x08\x01\x0a\x07\x0a\x01s\x12\x02\x08\x01";

    (void)state;
    call("/grpc.health.v1.Health/List", str_make("\0\0\0\0\0", 5));
    assert_int_equal(buf_len(&note.out), sizeof expected - 1);
    assert_memory_equal(buf_data(&note.out), expected, sizeof expected - 1);
}

static void watch_tells_each_change_once(void **state)
{
    (void)state;
    call("/grpc.health.v1.Health/Watch", str_make("\0\0\0\0\0", 5));
    assert_int_equal(buf_len(&note.out), 7);
    assert_false(note.ended);
    health_changed(health);
    assert_int_equal(buf_len(&note.out), 7);
    serving = false;
    health_changed(health);
    assert_int_equal(buf_len(&note.out), 14);
    assert_int_equal(buf_data(&note.out)[13], 2);
    health_free(TAKE(health));
    assert_non_null(strstr(buf_cstr(&note.trailer), "grpc-status: 14\n"));
}

static void a_watch_of_an_unknown_service_waits(void **state)
{
    (void)state;
    call("/grpc.health.v1.Health/Watch", str_make("\0\0\0\0\3\x0a\x01x", 8));
    assert_int_equal(buf_data(&note.out)[6], 3); /* SERVICE_UNKNOWN */
    assert_false(note.ended);
    fake_gone(false);
    health_changed(health);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(check_tells_the_state),
        TEST(check_refuses_what_it_does_not_know),
        TEST(list_names_every_service),
        TEST(watch_tells_each_change_once),
        TEST(a_watch_of_an_unknown_service_waits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
