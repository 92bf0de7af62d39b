/* runtime: the runtime of agentbox's sessions (the variable  If unset: gVisor where it works, else
 * native; the log says which.  A named runtime that cannot work is an error: never fall back to
 * weaker isolation than requested. */
#pragma once

#include "base/err.h"

struct agentbox_host {
    const char *usual;                     /* the setting 'runtime' */
    bool (*has_program)(const char *name); /* in PATH */
};
struct agentbox_runtime {
    const char *runtime; /* a driver's name */
    const char *program; /* runsc or runc; else NULL */
    const char *weaker;  /* what they get where that one does not work; NULL: an error */
    const char *why;     /* a sentence for the log */
};
/* asked: as the setting says, "auto": nothing. */
CHECKED int agentbox_runtime_choose(const char *asked, const struct agentbox_host *h,
                                    struct agentbox_runtime *ret, struct err *e);
/* This host and this build. */
struct agentbox_host agentbox_host(const char *usual);
