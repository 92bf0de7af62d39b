/* config: where a cluster's API server is and how to prove who we are, from a kubeconfig file or
 * from the service account of the pod that we run in.
 * Blocking: for start-up.  Ownership: kube_config_done frees and overwrites.  Errors: -1 with *e
 * set; they name the file and the entry, never a value of it. */
#pragma once

#include "base/buf.h"
#include "base/err.h"

struct kube_config { /* owns its texts; NULL or empty: not given */
    char *server;    /* "https://host:port" */
    char *space;     /* the namespace of the context; "default" when it names none */
    struct buf ca;   /* PEM */
    struct buf cert, key;
    char *token;
    char *token_file; /* read again: the token in it is replaced from time to time */
    char *user, *password;
    char *as;       /* impersonated user */
    char *tls_name; /* of the server's certificate */
    bool unverified;
};

/* files: one path, or several with ':' between them: of a name that several define, the first
 * counts.  context NULL or "": the current one. */
CHECKED int kube_config_read(const char *files, const char *context, struct kube_config *ret,
                             struct err *e);
/* root: the directory above var/run/secrets; "" outside of tests. */
CHECKED int kube_config_in_cluster(const char *root, struct kube_config *ret, struct err *e);
void kube_config_done(struct kube_config *c);
static inline UNUSED void kube_config_done_p(struct kube_config *c)
{
    kube_config_done(c);
}
