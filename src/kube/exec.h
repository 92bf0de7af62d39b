/* exec: one program in a container of a pod, over a WebSocket (v5.channel.k8s.io, or v4 of older
 * servers).  Bytes go in and out in order; the end tells the exit status, or that it is not known.
 * Life: kube_exec_start; ops->opened; ops->out and ops->err; ops->closed is the last call, comes
 * exactly once and never from inside kube_exec_start.  Thread: the loop's. */
#pragma once

#include "kube/kube.h"

struct kube_exec;
struct kube_exec_ops { /* any but closed may be NULL */
    void (*opened)(struct kube_exec *x);
    void (*out)(struct kube_exec *x, struct str bytes);
    void (*err)(struct kube_exec *x, struct str bytes);
    void (*drained)(struct kube_exec *x);
    /* exit: its status; -1: not known, and e has the reason. */
    void (*closed)(struct kube_exec *x, int exit, const struct err *e);
};
struct kube_exec_request {
    const char *space, *pod, *container;
    const char *const *argv; /* NULL at the end */
    bool in;                 /* it has a standard input */
    const struct kube_exec_ops *ops;
    void *arg;
};

CHECKED int kube_exec_start(struct kube *k, const struct kube_exec_request *r,
                            struct kube_exec **ret, struct err *e);
void *kube_exec_arg(const struct kube_exec *x);
int kube_exec_write(struct kube_exec *x, struct str bytes) CHECKED; /* 1: wait for drained */
/* False: this server cannot end the input; the program must know its length. */
CHECKED bool kube_exec_write_end(struct kube_exec *x);
void kube_exec_pause(struct kube_exec *x, bool on); /* no more output */
void kube_exec_cancel(struct kube_exec *x);         /* closed follows; the program may go on */
