/* native: private to src/driver/native: the client of holt-spawn (docs/protocol-spawn.md), which
 * makes the sandboxes: its calls and connection (call.c), the operations on top (native.c).
 * A call is one request; its reply comes in any order.  When holt-spawn dies it is started anew and
 * what may be asked twice is asked again; a create under way is told as failed, and the owner's
 * remove cleans up after it.  Sandboxes go on meanwhile.  Thread: the loop's. */
#pragma once

#include "base/list.h"
#include "base/map.h"
#include "core/sandbox/driver.h"
#include "driver/native/spawn_link.h"

extern const struct driver_ops driver_native;

struct native {
    struct driver d;
    struct driver_config c;
    struct spawn_link_home home;
    char *path, *bindir, *installation;
    int fd; /* -1: no connection */
    uv_poll_t poll;
    uv_timer_t timer; /* calls that are over, and the next try to connect */
    int events;       /* asked of the poll handle */
    bool polled, closed;
    bool greeted;        /* it has said welcome, and takes requests */
    int64_t greet_until; /* or it is given up */
    int spawned;         /* pidfd of a holt-spawn that we started; -1: none */
    uint32_t features, last_tag;
    uint32_t shells;   /* that holt-spawn is to keep ready; SPAWN_SHELLS_KEEP until that is known */
    struct list calls; /* in the order they were made */
    size_t call_count;
    struct map boxes; /* struct native_box: those whose init runs */
    unsigned refs;
    char packet[SPAWN_PACKET_MAX];
};

struct native_box {
    bool quiet; /* its end was asked for */
};

struct call {
    struct list node;
    struct native *n;
    uint32_t tag;
    enum spawn_type type;
    char id[ID_SIZE];
    char *packet; /* to send, and to send again */
    size_t size;
    bool sent, over;
    int64_t since_ms;
    int tries, fd;
    struct spawn_link_fds fds; /* that came with the answer */
    struct err err;
    struct driver_found *found;
    size_t found_count;
    void *arg;
    void (*finish)(struct call *c, const struct spawn_msg *m); /* m: NULL after a failure */
    union {
        driver_done done;
        driver_made_cb made;
        driver_stats_cb stats;
        driver_fd_cb fd;
        driver_bytes_cb bytes;
        driver_list_cb list;
        driver_listeners_cb listeners;
        driver_pooled_cb pooled;
    } cb;
};

static inline struct native *native_of(const struct driver *d)
{
    return CONTAINER_OF(d, struct native, d);
}

/* --- calls --- */
struct call *call_new(struct native *n, enum spawn_type type, const char *id, void *arg);
/* Encodes the call's request; what fails is told on the loop's next turn. */
void call_ask(struct call *c, struct spawn_msg *m);
void call_ask_named(struct call *c); /* a request that is the sandbox's id alone */
void call_finish_done(struct call *c, const struct spawn_msg *m); /* for cb.done; it may be NULL */
void call_end(struct call *c, const struct spawn_msg *m); /* m: NULL after a failure; frees it */

/* --- the connection --- */
CHECKED int native_watch(struct native *n, int fd, struct err *e); /* takes fd */
void native_poll_closed(uv_handle_t *h);
void native_wake(struct native *n, uint64_t ms);
struct call *native_make_ahead(struct native *n); /* what it is to keep ready; nobody is told */
void native_box_add(struct native *n, const char *id); /* its init runs */
void native_list(struct driver *d, driver_list_cb done, void *arg);
