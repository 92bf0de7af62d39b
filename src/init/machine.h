/* machine: what init does where it is the first program of a virtual machine: it takes orders on
 * the power port, a virtio-serial port of its own, one line each (docs/protocol-virt.md).  Orders
 * come from the host, which is trusted. */
#pragma once

/* Waits for the orders that make the machine somebody's, obeys them, and starts init again with
 * the options among them.  A machine saved while it waits here can be continued many times: it has
 * no name, no key and no random number of its own yet.  Does not return. */
_Noreturn void machine_wait(const char *port);
/* Takes fd, the open power port: says that init runs, then obeys `ping`, `kill` and `off`. */
void machine_power(int fd);
