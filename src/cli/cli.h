/* cli: what the commands of `holt` share.  A command is a verb with arguments; most verbs are rows
 * of the operations table (ops/op.h), the rest are rows of verb_table (verbs.c).  A verb that is
 * both sends the operation's request but runs its own code.
 * To add a verb that is no plain operation: a file src/cli/verb_<name>.c with its run function and
 * flags, its line in verb_table, a test in tests/integration/test_cli.py.
 * Errors: 0, or -1 with *e set; the exit status is that of e->code in err_table. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "cli/print.h"
#include "ops/op.h"

struct cli;
struct cmd;

/* args: the parsed values by field name, converted to the field's JSON type. */
typedef int (*cmd_run)(struct cli *c, const struct cmd *cmd, const json_t *args, struct err *e);

struct cli_flag { /* an argument or flag that no operation has */
    struct op_field f;
    char letter;       /* "-f", or 0 */
    bool rest;         /* positional: takes this word and all behind it as they are, a command */
    const char *also;  /* "cpus,cpu-count": other spellings of the flag */
    const char *label; /* what an argument is called: "SANDBOX"; NULL: its name */
    bool optional;     /* although the operation requires it: run fills it in */
    bool whole;        /* a list's values are not cut at commas */
};

struct verb {
    const char *verb;
    const char *text;  /* NULL: the operation's */
    const char *group; /* heading in the help */
    const char *op;    /* the operation's name where its row has another verb or none */
    const char *fills; /* "a,b": the operation's fields that run fills in: no flags */
    int failed;        /* exit status of holt's own failure; 0: the error's */
    const struct cli_flag *flags;
    size_t flag_count;
    const char *const *examples; /* NULL-terminated */
    cmd_run run;
};
extern const struct verb verb_table[];
extern const size_t verb_count;

struct verb_alias { /* another word for a whole verb, or for its last word */
    const char *alias, *verb;
};
extern const struct verb_alias verb_aliases[];
extern const size_t verb_alias_count;

struct cmd_arg {
    const struct op_field *f;
    char letter;
    bool local;      /* not part of the request */
    bool positional; /* .positional, or a name in the path's braces */
    bool rest;       /* takes all the words that are left */
    bool optional, whole;
    const char *also, *label; /* as in cli_flag */
};

struct cmd {
    const char *verb;
    const char *text;
    const char *group;
    const struct op *op; /* or NULL */
    const struct verb *special;
    struct cmd_arg *args; /* positional ones first, in the order of the path */
    size_t arg_count;
    cmd_run run;
};

struct cmd_set {
    struct cmd *v;
    size_t n;
};

/* ops is NULL-terminated; memory is the arena's. */
void cmd_set_build(const struct op *const *ops, struct arena *a, struct cmd_set *ret);
const struct cmd *cmd_set_find(const struct cmd_set *set, const char *verb); /* aliases too */
/* The command whose verb is the longest run of words at the front; *ret_words says how many. */
const struct cmd *cmd_set_match(const struct cmd_set *set, char *const *words, size_t n,
                                size_t *ret_words);
bool cmd_set_has_prefix(const struct cmd_set *set,
                        const char *word); /* "token" of "token create" */
/* The verb that was probably meant; NULL: none is near. */
const char *cmd_set_nearest(const struct cmd_set *set, const char *said);

/* Flags that every command has; they may also stand before the verb. */
extern const struct cmd_arg global_args[];
extern const size_t global_arg_count;

struct cli {
    struct arena arena;
    struct cmd_set cmds;
    enum out_format format;
    bool format_set; /* by -o: verbs that print one line print all then */
    bool help;
    bool color;         /* standard output is a terminal that wants them */
    int64_t timeout_ms; /* of one request; 0: none */
    bool timeout_set;
    int64_t connect_ms;                    /* 0: as usual */
    const char *server, *context, *cacert; /* flags; NULL: not given */
    int failed;                            /* exit status of a failure; 0: the error's */
    int status; /* to exit with when the verb succeeded: that of a command it ran */
};

/* The values of a row's fields as the row's request wants them: sends, prints (verb_op.c). */
CHECKED int op_verb_run(struct cli *c, const struct cmd *cmd, const json_t *args, struct err *e);
/* Prints a value on standard output in the chosen form. */
CHECKED int cli_print(const struct cli *c, const json_t *v, const struct print_spec *spec,
                      struct err *e);
/* Writes to standard output; a reader that went away ends the program quietly. */
void cli_write(struct str s);
/* One line "holt: …" on standard error, safe to look at whoever wrote the words. */
void cli_note(const char *fmt, ...) PRINTF_LIKE(1, 2);

const char *args_str(const json_t *args, const char *name); /* NULL: absent */
bool args_bool(const json_t *args, const char *name);
int64_t args_int(const json_t *args, const char *name, int64_t absent);
