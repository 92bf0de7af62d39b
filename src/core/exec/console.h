/* console: the clients attached to a command: any number of observers, at most one controller,
 * which alone types, resizes and signals.  A client that writes standard input holds control
 * meanwhile.
 * Ownership: a seat is the caller's memory, from console_sit to console_leave.
 * Thread: the loop's. */
#pragma once

#include "base/err.h"
#include "base/list.h"
#include "base/str.h"

struct consoles;
struct console;

enum console_role { CONSOLE_OBSERVER, CONSOLE_CONTROLLER, CONSOLE_ANY }; /* any: control if free */

struct console_seat {
    struct list link;
    struct console *console; /* NULL: not attached */
    enum console_role role;
    /* another client took control; NULL: it cannot be taken */
    void (*demoted)(struct console_seat *s);
};

struct consoles *consoles_new(void);
/* no seat may be taken; takes NULL; returns NULL */
struct consoles *consoles_free(struct consoles *c);
/* exec: the command's id.  ERR_CONFLICT: another client controls it and take is not set.  The
 * caller sets seat->demoted before. */
CHECKED int console_sit(struct consoles *c, const char *exec, enum console_role want, bool take,
                        struct console_seat *seat, struct err *e);
void console_leave(struct console_seat *seat); /* harmless if not attached */
