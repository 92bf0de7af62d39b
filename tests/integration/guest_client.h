/* guest_client: holtd's side of the guest protocol for tests and benchmarks: blocking, one exec at
 * a time.  Every failure ends the test program with a message. */
#pragma once

#include "wire/flow.h"

struct guest_client {
    int fd;
    struct guest_reader in;
    uint32_t next_channel;
    uint8_t epoch[16];
    struct guest_exec_row execs[16]; /* of the last hello; ids point into ids */
    char ids[16][32];
    uint32_t exec_n;
};

struct guest_result {
    struct buf out[2];
    struct flow_in flow[2];
    uint64_t from[2]; /* where each stream began on this connection */
    bool ended;
    struct guest_exec_exit exit;
};

void guest_client_connect(struct guest_client *c, const char *path);
/* The same, without waiting for the answer: what follows may be sent at once. */
void guest_client_connect_fast(struct guest_client *c, const char *path);
/* On a stream that knows no connections (a port): skips to init's answer to this hello. */
void guest_client_port(struct guest_client *c, int fd, uint8_t nonce);
void guest_client_close(struct guest_client *c);
void guest_client_send(struct guest_client *c, const struct guest_msg *m);
struct guest_msg guest_client_next(struct guest_client *c); /* valid until the next call */

uint32_t guest_client_start(struct guest_client *c, const char *id, uint32_t flags,
                            const char *const *argv);
uint32_t guest_client_attach(struct guest_client *c, const char *id, uint64_t out, uint64_t err);
/* Takes output until the command's end, or until `stop_at` bytes of stdout came; acknowledges as it
 * goes. */
void guest_client_collect(struct guest_client *c, uint32_t channel, size_t stop_at,
                          struct guest_result *r);
void guest_client_forget(struct guest_client *c, uint32_t channel);
void guest_result_done(struct guest_result *r);
