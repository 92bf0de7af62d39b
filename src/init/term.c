#include "init/term.h"

#include "base/fd.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

int term_open(unsigned rows, unsigned cols, int *ret_master, int *ret_slave, struct err *e)
{
    AUTO(fd_close) int master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
    int unlocked = 0, slave;

    if (master < 0 || ioctl(master, TIOCSPTLCK, &unlocked) < 0)
        return err_set(e, err_code_from_errno(errno), errno, "open a terminal");
    slave = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC); /* no path to be fooled by */
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

void term_session_signal(pid_t session, int signal)
{
    DIR *proc = opendir("/proc");
    struct dirent *d;

    if (!proc)
        return;
    while ((d = readdir(proc))) {
        uint64_t pid;

        if (str_parse_u64(str_of(d->d_name), &pid) == 0 && pid > 1 && pid <= INT32_MAX &&
            getsid((pid_t)pid) == session)
            (void)kill((pid_t)pid, signal);
    }
    (void)closedir(proc);
}
