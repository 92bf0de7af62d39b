/* cli: shared by the commands of `holt`.  A command is a verb with arguments; most verbs are rows
 * of the operations table (ops/op.h), the rest are rows of verb_table (verbs.c).  A verb in both
 * tables sends the operation's request but runs its own code.
 * To add a verb that is not a plain operation: a file src/cli/verb_<name>.c with its run function
 * and flags, its line in verb_table, a test in tests/integration/test_cli.py.
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

struct cli_flag { /* an argument or flag without an operation's field */
    struct op_field f;
    char letter;      /* "-f", or 0 */
    bool rest;        /* positional: takes this word and everything after it unchanged, a command */
    const char *also; /* "cpus,cpu-count": other spellings of the flag */
    const char *label; /* the argument's name in the help: "SANDBOX"; NULL: its name */
    bool optional;     /* although the operation requires it: run fills it in */
    bool whole;        /* values of a list are not split at commas */
};

struct verb {
    const char *verb;
    const char *text;  /* NULL: the operation's */
    const char *group; /* heading in the help */
    const char *op;    /* the operation's name if its row has another verb or none */
    const char *fills; /* "a,b": fields of the operation that run fills in: they have no flags */
    int failed;        /* exit status for holt's own failures; 0: the error's */
    const struct cli_flag *flags;
    size_t flag_count;
    const char *const *examples; /* NULL-terminated */
    bool own_help;               /* a link of its name prints its help itself */
    cmd_run run;
};
extern const struct verb verb_table[];
extern const size_t verb_count;

struct verb_alias { /* another word for a verb, or for its last word */
    const char *alias, *verb;
};
extern const struct verb_alias verb_aliases[];
extern const size_t verb_alias_count;

struct cmd_arg {
    const struct op_field *f;
    char letter;
    bool local;      /* not part of the request */
    bool positional; /* .positional, or a name in the path's braces */
    bool rest;       /* takes all remaining words */
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
/* The command with the most words at the front; *ret_words is their number. */
const struct cmd *cmd_set_match(const struct cmd_set *set, char *const *words, size_t n,
                                size_t *ret_words);
bool cmd_set_has_prefix(const struct cmd_set *set,
                        const char *word); /* "token" of "token create" */
/* The most similar verb; NULL: none. */
const char *cmd_set_nearest(const struct cmd_set *set, const char *said);

/* Flags of every command; also allowed before the verb. */
extern const struct cmd_arg global_args[];
extern const size_t global_arg_count;

struct cli {
    struct arena arena;
    struct cmd_set cmds;
    enum out_format format;
    bool format_set; /* by -o: verbs that print one line then print everything */
    bool help;
    bool color;         /* standard output is a terminal with colours */
    int64_t timeout_ms; /* of one request; 0: none */
    bool timeout_set;
    int64_t connect_ms;                    /* 0: the default */
    const char *server, *context, *cacert; /* flags; NULL: not given */
    int failed;                            /* exit status of a failure; 0: the error's */
    int status; /* exit status after success: that of the command it ran */
};

/* Sends the request of an operation's row with the given values, and prints the reply
 * (verb_op.c). */
CHECKED int op_verb_run(struct cli *c, const struct cmd *cmd, const json_t *args, struct err *e);
/* Prints a value on standard output in the chosen format. */
CHECKED int cli_print(const struct cli *c, const json_t *v, const struct print_spec *spec,
                      struct err *e);
/* Writes to standard output; exits silently if its reader has gone. */
void cli_write(struct str s);
/* Prints one line "holt: …" on standard error; control characters are escaped. */
void cli_note(const char *fmt, ...) PRINTF_LIKE(1, 2);

const char *args_str(const json_t *args, const char *name); /* NULL: absent */
bool args_bool(const json_t *args, const char *name);
int64_t args_int(const json_t *args, const char *name, int64_t absent);
