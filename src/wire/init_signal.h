/* init_signal: what holt-spawn tells init where there is no cgroup to do it by (docs/runtime.md).
 * Init takes them as PID 1 only. */
#pragma once

#include <signal.h>

enum init_signal {
    INIT_KILL_WORK = SIGUSR1, /* everything but init */
    INIT_PAUSE = SIGUSR2,
    INIT_RESUME = SIGHUP, /* from outside the sandbox's pid namespace only */
};
