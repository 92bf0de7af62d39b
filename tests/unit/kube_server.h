/* kube_server: an API server by script, in a thread: each step is one connection. */
#pragma once

#include "base/buf.h"
#include "base/fd.h"
#include "base/mem.h"
#include "unit.h"

#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

struct kube_step {
    const char *wants;   /* part of the request; NULL: anything */
    const char *lacks;   /* no part of it */
    const char *reply;   /* sent as it is; NULL: the connection is cut */
    struct str frames;   /* after it: bytes of a WebSocket */
    size_t endless;      /* bytes of a body without an end of line behind it */
    const char *accepts; /* a WebSocket: the reply is made, with this protocol */
    size_t reads;        /* bytes of frames to read before the rest */
    bool hold;           /* until the client closes */
};

struct kube_server {
    pthread_t thread;
    int listener, port;
    const struct kube_step *steps;
    size_t count, served;
    char fault[256]; /* of the first request that was not as scripted */
    struct buf frames_in;
};

void kube_server_start(struct kube_server *s, const struct kube_step *steps, size_t count);
void kube_server_end(struct kube_server *s); /* asserts that all steps were served, as scripted */
