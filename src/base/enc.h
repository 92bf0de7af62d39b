/* enc: bytes as text and back: hex, base64 (plain and URL-safe), percent.
 * Decoders are strict: -EINVAL on anything the encoder would not have written (padding is optional
 * on input for base64). */
#pragma once

#include "base/buf.h"

void enc_hex(const void *p, size_t n, char *to);       /* 2n bytes and a NUL */
int dec_hex(struct str s, void *to, size_t n) CHECKED; /* exactly n bytes */
void enc_base64(struct buf *to, const void *p, size_t n);
void enc_base64url(struct buf *to, const void *p, size_t n); /* without padding */
int dec_base64(struct buf *to, struct str s) CHECKED;        /* takes both alphabets */
void enc_percent(struct buf *to, struct str s);              /* keeps RFC 3986 unreserved */
/* Decodes %XX; adds the result to `to`.  With plus, '+' is a space (query forms). */
int dec_percent(struct buf *to, struct str s, bool plus) CHECKED;
