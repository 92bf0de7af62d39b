/* link: the contract's messages, up and down, on the stream to the server.  Thread: the loop's. */
#pragma once

#include "base/str.h"

#include <stdint.h>

struct link_self { /* borrowed for ever */
    const char *id, *secret, *host, *port, *instance, *profile, *loadout;
    int64_t heartbeat_ms; /* 0: as the server says */
};

void link_init(const struct link_self *self);
int64_t
link_tick(int64_t now_ms); /* connects, sends heartbeats; when to call again at the latest */
bool link_takes(void);     /* it is up and has room */
void link_output(struct str id, bool err, int64_t offset,
                 struct str data); /* offset -1: uncounted */
void link_result(struct str id, int code, const char *failure, int64_t duration_ms);
bool link_wants_end(int64_t *ret_grace_ms); /* the server has asked us to end */
void link_goodbye(void);
