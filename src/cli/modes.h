/* modes: the terminal modes that a program has switched on, so that they can be reset when we leave
 * the program running (alternate screen, hidden cursor, mouse, bracketed paste and so on).  No I/O:
 * bytes in, bytes out.  Unknown sequences are skipped. */
#pragma once

#include "base/buf.h"

#define MODES_PARAMS 16

struct modes {
    int state;   /* of the parser; 0: plain text */
    char prefix; /* of a control sequence: '?', '>', '<', '=', or 0 */
    char middle; /* its intermediate byte, or 0 */
    int params[MODES_PARAMS];
    size_t param_count; /* 0: no parameters */
    bool too_many;
    uint32_t changed; /* bits of the table in modes.c: modes that differ from the initial state */
    bool colours, region, keypad, charset, shape, modified_keys;
    int kitty_keys; /* how many times the keyboard protocol was pushed */
};

void modes_feed(struct modes *m, struct str output);
/* Adds the sequences that reset the terminal; nothing if it is unchanged. */
void modes_undo(const struct modes *m, struct buf *to);
