/* detach: finds the key sequence that leaves a session in the typed input.  Keys that may begin the
 * sequence are held back until the next key decides. */
#pragma once

#include "base/buf.h"
#include "base/err.h"

#define DETACH_KEYS "ctrl-p,ctrl-q"
#define DETACH_MAX 8

struct detach {
    unsigned char keys[DETACH_MAX];
    size_t count; /* 0: no detach keys */
    size_t have;  /* number of keys matched and held back */
};

/* "ctrl-p,ctrl-q", "ctrl-a,d", "none". */
CHECKED int detach_parse(const char *text, struct detach *ret, struct err *e);
/* Adds the input to send to `to`.  true: the sequence is complete; input after it is dropped. */
bool detach_filter(struct detach *d, struct str typed, struct buf *to);
