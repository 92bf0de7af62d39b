/* native: private to src/driver/native: the client of holt-spawn (docs/protocol-spawn.md), which
 * makes the sandboxes: its calls (call.c, on link/helper.h), the operations on top (native.c).
 * A call is one request; replies come in any order.  When holt-spawn dies it is restarted and
 * repeatable requests are sent again; a create in progress fails, and the owner's remove cleans up
 * after it.  Sandboxes keep running meanwhile.  Thread: the loop's. */
#pragma once

#include "base/map.h"
#include "core/sandbox/driver.h"
#include "link/helper.h"
#include "wire/spawn.h"

extern const struct driver_ops driver_native;

struct native {
    struct driver d;
    struct driver_config c;
    struct helper *link;
    char *installation;
    bool opened, closed;
    uint32_t features;
    uint32_t spares;      /* to be kept ready; SPAWN_SPARES_KEEP until that is known */
    struct map boxes;     /* struct native_box: those whose init runs */
    uv_timer_t timer;     /* the next attempt of the connects */
    struct list connects; /* struct init_connect */
};

struct native_box {
    bool quiet; /* its end was requested */
};

struct call {
    struct helper_call h;
    struct native *n;
    enum spawn_type type;
    char id[ID_SIZE];
    struct driver_found *found;
    size_t found_count;
    void *arg;
    void (*finish)(struct call *c, const struct spawn_msg *m); /* m: NULL after a failure */
    union {
        driver_done done;
        driver_made_cb made;
        driver_stats_cb stats;
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
/* Encodes the call's request; failures are reported on the loop's next turn. */
void call_ask(struct call *c, struct spawn_msg *m);
void call_ask_named(struct call *c); /* a request with the sandbox's id only */
void call_finish_done(struct call *c, const struct spawn_msg *m); /* for cb.done; it may be NULL */

/* --- the connection --- */
extern const struct helper_ops native_link_ops; /* arg: the native */
void native_connect(struct driver *d, const char *id, driver_fd_cb done, void *arg);
void native_connects_end(struct native *n);       /* their callbacks get "cancelled" */
struct call *native_make_ahead(struct native *n); /* sets what to keep ready; without a callback */
void native_box_add(struct native *n, const char *id); /* its init runs */
void native_list(struct driver *d, driver_list_cb done, void *arg);
