/* status: what an API server says about a failure: a Status object, or a bare HTTP status.
 * The text of the error is the server's own; its length is bounded. */
#pragma once

#include "base/err.h"
#include "proto/json.h"

/* Sets *e from the reply's body, if that is a Status, or from the HTTP status.  Returns -1. */
int kube_status_err(int http, struct str body, struct err *e);
int kube_status_json(int http, const json_t *status, struct err *e);
/* Whether it is a Status with this reason ("Expired", "AlreadyExists"). */
bool kube_status_is(const json_t *status, const char *reason);
/* The exit status that the last message of an exec reports; -1: it has none, and *e the reason. */
CHECKED int kube_status_exit(struct str body, struct err *e);
