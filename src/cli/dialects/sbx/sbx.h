/* sbx: the arguments of `holt sbx …` (and of a link to holt named sbx): the flags of sbx's own
 * command, in Go's style, -x or --x, before the words of a command. */
#pragma once

#include "cli/cli.h"

extern const struct verb sbx_verb;

struct sbx_args {
    const char *verb;
    const char *addr, *id, *image, *volume, *cache_mode, *cache_size, *cache_class, *cache_access;
    const char *cmd, *exec_id, *timeout;
    bool sync, async, stream, stream_raw, help;
    json_t *env, *allow, *deny; /* an object; lists */
    char **words;               /* after the flags */
    size_t word_count;
};

void sbx_args_done(struct sbx_args *a);
static inline UNUSED void sbx_args_done_p(struct sbx_args *a)
{
    sbx_args_done(a);
}
/* words: the verb, then flags.  The caller keeps the texts. */
CHECKED int sbx_args_parse(char **words, size_t n, struct sbx_args *ret, struct err *e);
extern const char sbx_usage[];

struct target;
/* Prints the events of one command until its exit: as lines of JSON, or (raw) its
 * output.  *ret_status is the command's. */
CHECKED int sbx_follow(const struct target *t, const char *id, const char *exec_id, bool raw,
                       int *ret_status, struct err *e);
