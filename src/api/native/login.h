/* login: private to src/api/native: the ends of a login, however it began. */
#pragma once

#include "api/request.h"

/* Replies; a wrong credential counts against the peer. */
void login_failed(struct request *r, const struct err *e);
/* The session's cookie and its audit row; the caller replies. */
void login_begin_session(struct request *r, const struct token *t, const char *text);
