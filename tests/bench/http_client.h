/* http_client: the least client that can time a server: one connection, one request at a time,
 * blocking.  A failure ends the program with its reason on stderr. */
#pragma once

#include "base/buf.h"

struct http_client {
    int fd; /* -1: not connected */
    uint16_t port;
    char token[128];
    struct buf in; /* what has come */
    int64_t left;  /* bytes of the body, or of its chunk; -1: it ends with the connection */
    bool chunked, closes;
};

void http_client_init(struct http_client *h, uint16_t port, const char *token_file);
void http_client_done(struct http_client *h);
/* Sends a request with body (NULL: none), and reads its whole reply; returns the status. */
int http_client_call(struct http_client *h, const char *method, const char *path, const char *body,
                     struct buf *reply);
/* The same in two, so that several clients can ask at once. */
void http_client_ask(struct http_client *h, const char *method, const char *path, const char *body);
int http_client_answer(struct http_client *h, struct buf *reply);
/* The same in pieces: the head of a request with a body of n bytes (the caller writes them to
 * h->fd); the status and head of the reply; then its body, until 0. */
void http_client_send(struct http_client *h, const char *method, const char *path, size_t n);
int http_client_head(struct http_client *h);
size_t http_client_body(struct http_client *h, void *to, size_t size);
