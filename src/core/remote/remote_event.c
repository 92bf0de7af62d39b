/* remote_event: what happens to the link of an agent, in the log. */
#include "base/log.h"
#include "base/mem.h"
#include "core/event/event.h"
#include "core/remote/remote.h"

#include <stdio.h>

struct note {
    const char *type;
    char object[ID_SIZE + 16];
    struct buf data;
};

static int note_work(struct store_tx *tx, void *arg, struct err *e)
{
    const struct note *n = arg;

    (void)e;
    tx_event(
        tx,
        &(struct event_spec){
            .type = n->type, .object = n->object, .actor = "system", .data = buf_str(&n->data)},
        NULL);
    return 0;
}

static void note_end(void *arg, const struct err *e)
{
    struct note *n = arg;

    if (e->code != ERR_NONE)
        log_warn("an event could not be written", LOG_C("type", n->type),
                 LOG_C("object", n->object), LOG_E(e));
    buf_done(&n->data);
    mem_free(n);
}

void remote_event_write(void *store, const char *type, const char *sandbox, struct str data)
{
    struct note *n = xzalloc(sizeof *n);

    n->type = type;
    (void)snprintf(n->object, sizeof n->object, "sandbox/%s", sandbox);
    buf_add_str(&n->data, data);
    store_write(store, STORE_RELAXED, note_work, note_end, n);
}
