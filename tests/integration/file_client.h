/* file_client: file operations over a guest_client, one at a time, to their end. */
#pragma once

#include "guest_client.h"

struct file_reply {
    struct err err; /* ERR_NONE: done */
    struct guest_file_done done;
    struct buf data; /* stream 1 */
};

struct guest_file_call file_call(enum guest_file_op op, const char *path, uint32_t flags);
/* Sends the call; its channel. */
uint32_t file_begin(struct guest_client *c, const struct guest_file_call *call);
/* The whole operation: sends `data` (NULL: none) and takes what comes until its end. */
struct file_reply file_run(struct guest_client *c, const struct guest_file_call *call,
                           const struct str *data);
/* Data of this channel from its stream, acknowledged, appended to `to`; false: the channel ended,
 * with *r set. */
bool file_more(struct guest_client *c, uint32_t channel, struct flow_in *flow,
               struct file_reply *r);
enum err_code file_code(struct guest_client *c, enum guest_file_op op, const char *path,
                        uint32_t flags); /* of the whole operation; a write gets "x" */
