/* native_in: what the files of the native runtime share.  Thread: the loop's. */
#pragma once

#include "base/list.h"
#include "base/map.h"
#include "core/driver.h"
#include "driver/native/spawn_link.h"

struct native {
    struct driver d;
    struct driver_config c;
    struct spawn_link_home home;
    char *path, *bindir, *installation;
    int fd; /* -1: no connection */
    uv_poll_t poll;
    uv_timer_t timer; /* calls that are over, and the next try to connect */
    bool polled, closed;
    bool greeted;        /* it has said welcome, and takes requests */
    int64_t greet_until; /* or it is given up */
    pid_t spawned;       /* a holt-spawn that we started; 0: none that is ours to reap */
    uint32_t features, last_tag;
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
        driver_list_cb list;
    } cb;
};

/* --- native_call.c: requests under way, and the connection they go over --- */
struct call *call_new(struct native *n, enum spawn_type type, const char *id, void *arg);
void call_ask(struct call *c, struct spawn_msg *m); /* its end is c->finish */
void call_end(struct call *c, const struct spawn_msg *m);
void native_wake(struct native *n, uint64_t ms); /* looks at the calls then */
void native_box_add(struct native *n, const char *id);
CHECKED int native_watch(struct native *n, int fd, struct err *e); /* takes fd */
void native_unwatch(struct native *n);

/* --- native.c --- */
void native_list(struct driver *d, driver_list_cb done, void *arg);
