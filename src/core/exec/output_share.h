/* output_share: the disk use of all logs of one owner's commands, over all its sandboxes.  It
 * counts commands that an agent, or a sandbox through its relay, has started (EXEC_OF_SHARE).  A
 * running sum per owner: a write costs one addition.  Past the setting 'agent_output' the owner's
 * oldest ended commands are removed, then the oldest output of running ones, reported by the event
 * exec.output_cut; in the next turn of the loop, never within a write.
 * Thread: the loop's. */
#pragma once

struct exec;
void output_share_join(struct exec *x);  /* it must be in its sandbox's list */
void output_share_count(struct exec *x); /* its log may have grown or shrunk */
void output_share_leave(struct exec *x); /* its log is removed; harmless if it is in no share */
