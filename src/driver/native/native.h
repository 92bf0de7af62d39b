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

/* The connection to holt-spawn, which takes one: all runtimes that it makes share it. */
struct native {
    struct native *next; /* of this process */
    unsigned users;      /* drivers that have it */
    char *state;
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

struct native_driver {
    struct driver d;
    struct native *n;
    const char *runtime; /* as holt-spawn knows it; "": native */
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
    char after[ID_SIZE]; /* list: the last of the page before */
    const char *runtime; /* list: only its; NULL: all */
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
        driver_snapped_cb snapped;
    } cb;
};

static inline struct native *native_of(const struct driver *d)
{
    return CONTAINER_OF(d, struct native_driver, d)->n;
}

/* --- calls --- */
struct call *call_new(struct native *n, enum spawn_type type, const char *id, void *arg);
/* Encodes the call's request; failures are reported on the loop's next turn. */
void call_ask(struct call *c, struct spawn_msg *m);
void call_ask_named(struct call *c); /* a request with the sandbox's id only */
void call_finish_done(struct call *c, const struct spawn_msg *m); /* for cb.done; it may be NULL */

/* --- the connection --- */
extern const struct helper_ops native_link_ops;   /* arg: the native */
void native_connects_end(struct native *n);       /* their callbacks get "cancelled" */
struct call *native_make_ahead(struct native *n); /* sets what to keep ready; without a callback */
void native_box_add(struct native *n, const char *id); /* its init runs */
void native_list(struct native *n, const char *runtime, driver_list_cb done, void *arg);

/* --- for the runtimes of src/driver/oci --- */
/* ops: the driver's own row, with native's functions (NATIVE_OPS). */
CHECKED int native_open_as(const struct driver_config *c, const struct driver_ops *ops,
                           const char *runtime, struct driver **ret, struct err *e);
/* What all of them do the same way. */
void native_close(struct driver *d);
uint32_t native_enforces(const struct driver *d);
void native_create(struct driver *d, const struct driver_spec *s, driver_made_cb done, void *arg);
void native_confirm(struct driver *d, const char *id);
void native_connect(struct driver *d, const char *id, driver_fd_cb done, void *arg);
void native_kill(struct driver *d, const char *id, enum driver_scope scope, driver_done done,
                 void *arg);
void native_remove(struct driver *d, const char *id, bool keep, driver_done done, void *arg);
void native_pause(struct driver *d, const char *id, bool on, driver_done done, void *arg);
void native_stats(struct driver *d, const char *id, driver_stats_cb done, void *arg);
void native_ooms(struct driver *d, const char *id, driver_done done, void *arg);
void native_listen(struct driver *d, const char *id, driver_listeners_cb done, void *arg);
void native_list_own(struct driver *d, driver_list_cb done, void *arg);
void native_adopt(struct driver *d, const char *id, driver_made_cb done, void *arg);
void native_volume_remove(struct driver *d, const struct driver_volume *v, driver_done done,
                          void *arg);
void native_volume_measure(struct driver *d, const struct driver_volume *v, driver_bytes_cb done,
                           void *arg);
void native_layer_remove(struct driver *d, const char *id, driver_done done, void *arg);
void native_snapshot(struct driver *d, const struct driver_snapshot *s, driver_snapped_cb done,
                     void *arg);
#define NATIVE_OPS                                                                                 \
    .close = native_close, .enforces = native_enforces, .create = native_create,                   \
    .confirm = native_confirm, .connect = native_connect, .kill = native_kill,                     \
    .remove = native_remove, .pause = native_pause, .stats = native_stats, .ooms = native_ooms,    \
    .listen = native_listen, .list = native_list_own, .adopt = native_adopt,                       \
    .volume_remove = native_volume_remove, .volume_measure = native_volume_measure,                \
    .layer_remove = native_layer_remove, .snapshot = native_snapshot
