/* setting: the rows of the table, and the loading of values into struct config (private to
 * src/conf).
 * To add a setting: a member in conf.h, its row in settings.c, `make api`; tests fail when one is
 * forgotten. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/map.h"
#include "conf/conf.h"
#include "ops/op.h"

#include <jansson.h>

/* Another system's name for this setting.  In capitals: an environment variable; otherwise a key of
 * the file, with a dot before the inner one.  convert translates its value (-1 with *e set); NULL:
 * unchanged.  A '*' at its end matches any rest: the value is then REST=VALUE. */
struct setting_alias {
    const char *name;
    int (*convert)(struct str value, struct buf *to, struct err *e);
    bool adds;        /* adds to a list, where others replace it */
    bool optional;    /* addresses: a busy one is skipped */
    bool zero_counts; /* in a dialect's own file, where 0 and false otherwise mean: not set */
};

enum setting_dir { /* a directory of the host, for sandboxes: holtd makes and may write it */
                   SETTING_DIR_NONE,
                   SETTING_DIR_TENANTS, /* holds one directory per tenant */
                   SETTING_DIR_SHARED,  /* is mounted itself */
};

struct setting {
    struct op_field f; /* key, type, member's offset in struct config, range, default, help */
    const struct setting_alias *alias;              /* ends with a NULL name */
    int (*check)(const char *value, struct err *e); /* of a text, or of each member of a list */
    char *(*preset)(void);                          /* a default that depends on the host */
    bool as_text; /* OP_CHOICE stored as its word (char *), not as its index */
    bool reload;
    enum setting_dir dir;
    /* set when the list is made */
    size_t group;       /* 0: the member is in struct config; n: in the structure of group n - 1 */
    bool alias_is_heap; /* it combines ours and a group's */
};

struct setting_names { /* a dialect's name for a setting that is not its own */
    const char *key;
    const struct setting_alias *alias;
};
struct setting_reason { /* why a name has no effect, and never will */
    const char *variable, *key, *why;
};

/* The settings of one dialect.  They are here, below the API, because holtd loads them before there
 * is an API, and the command line prints them.  src/conf/dialects/NAME defines them; nothing else
 * in src/conf names a dialect.  The rows' members are in a structure of the dialect's own, which
 * conf_group finds in a config. */
struct setting_group {
    const char *name;
    size_t size; /* of that structure */
    const struct setting *rows;
    size_t count;
    const struct setting_names *names;    /* ends with a NULL key */
    const char *const *foreign;           /* as in foreign.c; NULL at the end */
    const struct setting_reason *reasons; /* ends with a NULL why */
    const char *file_variable; /* names a settings file of its own, where only aliases apply */
};
extern const struct setting_group *const setting_groups[]; /* dialects/table.c; NULL at the end */

/* All rows: ours in settings.c, then each group's. */
const struct setting *setting_at(size_t i);
size_t setting_count(void);
size_t setting_row(const struct setting *s); /* its index in the list */
void *setting_member(const struct config *c, const struct setting *s);
CHECKED int conf_check_runtime(const struct config *c, struct err *e); /* across rows */
int setting_check_path(const char *value, struct err *e); /* a check: absolute, or empty */
const struct setting *setting_find(struct str key);       /* NULL: none */
const struct setting *setting_find_alias(struct str name, const struct setting_alias **ret);
/* Whether this alias matches the name.  *ret_rest: the part matched by its '*'; empty without
 * one. */
bool setting_alias_is(const struct setting_alias *a, struct str name, struct str *ret_rest);
/* A key or variable of one of the described systems that has no effect in this build. */
bool setting_is_foreign(struct str name);
const char *setting_foreign_why(struct str name); /* why it has no effect */
bool setting_is_section(struct str prefix);       /* "logging.": the prefix of known keys */

/* HOLT_LOG_LEVEL, --log-level */
void setting_variable(const struct setting *s, struct buf *to);
void setting_flag(const struct setting *s, struct buf *to);

/* alias.c */
extern const struct setting_alias listen_alias[], log_level_alias[], log_format_alias[];
extern const struct setting_alias metrics_alias[], db_alias[], shutdown_alias[];
CHECKED int alias_port(struct str text, uint64_t last, uint64_t *ret, struct err *e);
int alias_seconds(struct str value, struct buf *to, struct err *e); /* a plain number is seconds */

/* Sources, weakest first; a stronger one replaces, an equal one adds to a list. */
enum rank {
    RANK_DEFAULT,
    RANK_FILE_ALIAS,
    RANK_FILE,
    RANK_ENV_ALIAS,
    RANK_SEED_FILE, /* a dialect's own file is weaker than its variables */
    RANK_ENV,
    RANK_FLAG,
};

struct given { /* one value of one source */
    const struct setting *s;
    struct str text;
    enum rank rank;
    const char *where; /* "holt.yaml:3", "variable HOLT_DB", "flag --db" */
    struct str rest;   /* of an alias with a '*' */
    bool adds, optional;
    bool whole; /* one entry of a list, commas included */
};

struct load {
    struct config *c;
    struct arena a;
    enum rank *ranks;                        /* of each row */
    const char *config_file, *ask;           /* special flags; ask: "help", "version" … */
    const char *seed_files[CONF_GROUPS_MAX]; /* by group: its own file; only aliases apply in it */
    struct map file_env; /* of --env-file: name to struct env_line, in the arena */
};

CHECKED int load_apply(struct load *l, const struct given *g, struct err *e);
CHECKED int load_alias(struct load *l, const struct setting *s, const struct setting_alias *a,
                       const struct given *g, struct err *e);
void load_warn(struct load *l, const char *fmt, ...) PRINTF_LIKE(2, 3);
enum spelling { AS_KEY, AS_VARIABLE, AS_FLAG };
int load_unknown(struct load *l, struct str name, enum spelling as, const char *where,
                 struct err *e); /* names it and the nearest known name; -1 */

/* seed: a dialect's own file, whose keys are aliases of ours. */
CHECKED int file_load(struct load *l, const char *path, bool seed, struct err *e);
/* The settings file named by a variable, unless a flag named one. */
CHECKED int env_special(struct load *l, char **environ, struct err *e);
CHECKED int env_load(struct load *l, char **environ, struct err *e);
CHECKED int env_read_file(struct load *l, const char *path, struct err *e);
/* Special flags are read first, flags of settings last. */
CHECKED int flags_special(struct load *l, const struct conf_sources *from, struct err *e);
CHECKED int flags_load(struct load *l, const struct conf_sources *from, struct err *e);

/* load.c */
void conf_list_add(struct conf_list *l, const char *text);

/* print.c: a row's value as text, in the form of the file or a flag. */
void setting_text(const struct setting *s, const struct config *c, struct buf *to);
void setting_preset(const struct setting *s, struct buf *to);

/* database.c: whether this key of the file is a part of a database's address.  1: the section
 * `database` has parts, and *to is their URL; 0: it has not. */
bool database_is_part(struct str key);
CHECKED int database_url(const json_t *section, struct buf *to, struct err *e);

/* hosts.c */
int conf_host_check(const char *text, struct err *e); /* of one entry; a plain name is good too */
int conf_check_uri(const char *value, struct err *e);
bool conf_host_is_name(const char *text);
/* A mapping of the settings file as the text of an entry. */
CHECKED int conf_host_from_json(const json_t *mapping, struct buf *to, struct err *e);

/* address.c */
int address_check(const char *address, struct err *e);
