/* server: holtd's connection to holt-spawn. */
#pragma once

#include "wire/spawn.h"

CHECKED int server_listen(int state_dir, struct err *e);
/* fd: a descriptor to send along, or -1; the caller keeps it.  Dropped without a client. */
void server_send(const struct spawn_msg *m, int fd);
void server_done(uint32_t tag, const struct err *e); /* e: NULL for success */
const char *server_installation(void);               /* of the connected client, or "" */
int64_t server_alone_ms(void); /* how long there has been no holtd; -1: it is connected */
