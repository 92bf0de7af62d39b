/* detach: finds the key sequence that leaves a session in what is typed.  Keys that may be its
 * beginning are held back until the next one decides. */
#pragma once

#include "base/buf.h"
#include "base/err.h"

#define DETACH_KEYS "ctrl-p,ctrl-q"
#define DETACH_MAX 8

struct detach {
    unsigned char keys[DETACH_MAX];
    size_t count; /* 0: nothing is looked for */
    size_t have;  /* of the keys, seen and held back */
};

/* "ctrl-p,ctrl-q", "ctrl-a,d", "none". */
CHECKED int detach_parse(const char *text, struct detach *ret, struct err *e);
/* Adds to `to` what is to be sent.  true: the sequence is complete; what follows it is dropped. */
bool detach_filter(struct detach *d, struct str typed, struct buf *to);
