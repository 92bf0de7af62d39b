/* term: opens and resizes pseudo-terminals. */
#include "init/term.h"

#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* Opens the peer without a path that could be replaced.  gVisor does not know that, and has a
 * /dev/pts of its own kernel, which nothing from outside can replace. */
static int open_peer(int master)
{
    int slave = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
    unsigned number;
    char path[32];

    if (slave >= 0 || errno != ENOTTY || ioctl(master, TIOCGPTN, &number) < 0)
        return slave;
    (void)snprintf(path, sizeof path, "/dev/pts/%u", number);
    return open(path, O_RDWR | O_NOCTTY | O_NOFOLLOW | O_CLOEXEC);
}

int term_open(unsigned rows, unsigned cols, int *ret_master, int *ret_slave, struct err *e)
{
    AUTO(fd_close) int master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
    int unlocked = 0, slave;

    if (master < 0 || ioctl(master, TIOCSPTLCK, &unlocked) < 0)
        return err_set(e, err_code_from_errno(errno), errno, "open a terminal");
    slave = open_peer(master);
    if (slave < 0)
        return err_set(e, err_code_from_errno(errno), errno, "open a terminal's other end");
    term_resize(master, rows ? rows : 24, cols ? cols : 80);
    *ret_master = TAKE_FD(master);
    *ret_slave = slave;
    return 0;
}

void term_resize(int master, unsigned rows, unsigned cols)
{
    struct winsize ws = {.ws_row = (unsigned short)rows, .ws_col = (unsigned short)cols};

    (void)ioctl(master, TIOCSWINSZ, &ws);
}
