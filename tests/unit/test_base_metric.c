#include "base/metric.h"

#include "unit.h"

static void metrics_print_as_prometheus_text(void **state)
{
    static struct metric plain = {"t_total", "All of them.", METRIC_COUNTER};
    static struct metric family = {"t_by_code", "By code.", METRIC_GAUGE};
    static struct metric time = {"t_seconds", "How long.", METRIC_HISTOGRAM};
    AUTO(buf_done) struct buf b = {0};
    const char *text;

    (void)state;
    metric_add(&plain);
    metric_add(&plain);
    metric_inc(&plain, 3);
    metric_set(metric_child(&family, "code=\"200\""), 7);
    assert_ptr_equal(metric_child(&family, "code=\"200\""), metric_child(&family, "code=\"200\""));
    metric_set(metric_child(&family, "code=\"500\""), 1);
    metric_add(&time);
    metric_observe(&time, 70000);
    metric_observe(&time, 20000000000);
    metric_print(&b);
    text = buf_cstr(&b);
    assert_non_null(
        strstr(text, "# HELP t_total All of them.\n# TYPE t_total counter\nt_total 3\n"));
    assert_null(strstr(strstr(text, "t_total 3") + 1, "t_total 3"));
    assert_non_null(strstr(text, "t_by_code{code=\"200\"} 7\n"));
    assert_non_null(strstr(text, "t_by_code{code=\"500\"} 1\n"));
    assert_null(strstr(text, "t_by_code 0"));
    assert_non_null(strstr(text, "t_seconds_bucket{le=\"5e-05\"} 0\n"));
    assert_non_null(strstr(text, "t_seconds_bucket{le=\"0.0001\"} 1\n"));
    assert_non_null(strstr(text, "t_seconds_bucket{le=\"10\"} 1\n"));
    assert_non_null(strstr(text, "t_seconds_bucket{le=\"+Inf\"} 2\n"));
    assert_non_null(strstr(text, "t_seconds_sum 20.000070000\nt_seconds_count 2\n"));
}

static void bounds_and_names_of_ones_own(void **state)
{
    static const struct metric_bounds bounds = {2, {1000000000, 60000000000}};
    static struct metric time = {
        .name = "u_seconds", .help = "How long.", .kind = METRIC_HISTOGRAM, .bounds = &bounds};
    AUTO(buf_done) struct buf b = {0};

    (void)state;
    metric_observe(&time, 1000000000);
    metric_observe(&time, 2000000000);
    metric_observe(metric_child(&time, "a=\"1\""), 70000000000);
    metric_print_as(&b, &time, "other_ms", "The same.", 1e6);
    assert_string_equal(buf_cstr(&b), "# HELP other_ms The same.\n# TYPE other_ms histogram\n"
                                      "other_ms_bucket{le=\"1000\"} 1\n"
                                      "other_ms_bucket{le=\"60000\"} 2\n"
                                      "other_ms_bucket{le=\"+Inf\"} 2\n"
                                      "other_ms_sum 3000.000000000\nother_ms_count 2\n");
    buf_clear(&b);
    metric_print(&b);
    assert_non_null(strstr(buf_cstr(&b), "u_seconds_bucket{a=\"1\",le=\"60\"} 0\n"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(metrics_print_as_prometheus_text),
        cmocka_unit_test(bounds_and_names_of_ones_own),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
