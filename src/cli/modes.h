/* modes: what a program has switched on in the terminal that its output goes to, so that it can be
 * switched off when we leave the program running (alternate screen, hidden cursor, mouse, pasting
 * in brackets and so on).  No I/O: bytes in, bytes out.  Everything unknown is skipped. */
#pragma once

#include "base/buf.h"

#define MODES_PARAMS 16

struct modes {
    int state;   /* of the parser; 0: plain text */
    char prefix; /* of a control sequence: '?', '>', '<', '=', or 0 */
    char middle; /* its intermediate byte, or 0 */
    int params[MODES_PARAMS];
    size_t param_count; /* 0: none was given */
    bool too_many;
    uint32_t changed; /* bits of modes.c's table: not as a terminal starts */
    bool colours, region, keypad, charset, shape, modified_keys;
    int kitty_keys; /* how often the keyboard protocol was pushed */
};

void modes_feed(struct modes *m, struct str output);
/* Adds what makes the terminal as it was; nothing if it is. */
void modes_undo(const struct modes *m, struct buf *to);
