#include "base/log.h"

#include "base/buf.h"
#include "base/fd.h"
#include "unit.h"

#include <fcntl.h>
#include <unistd.h>

/* What the call writes on standard error. */
#define LOGGED(to, call)                                                                           \
    do {                                                                                           \
        int pipe_[2], keep_ = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);                            \
        assert_int_equal(pipe2(pipe_, O_CLOEXEC), 0);                                              \
        assert_true(dup2(pipe_[1], STDERR_FILENO) >= 0);                                           \
        call;                                                                                      \
        assert_true(dup2(keep_, STDERR_FILENO) >= 0);                                              \
        fd_close(keep_);                                                                           \
        fd_close(pipe_[1]);                                                                        \
        assert_int_equal(fd_read_all(pipe_[0], 65536, to), 0);                                     \
        fd_close(pipe_[0]);                                                                        \
    } while (0)

static void a_client_cannot_forge_a_line(void **state)
{
    AUTO(buf_done) struct buf b = {0};
    char *text;

    (void)state;
    log_setup(LOG_INFO, LOG_LOGFMT);
    LOGGED(&b, log_info("hello world", LOG_C("name", "a\nlevel=error msg=\"x\""), LOG_N("n", -5),
                        LOG_S("bytes", STR("\xff\x01"))));
    text = buf_cstr(&b);
    assert_non_null(strstr(text, " level=info msg=\"hello world\" name=\"a\\nlevel=error "
                                 "msg=\\\"x\\\"\" n=-5 bytes=\"\\u00ff\\u0001\"\n"));
    assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
}

static void json_lines_and_levels(void **state)
{
    AUTO(buf_done) struct buf b = {0}, quiet = {0};

    (void)state;
    log_setup(LOG_WARN, LOG_JSON);
    LOGGED(&b, log_warn("careful", LOG_C("who", "me \"x\"")));
    assert_non_null(strstr(
        buf_cstr(&b), "\",\"level\":\"warn\",\"msg\":\"careful\",\"who\":\"me \\\"x\\\"\"}\n"));
    LOGGED(&quiet, log_info("not shown"));
    assert_int_equal(buf_len(&quiet), 0);
    assert_false(log_is_on(LOG_INFO));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_client_cannot_forge_a_line),
        cmocka_unit_test(json_lines_and_levels),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
