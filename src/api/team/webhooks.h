/* webhooks: private to src/api: sends events to the webhooks (core/notify/webhook.h), signed, one
 * at a time and in order for each; tries again with longer and longer pauses, then gives the event
 * up as a dead letter and goes on.  A slow receiver delays nobody else: its subscription pauses.
 * Thread: the loop's. */
#pragma once

#include "api/request.h"
#include "net/client.h"

struct webhooks;
/* Reads the key and the webhooks, and begins.  Blocking: at start-up only. */
CHECKED int webhooks_open(struct api *a, struct err *e);
/* Ends all deliveries; they continue after the next start.  While the loop still turns. */
void webhooks_stop(struct api *a);
void webhooks_close(struct api *a); /* after store_close; takes one that was not opened */
void webhooks_tick(struct api *a);  /* once a second: retries */
/* Whether the setting webhook_hosts allows it. */
CHECKED int webhooks_check_url(const struct api *a, struct str url, struct err *e);
/* One POST to a receiver that the setting allows, with the times of webhooks; ops as client_start.
 */
struct webhook_post {
    struct str url;
    const struct http_header *headers;
    size_t header_count;
    struct str body;
    const struct client_ops *ops;
    void *arg;
};
CHECKED int webhooks_post(struct api *a, const struct webhook_post *p, struct client **ret,
                          struct err *e);
/* An event of every type would be one of the command's own sandbox, too. */
CHECKED int webhooks_check_command(size_t types, struct err *e);
struct str webhooks_key(const struct api *a);
