/* shell: sandboxes made ahead of the request: namespaces, ids, cgroup, socket, /proc and /dev are
 * there, init is loaded and waits, a builder beside it waits for the claim (setup.c).  Each is used
 * once.  A shell is nobody's and in no list; its name, which no id can have, is in shells/ and in
 * the cgroup tree, so that the next holt-spawn destroys what the last one left. */
#pragma once

#include "base/str.h"

struct sandbox;
struct spawn_create;

/* Without work, before one is made: requests, and the commands that they began, go first. */
#define SHELL_QUIET_MS 10
/* With work that never ends, one is made this often in spite of it. */
#define SHELL_LATE_MS 100

void shell_want(uint32_t n); /* how many to keep */
uint32_t shell_ready_count(void);
uint64_t shell_broken_count(void);
/* How long to wait before shell_fill has something to do; -1: it has not. */
int shell_wait_ms(void);
bool shell_is_late(void); /* shell_fill has waited long enough for quiet; asked in each turn */
void shell_fill(void);    /* begins one that lacks, or ends one that is too many */
bool shell_fits(const struct spawn_create *c); /* one is ready for it */
/* One for this create, or NULL: none is ready, or it must be made for it alone. */
struct sandbox *shell_take(const struct spawn_create *c);
bool shell_is_name(struct str name);

void shell_ready(struct sandbox *s);             /* init is loaded, its builder waits */
void shell_gone(struct sandbox *s, bool broken); /* begins its end; broken: nobody wanted it to */
void shell_sweep(void);                          /* at start: groups whose shells left no record */
void shell_end_all(void);                        /* at our end; waits for it */
