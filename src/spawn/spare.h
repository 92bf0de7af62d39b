/* spare: sandboxes made ahead of the request: namespaces, ids, cgroup, socket, /proc and /dev
 * exist, init is loaded and waits, a builder beside it waits for the claim (setup.c).  Each is used
 * once.  A spare has no owner and is in no list; its name, which no id can have, is in shells/ and
 * in the cgroup tree, so that the next holt-spawn destroys what the last one left. */
#pragma once

#include "base/str.h"

struct sandbox;
struct spawn_create;

/* Idle time before one is made: requests, and the commands they began, go first. */
#define SPARE_QUIET_MS 10
/* Under continuous load, one is made this often anyway. */
#define SPARE_LATE_MS 100

void spare_want(uint32_t n); /* the number to keep */
uint32_t spare_ready_count(void);
uint64_t spare_broken_count(void);
/* The time until spare_fill has something to do; -1: nothing. */
int spare_wait_ms(void);
/* spare_fill has waited long enough for an idle moment; checked in each turn */
bool spare_is_late(void);
void spare_fill(void);                         /* begins a missing one, or ends an excess one */
bool spare_fits(const struct spawn_create *c); /* one is ready for it */
/* One for this create, or NULL: none is ready, or it needs one of its own. */
struct sandbox *spare_take(const struct spawn_create *c);
bool spare_is_name(struct str name);

void spare_ready(struct sandbox *s);             /* init is loaded, its builder waits */
void spare_gone(struct sandbox *s, bool broken); /* begins its end; broken: unexpectedly */
void spare_sweep(void);   /* at start: removes groups whose spares left no record */
void spare_end_all(void); /* at our exit; waits for it */
