#include "cli/term.h"

#include <errno.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

static struct termios before;
static bool is_raw;

bool term_is_on(int fd)
{
    return isatty(fd);
}

void term_size(int *ret_rows, int *ret_cols)
{
    static const int fds[] = {STDOUT_FILENO, STDIN_FILENO, STDERR_FILENO};
    struct winsize w;

    *ret_rows = 24;
    *ret_cols = 80;
    for (size_t i = 0; i < ARRAY_LEN(fds); i++) {
        if (ioctl(fds[i], TIOCGWINSZ, &w) == 0 && w.ws_row > 0 && w.ws_col > 0) {
            *ret_rows = w.ws_row;
            *ret_cols = w.ws_col;
            return;
        }
    }
}

int term_raw(struct err *e)
{
    static bool registered;
    struct termios raw;

    if (is_raw)
        return 0;
    if (tcgetattr(STDIN_FILENO, &before) < 0)
        return err_set(e, ERR_INTERNAL, errno, "read the terminal's settings");
    raw = before;
    cfmakeraw(&raw);
    if (!registered)
        registered = atexit(term_restore) == 0;
    if (tcsetattr(STDIN_FILENO, TCSADRAIN, &raw) < 0)
        return err_set(e, ERR_INTERNAL, errno, "put the terminal into raw mode");
    is_raw = true;
    return 0;
}

void term_restore(void)
{
    if (!is_raw)
        return;
    is_raw = false;
    while (tcsetattr(STDIN_FILENO, TCSADRAIN, &before) < 0 && errno == EINTR)
        continue;
}
