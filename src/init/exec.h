/* exec: the commands of this sandbox: their pipes or terminal, output that holtd has not
 * acknowledged, and their exit, kept until holtd has stored it (docs/protocol-guest.md). */
#pragma once

#include "wire/guest.h"

#include <sys/resource.h>
#include <sys/types.h>

void exec_start(const struct guest_msg *m);
void exec_attach(const struct guest_msg *m);
uint32_t exec_rows(struct guest_exec_row *rows); /* at most GUEST_EXECS_MAX; the texts stay valid */
void exec_count(struct guest_stats *s);
void exec_reaped(pid_t pid, int status, const struct rusage *ru); /* any pid */
int exec_timeout_ms(void);                                        /* until exec_tick; -1: never */
void exec_tick(void);
