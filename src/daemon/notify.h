/* notify: reports our state to a service manager (sd_notify(3)): one datagram to $NOTIFY_SOCKET,
 * which needs no library. */
#pragma once

#include "base/macro.h"

/* "READY=1", "STOPPING=1" …  Without a manager it does nothing; failures are ignored. */
void notify_send(const char *state);
void notify_reloading(void); /* with the time that systemd requires */
