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

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(metrics_print_as_prometheus_text)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
