/* spare: sandboxes made ahead of the request: namespaces, ids, cgroup, socket, /proc and /dev
 * exist, init is loaded and waits, a builder beside it waits for the claim (setup.c).  Each is used
 * once.  A spare has no owner and is in no list; its name, which no id can have, is in shells/ and
 * in the cgroup tree, so that the next holt-spawn destroys what the last one left. */
#pragma once

#include "base/str.h"

struct sandbox;
struct spawn_create;

/* Idle time before one is made: requests, and the commands they began, go first. */
#define SHELL_QUIET_MS 10
/* Under continuous load, one is made this often anyway. */
#define SHELL_LATE_MS 100

void shell_want(uint32_t n); /* the number to keep */
uint32_t shell_ready_count(void);
uint64_t shell_broken_count(void);
/* The time until spare_fill has something to do; -1: nothing. */
int shell_wait_ms(void);
/* spare_fill has waited long enough for an idle moment; checked in each turn */
bool shell_is_late(void);
void shell_fill(void);                         /* begins a missing one, or ends an excess one */
bool shell_fits(const struct spawn_create *c); /* one is ready for it */
/* One for this create, or NULL: none is ready, or it needs one of its own. */
struct sandbox *shell_take(const struct spawn_create *c);
bool shell_is_name(struct str name);

void shell_ready(struct sandbox *s);             /* init is loaded, its builder waits */
void shell_gone(struct sandbox *s, bool broken); /* begins its end; broken: unexpectedly */
void shell_sweep(void);   /* at start: removes groups whose spares left no record */
void shell_end_all(void); /* at our exit; waits for it */
