/* command: the programs that this agent runs: with pipes or a terminal, their output kept until the
 * server has stored it.  They go on while there is no link.
 * Two kinds of servers: one that counts says by OutputStored what it has, and gets each byte once,
 * whatever breaks; to another, output goes once, as far as the link took it.
 * Ownership: this file's list.  Thread: the loop's. */
#pragma once

#include "api/agentic.pb.h"
#include "base/arena.h"

#define COMMANDS_MAX 512

void commands_init(void); /* receives SIGCHLD */
void commands_start(const struct agentic_command_request *q);
void commands_input(struct str id, struct str data, bool eof);
void commands_control(const struct agentic_pty_control *q);
void commands_stored(const struct agentic_output_stored *q);
/* A link is up; counts: the server sends OutputStored. */
void commands_linked(bool counts);
void commands_pump(void); /* there is room on the link */
size_t commands_report(struct arena *a, struct agentic_active_session **ret);
/* Ends what the server names; *ret are those that did not exist. */
void commands_end(const struct str *ids, size_t n);
size_t commands_live(void);
void commands_terminate(int signal); /* all */
