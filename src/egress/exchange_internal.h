/* exchange_internal: shared by the parts of an exchange; private to them. */
#pragma once

#include "egress/exchange.h"
#include "proto/http1.h"
#include "proto/scrub.h"
#include "proto/ws.h"

#define EXCHANGE_REQUEST_MAX (32 * 1024) /* of a request's head */

enum request { REQUEST_HEAD, REQUEST_BODY, REQUEST_SENT };
enum reply { REPLY_NONE, REPLY_HEAD, REPLY_BODY };
enum out { OUT_NONE, OUT_LENGTH, OUT_CHUNKED, OUT_UNTIL_CLOSE };

struct exchange {
    struct exchange_config c;
    struct buf client_in, server_in; /* not parsed yet */
    struct buf to_client, to_server; /* not sent yet */
    struct http1_scan scan, reply_scan;
    enum request request;
    enum reply reply;
    struct http1_body body, reply_body;
    bool keep, old_client, head_only, upgrade, tunnel;
    bool replied; /* the client has part of the reply */
    unsigned interim;
    enum out out;
    struct scrub scrub;
    struct scrub sent; /* finds values that the client sends itself; its output is dropped */
    char accept[WS_ACCEPT_SIZE]; /* the accept key of a server that takes the upgrade */
    struct ws_reader client_frames, server_frames;
    struct buf frame; /* of the server's frames, scrubbed */
    bool frame_begun; /* part of it has been forwarded */
    size_t hits_told; /* value of scrub.hits at the last report */
    bool reply_has_hit;
    char *failed; /* why the server cannot be reached */
    enum exchange_end end;
};

/* --- exchange.c --- */
/* by ourselves; then it ends */
void exchange_answer(struct exchange *x, int status, const char *text);
void exchange_put_chunk(struct buf *to, struct str part);

/* --- exchange_request.c --- */
void exchange_run_client(struct exchange *x); /* parses the client's input */

/* --- exchange_reply.c --- */
void exchange_run_server(struct exchange *x);
void exchange_bad_reply(struct exchange *x, const char *why);
void exchange_reply_over(struct exchange *x);
