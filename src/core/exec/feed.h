/* feed: bytes of a request on their way into a command's standard input.  It outlives the request,
 * ends with the last byte or with the command, and holds the command's control meanwhile.  It is in
 * memory alone: what init does not have when holtd dies is lost, and the command waits for more. */
#pragma once

#include "core/exec/console.h"
#include "core/exec/exec.h"

/* Copies the bytes. */
void feed_start(struct consoles *c, struct exec *x, struct str bytes, bool eof);
