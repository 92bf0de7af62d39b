/* output_share: how much of the host's disk the logs of one owner's commands take together, over
 * all its sandboxes.  It counts commands that an agent, or a sandbox by its relay, has started
 * (EXEC_OF_SHARE).  A running sum per owner: a write costs one addition.  Past the setting
 * 'agent_output' the owner's oldest ended commands go, then the oldest output of those that run,
 * which the event exec.output_cut says; in the next turn of the loop, never within a write.
 * Thread: the loop's. */
#pragma once

struct exec;
void output_share_join(struct exec *x);  /* it is in its sandbox's list from here on */
void output_share_count(struct exec *x); /* its log may have grown or shrunk */
void output_share_leave(struct exec *x); /* its log is gone; of one that is in none: harmless */
