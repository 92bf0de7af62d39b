/* lines: the reply to a watch: one JSON event per line, in pieces of any size.  No I/O.
 * A line that is cut off at the end of the reply is no event.  Errors: a line past the limit, or
 * one that is no event; the watch then begins again. */
#pragma once

#include "proto/json.h"

#define KUBE_LINE_MAX (4 << 20) /* etcd keeps objects of 1.5 MiB; JSON is larger */

enum kube_change { KUBE_ADDED, KUBE_MODIFIED, KUBE_DELETED, KUBE_BOOKMARK, KUBE_ERROR };

struct kube_lines { /* zero-initialised: empty */
    struct buf in;
    size_t scanned; /* of it: has no end of line */
};
struct kube_event {
    enum kube_change change;
    json_t *object; /* owned by the caller */
};

void kube_lines_done(struct kube_lines *l);
/* Takes a piece; -1: the line in it is too long. */
CHECKED int kube_lines_feed(struct kube_lines *l, struct str part, struct err *e);
/* 1: *ret is the next event; 0: needs more; -1. */
CHECKED int kube_lines_next(struct kube_lines *l, struct kube_event *ret, struct err *e);
