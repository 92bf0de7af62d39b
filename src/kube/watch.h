/* watch: a list of objects that is kept up to date: list, then watch from there, for as long as it
 * is not freed.  A watch that ends continues where it was; one that is too old (410), and one whose
 * reply cannot be read, begins again with a list.  Each object is reported as it is, so a reader
 * need not see every state that it passed; objects that vanished meanwhile are reported deleted.
 * Thread: the loop's.  Ownership: kube_watch_new/free, before the kube. */
#pragma once

#include "kube/kube.h"
#include "kube/lines.h"

struct kube_watch;
struct kube_watch_ops {
    /* change: KUBE_ADDED (new to the reader), KUBE_MODIFIED or KUBE_DELETED.  object: borrowed.  Of
     * a deletion that was not seen it has only metadata.name and metadata.namespace. */
    void (*object)(void *arg, enum kube_change change, const json_t *object);
    void (*synced)(void *arg); /* after each list; may be NULL */
    /* It does not work (e), or works again (ERR_NONE): once per change; may be NULL.  The watch
     * must not be freed from it. */
    void (*health)(void *arg, const struct err *e);
};

/* path: "/api/v1/pods"; selector: of labels, "" for all. */
struct kube_watch *kube_watch_new(struct kube *k, const char *path, const char *selector,
                                  const struct kube_watch_ops *ops, void *arg);
struct kube_watch *kube_watch_free(struct kube_watch *w); /* takes NULL; returns NULL */
/* The version of the last change; "" before the first list.  For tests. */
const char *kube_watch_version(const struct kube_watch *w);
