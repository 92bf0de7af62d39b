/* webhook: where events are sent to, a URL or a command (rows; api/team/webhooks.h delivers).  The
 * event log is the queue: a webhook remembers the last event that was delivered or given up, so
 * nothing is lost by a restart and nothing waits in memory.  The secret of its signatures is
 * derived from a key of the installation and its id, and is stored nowhere.  Each change is an
 * event ("webhook.added", "webhook.removed"); deliveries are rows only. Thread, ownership, errors:
 * core/team/team.h. */
#pragma once

#include "core/team/team.h"

#define WEBHOOKS_MAX 100
#define WEBHOOK_SECRET 65    /* hex digits and a NUL */
#define DELIVERIES_KEPT 1000 /* of one webhook */
#define WEBHOOK_TYPES_MAX 32

enum delivery_state { DELIVERY_DONE, DELIVERY_FAILING, DELIVERY_DEAD, DELIVERY_STATES };

struct webhook {
    struct str id, url, types, created_by;
    struct str command, allow; /* instead of a URL; the hosts it may reach */
    int64_t done_seq, created_ms;
};
struct webhook_list {
    struct webhook *v;
    size_t n;
};
struct delivery {
    struct str webhook, type, error, output;
    int64_t seq, attempts, status, at_ms;
    enum delivery_state state;
};
struct delivery_list {
    struct delivery *v;
    size_t n;
};

void webhook_secret(struct str key, struct str id, char ret[WEBHOOK_SECRET]);
/* w's url or command, and types are given; done_seq: it gets later events only. */
CHECKED int webhook_add(struct team *t, struct webhook *w, struct err *e);
CHECKED int webhook_remove(struct team *t, struct str id, struct err *e);
CHECKED int webhook_need(struct team *t, struct str id, struct webhook *ret, struct err *e);
CHECKED int webhook_all(struct team *t, struct webhook_list *ret, struct err *e); /* oldest first */
/* The result so far; not DELIVERY_FAILING: the webhook goes on to the next event. */
CHECKED int webhook_delivered(struct team *t, const struct delivery *d, struct err *e);
/* state < 0: any.  Newest first. */
CHECKED int webhook_deliveries(struct team *t, struct str id, int state, int64_t limit,
                               struct delivery_list *ret, struct err *e);
