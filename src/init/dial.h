/* dial: connections from outside to a server inside the sandbox. */
#pragma once

#include "wire/guest.h"

void dial_open(const struct guest_msg *m);
