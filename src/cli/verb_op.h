/* verb_op: runs any row of the operations table as a command: its fields become a request, its
 * reply a table.  Verbs with code of their own use the parts. */
#pragma once

#include "cli/cli.h"
#include "cli/request.h"

void op_target(const struct op *op, const json_t *args, struct buf *to); /* path and query */
void op_body(const struct op *op, const json_t *args, struct buf *to);   /* JSON, or nothing */
/* Sends the request described by `how` to the operation's method, path and query, with its upload
 * type. */
CHECKED int op_send(const struct cli *c, const struct op *op, const json_t *args,
                    const struct request *how, struct reply *ret, struct err *e);
CHECKED int op_request(const struct cli *c, const struct op *op, const json_t *args,
                       struct reply *ret, struct err *e);
/* All pages of a list as one reply. */
CHECKED int op_list(const struct cli *c, const struct op *op, const json_t *args, json_t **ret,
                    struct err *e);
/* Prints it; with "quiet" among the arguments only the ids. */
CHECKED int op_list_run(struct cli *c, const struct op *op, const json_t *args, struct err *e);
/* Writes a reply of bytes to standard output as it arrives. */
CHECKED int op_bytes(const struct cli *c, const struct op *op, const json_t *args, struct err *e);
struct print_spec op_print_spec(const struct cli *c, const struct op *op);
