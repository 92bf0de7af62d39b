/* op: the native operations as data.  One row has path, verb, permission, fields, ranges, help;
 * router, validation, OpenAPI, command line, completion, metric labels and audit names are made
 * from it. To add an operation: a row in one of the files of src/ops, its line in op_table
 * (table.c), its handler in src/api/native/handlers.c, `make api`; tests fail when one of them is
 * forgotten (CONTRIBUTING.md). */
#pragma once

#include "base/arena.h"
#include "base/err.h"

#include <jansson.h>

enum op_type {
    OP_STR,      /* struct str, NUL-terminated; p is NULL when absent */
    OP_INT,      /* int64_t */
    OP_BOOL,     /* bool */
    OP_DURATION, /* int64_t, milliseconds; JSON number or "15m" */
    OP_SIZE,     /* int64_t, bytes; JSON number or "64m" */
    OP_TIME,     /* int64_t, wall ms; RFC 3339 */
    OP_CHOICE,   /* int: the index in .choices; -1 when absent */
    OP_LIST,     /* struct op_list of strings; query: repeated or comma-separated */
    OP_MAP,      /* struct op_map: string to string */
    OP_JSON,     /* json_t *, borrowed: any JSON value; in a body only */
    OP_SINCE,    /* struct op_since: a sequence number or an RFC 3339 time */
};
#define OP_ABSENT INT64_MIN /* an absent number without a preset */

struct op_list {
    struct str *v;
    size_t n;
};
struct op_pair {
    struct str key, value;
};
struct op_map {
    struct op_pair *v;
    size_t n;
};
struct op_since {
    int64_t seq;     /* OP_ABSENT when a time was given, or nothing */
    int64_t time_ms; /* OP_ABSENT when a number was given, or nothing */
};

/* Where a field is in a request: a name in the path's braces is in the path; otherwise it is in the
 * query for GET, HEAD, DELETE and uploads, in the JSON body for the rest, unless the row has
 * .query. */
struct op_field {
    const char *name;
    enum op_type type;
    size_t offset;      /* in the operation's input struct; unused in a reply's fields */
    size_t given;       /* where a bool says that the request has it; 0: nowhere */
    int64_t min, max;   /* of a number; of a string's length in characters, a list's or map's in
                           entries; 0, 0: no limit but the body's */
    const char *preset; /* the default, as text */
    const char *const *choices; /* NULL-terminated */
    const char *pattern;        /* one of OP_PATTERN_* below */
    const char *example;
    const char *text; /* one sentence */
    bool required;
    bool query;        /* in the query although the method has a body */
    bool positional;   /* on the command line: an argument, not a --flag */
    bool secret;       /* never logged, never in an event */
    bool nullable;     /* in a reply: may be null */
    bool optional;     /* in a reply: may be absent */
    const char *types; /* OP_JSON: its allowed types, "array|string"; required */
};
#define FIELD(structure, member, kind, ...)                                                        \
    {.name = #member, .type = kind, .offset = offsetof(structure, member), __VA_ARGS__}
#define REPLY(key, kind, words, ...) {.name = key, .type = kind, .text = words, __VA_ARGS__}

/* Known to pattern.c: a regular expression for OpenAPI, words for people, and the check. */
#define OP_PATTERN_NAME "^[A-Za-z0-9][A-Za-z0-9._-]*$"
#define OP_PATTERN_DIGITS "^[0-9]+$"
#define OP_PATTERN_SHA256 "^[0-9a-f]{64}$"

enum perm {            /* src/core/identity/identity.c maps roles to permissions */
            PERM_NONE, /* no token needed */
            PERM_SELF, /* any token */
            PERM_READ, /* state of the installation: info, settings */
            PERM_EVENTS,
            PERM_AUDIT,
            PERM_TOKENS,
            /* a dashboard session of the caller's own role; not for agents: a session is not bound
             * to one agent */
            PERM_LOGIN,
            PERM_ADMIN,
            PERM_SANDBOX_READ,    /* list sandboxes and commands; agents: their own */
            PERM_SANDBOX_WRITE,   /* create, change, run, remove; agents: their own */
            PERM_SANDBOX_CONTENT, /* content: output, files; reads are audited */
            PERM_IMAGE_WRITE,     /* pull, import, remove: not for agents, since holtd fetches */
            PERM_SECRETS,         /* set and remove secrets: not for agents, which only use them */
            PERM_SECRET_READ,     /* list secrets, without their values */
            PERM_TEAM_READ,       /* agents, boards, mail; agents: their own mail */
            PERM_TEAM_CONTENT,    /* content of the files of projects */
            PERM_TEAM_WRITE,      /* change them; agents: as themselves */
            /* register, heartbeat, checkpoint, acknowledge: an agent's reports about itself, also
             * while it is revoked */
            PERM_TEAM_REPORT,
            PERM_TEAM_RULE, /* pause, revoke, approve: for people */
            PERM_ASK,       /* ask people, cancel what one asked */
            PERM_ASK_READ,  /* read questions; agents: their own, and proposals */
            PERM_COUNT
};

enum op_reply {
    OP_REPLY_OBJECT,
    OP_REPLY_LIST,
    OP_REPLY_EMPTY,
    OP_REPLY_TEXT,
    OP_REPLY_STREAM, /* server-sent events */
    OP_REPLY_BYTES,  /* of type .media; streamed */
    OP_REPLY_SOCKET, /* a WebSocket */
};

struct op {
    const char *name;   /* "token.create": metric label and audit name */
    const char *group;  /* a name in op_groups */
    const char *text;   /* one sentence; more after a line break */
    const char *method; /* "*": any */
    /* "/holt/v1/tokens/{id}"; "{rest...}" at its end matches the remaining path */
    const char *path;
    const char *verb; /* verb of the command line: "token create"; NULL: none */
    enum perm perm;
    const struct op_field *in;
    size_t in_count, in_size;
    enum op_reply reply;
    const struct op_field *out; /* of the reply, or of one item of a list */
    size_t out_count;
    const char *schema;  /* name of that object in OpenAPI: "Token"; rows may share one */
    const char *items;   /* OP_REPLY_LIST: the array's key; "cursor" is beside it */
    const char *columns; /* columns of the command line's table: "id,name,role"; NULL: all */
    int status;          /* status of success; 0 is 200 */
    bool creates;        /* honours Idempotency-Key */
    bool audited;        /* a read of content: adds an audit row */
    const char *upload;  /* media type of a streamed body of bytes; NULL: JSON */
    /* of OP_REPLY_BYTES, NULL: application/octet-stream; of OP_REPLY_TEXT, NULL: text/plain */
    const char *media;
    const char *also;  /* another media type of the reply, if the client accepts it */
    const char *later; /* when it replies 202, before the work is done; NULL: never */
    bool ranges;       /* honours Range: 206 */
    bool cached;       /* honours If-None-Match: 304 */
    int64_t body_max;  /* limit of a JSON body in bytes; 0: by its fields (op_body_max) */
    bool proxies;      /* query and body are passed on unchecked by the handler */
    bool streams;      /* a list also served as SSE (follow=true, or Accept) and WebSocket */
};

struct op_pattern {
    const char *regex;        /* ECMA 262, as OpenAPI requires */
    const char *words;        /* "64 hex digits, lower case" */
    const char *first, *rest; /* allowed characters and ranges: "a-z0-9._-" */
    size_t len;               /* exactly; 0: any */
};
const struct op_pattern *op_pattern(const char *regex); /* NULL: not in the list */
bool op_pattern_fits(const struct op_pattern *p, struct str s);

#define OP_COOKIE "holt_session" /* the dashboard's session */

extern const struct op *const op_table[]; /* NULL at the end */
extern const size_t op_count;
const struct op *op_find(const char *name); /* NULL: none */

struct op_group { /* a heading of the help, and a tag of OpenAPI */
    const char *name, *text;
};
extern const struct op_group op_groups[]; /* ends with a NULL name */
const char *perm_name(enum perm p);       /* "tokens" */

enum op_place { OP_IN_PATH, OP_IN_QUERY, OP_IN_BODY };
enum op_place op_place(const struct op *op, const struct op_field *f);
const struct op_field *op_input(const struct op *op, struct str name); /* NULL: none */

/* Fills an input struct (arena memory, presets applied) from path values, query and body.  An error
 * names the first wrong field and the allowed values; unknown fields are refused by name.  body may
 * be NULL. */
struct op_params { /* values of the path's braces, in order, decoded */
    struct str v[8];
    size_t n;
};
CHECKED int op_decode(const struct op *op, const struct op_params *path, struct str query,
                      const json_t *body, struct arena *a, void **ret, struct err *e);
/* Decodes one text value of the command line or a query; appends to a list or map. */
CHECKED int op_decode_text(const struct op_field *f, struct str text, struct arena *a, void *in,
                           struct err *e);
/* The limit of the operation's JSON body: its row's, or as much as its fields can need. */
int64_t op_body_max(const struct op *op);
/* The rule for a field's value, for people: "a whole number from 1 to 1000". */
struct buf;
void op_rule(const struct op_field *f, struct buf *to);
/* OpenAPI 3.1, as printed by `holtd --print-openapi` and checked in as api/openapi.json. */
void op_openapi(struct buf *to, const char *version);
