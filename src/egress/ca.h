/* ca: the authority that signs certificates for intercepted hosts, and its leaf certificates: one
 * per name, short-lived, cached.  In memory only.  Thread: the loop's. */
#pragma once

#include "base/err.h"
#include "proto/ip.h"

#include <openssl/ssl.h>

/* PEM texts of a certificate and its key; setting the same again changes nothing. */
CHECKED int ca_set(struct str cert, struct str key, struct err *e);
bool ca_is_there(void);
/* A context to act as this host, over HTTP/1.1 only; borrowed, and valid for one SSL_new. */
CHECKED int ca_context(const struct host *h, SSL_CTX **ret, struct err *e);
void ca_forget(void);
