#include "conf/conf.h"

#include "base/buf.h"
#include "base/fd.h"
#include "ops/op.h"
#include "unit.h"

/* The tests run in the source tree's root. */
static void is_fresh(const char *path, const struct buf *printed, const char *how)
{
    AUTO(buf_done) struct buf stored = {0};

    assert_int_equal(file_read(path, 16 << 20, &stored), 0);
    if (!str_eq(buf_str(&stored), buf_str(printed)))
        fail_msg("%s is stale: `holtd %s > %s`", path, how, path);
}

static void the_description_of_the_settings_is_fresh(void **state)
{
    AUTO(buf_done) struct buf b = {0};

    (void)state;
    conf_set_runtimes((const char *const[]){"native", "runc", "crun", "runsc", "vm", "fake",
                                            NULL}); /* driver/table.c */
    conf_print_markdown(&b);
    is_fresh("docs/settings.md", &b, "--print-settings-doc");
}

static void the_description_of_the_api_is_fresh(void **state)
{
    AUTO(buf_done) struct buf b = {0};

    (void)state;
    op_openapi(&b, holt_version);
    is_fresh("api/openapi.json", &b, "--print-openapi");
}

static void help_fits_a_terminal(void **state)
{
    AUTO(buf_done) struct buf b = {0};
    struct str rest, line;

    (void)state;
    conf_print_help(&b);
    for (rest = buf_str(&b); rest.n > 0;) {
        line = str_cut(rest, '\n', &rest);
        if (line.n > 92)
            fail_msg("too long: '" STR_FMT "'", STR_ARG(line));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_description_of_the_settings_is_fresh),
        cmocka_unit_test(the_description_of_the_api_is_fresh),
        cmocka_unit_test(help_fits_a_terminal),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
