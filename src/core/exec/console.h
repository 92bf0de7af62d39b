/* console: who is attached to a command: any number of observers, at most one controller, who alone
 * types, resizes and signals.  Whoever writes to a command's standard input holds its control, for
 * as long as that takes.
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
    struct console *console; /* NULL: not seated */
    enum console_role role;
    void (*demoted)(struct console_seat *s); /* another took control; NULL: it cannot be taken */
};

struct consoles *consoles_new(void);
struct consoles *consoles_free(struct consoles *c); /* nobody is seated; takes NULL; returns NULL */
/* exec: the command's id.  ERR_CONFLICT: another controls it and take is not set.  seat->demoted is
 * set by the caller before. */
CHECKED int console_sit(struct consoles *c, const char *exec, enum console_role want, bool take,
                        struct console_seat *seat, struct err *e);
void console_leave(struct console_seat *seat); /* harmless when not seated */
