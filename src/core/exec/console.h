/* console: the clients attached to a command: any number of observers, at most one controller,
 * which alone types, resizes and signals.  A client that writes standard input holds control
 * meanwhile.  Control can be taken, given up and handed over; every client with a name is a member,
 * and all of them are notified when the members or their roles change.
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
    int64_t since_ms; /* wall clock */
    /* set by the caller before console_sit */
    const char *name; /* NULL: not a member; its memory is the caller's */
    const char *by;   /* whose token it has: "token/tk_…"; likewise */
    bool may_control; /* control may be handed to it */
    /* Another client changed its role: it lost control, or was given it.  NULL: control cannot be
     * taken from it. */
    void (*changed)(struct console_seat *s);
    void (*members)(struct console_seat *s); /* they, or a role, have changed; may be NULL */
};

struct consoles *consoles_new(void);
/* no seat may be taken; takes NULL; returns NULL */
struct consoles *consoles_free(struct consoles *c);
/* exec: the command's id.  ERR_CONFLICT: another client controls it and take is not set. */
CHECKED int console_sit(struct consoles *c, const char *exec, enum console_role want, bool take,
                        struct console_seat *seat, struct err *e);
void console_leave(struct console_seat *seat); /* harmless if not attached */

/* --- for a seat that is taken --- */

CHECKED int console_take(struct console_seat *seat, struct err *e); /* from whoever has control */
void console_release(struct console_seat *seat); /* it only observes from now on */
/* Hands control over to the member of this name.  ERR_NOT_FOUND; ERR_CONFLICT: seat has no control;
 * ERR_FORBIDDEN: that member may not control. */
CHECKED int console_give(struct console_seat *seat, struct str name, struct err *e);
/* The members of a command, in order of their arrival. */
void console_each(const struct consoles *c, const char *exec,
                  void (*each)(void *arg, const struct console_seat *s), void *arg);
