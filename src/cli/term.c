/* term: raw mode, hidden input and size of the terminal. */
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

size_t term_width(void)
{
    struct winsize w;

    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) == 0 ? w.ws_col : 0;
}

static int change(void (*how)(struct termios *t), struct err *e)
{
    static bool registered;
    struct termios t;

    if (is_raw)
        return 0;
    if (tcgetattr(STDIN_FILENO, &before) < 0)
        return err_set(e, ERR_INTERNAL, errno, "read the terminal's settings");
    t = before;
    how(&t);
    if (!registered)
        registered = atexit(term_restore) == 0;
    if (tcsetattr(STDIN_FILENO, TCSADRAIN, &t) < 0)
        return err_set(e, ERR_INTERNAL, errno, "change the terminal's settings");
    is_raw = true;
    return 0;
}

int term_raw(struct err *e)
{
    return change(cfmakeraw, e);
}

static void by_keys(struct termios *t)
{
    t->c_lflag &= ~(tcflag_t)(ECHO | ICANON);
}

int term_keys(struct err *e)
{
    return change(by_keys, e);
}

/* Disables signal keys too: dying here would leave the terminal without echo. */
static void hide_input(struct termios *t)
{
    t->c_lflag &= ~(tcflag_t)(ECHO | ISIG);
}

int term_secret(const char *prompt, char *to, size_t size, struct err *e)
{
    ssize_t n;

    if (change(hide_input, e) < 0)
        return -1;
    (void)fputs(prompt, stderr);
    do
        n = read(STDIN_FILENO, to, size - 1);
    while (n < 0 && errno == EINTR);
    term_restore();
    if (n < 0)
        return err_set(e, ERR_INTERNAL, errno, "read from the terminal");
    to[n] = '\0';
    to[strcspn(to, "\r\n")] = '\0';
    if (memchr(to, 3, (size_t)n)) /* Ctrl-C */
        return err_set(e, ERR_CANCELLED, 0, "interrupted");
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
