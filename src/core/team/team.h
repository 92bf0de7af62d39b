/* team: shared by agents, boards and messages: the caller, its conditions, and how a change is
 * published.
 * The rules run inside work (core/store.h), on the store's thread: a rule sees the current rows,
 * and nothing comes between its check and its change.  A struct team is one piece of such work.
 * Ownership: returned texts are the arena's.  Errors: 0, or -1 with *e set. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "core/event/event.h"
#include "proto/json.h"

struct team_conf {
    int64_t heartbeat_ms;  /* an agent without a heartbeat for this long is offline */
    int64_t cycle;         /* heartbeats after which a checkpoint is due */
    int64_t missed;        /* cycles without a checkpoint that make it stalled */
    int64_t grace_ms;      /* cards of an offline or revoked agent return after this */
    int64_t message_rate;  /* of one sender within a minute; 0: no limit */
    int64_t message_bytes; /* of one content */
    int64_t inbox_max;     /* messages kept for one receiver */
    int64_t agent_tasks;   /* default limit of an agent; 0: none */
    int64_t proposals_max; /* of one agent, undecided */
    int64_t objects_max;   /* agents, projects, mailboxes; cards, files of one project */
    int64_t file_versions; /* kept of one file */
    int64_t project_bytes; /* of one project's files, all versions */
    int64_t questions_max; /* of one asker, undecided (core/approval) */
    unsigned two_people;   /* kinds of approvals that two people must agree to: bits */
};

struct team_asker {
    char actor[64];   /* as in events */
    struct str agent; /* the one agent it can act as; p NULL: a person */
    /* For questions to people: the lasting name of the caller ("token/tk_…"), the person its token
     * belongs to (empty: nobody by name), its tenant.  named: it has a token of its own. */
    struct str owner, person, tenant;
    bool named;
};

struct team {
    struct store_tx *tx;
    struct arena *arena;
    struct team_conf conf;
    struct team_asker who;
    int64_t now_ms;
    int64_t since_ms; /* heartbeats count from then on: silence before is not the agent's fault */
    bool unnamed;     /* callers have no names here: acting for an agent counts as being it */
    struct str acted; /* the agent it acted as; empty: none */
    struct str beat;  /* the agent whose heartbeat this was, and its number since a checkpoint */
    int64_t beat_ticks;
    bool approved;    /* a person approved this: an advisory agent's proposal */
    int64_t retry_ms; /* with ERR_LIMIT: when to retry; 0: unknown */
    bool blocked;     /* with ERR_INVALID: well-formed, but the content is not allowed */
    /* Blobs that no row names once this is committed: the loop's thread removes them. */
    struct str *unused;
    size_t unused_count;
};

#define TEAM_NAME_MAX 128   /* fits PRINCIPAL_AGENT */
#define TEAM_TEXT_MAX 65536 /* bytes of a description, a rationale, metadata */
#define TEAM_TAGS_MAX 64
#define TEAM_PAGE_MAX 1000 /* rows of one list */

/* Called when a work begins, or begins again: the store may run one twice. */
void team_enter(struct team *t, struct store_tx *tx);
static inline bool team_is_person(const struct team *t)
{
    return !t->who.agent.p;
}
/* Refuses agents: "only people may pause an agent". */
CHECKED int team_need_person(const struct team *t, const char *what, struct err *e);
/* Whom the caller acts as: a person may name anybody, an agent only itself. */
CHECKED int team_act_as(struct team *t, struct str name, struct str *ret, struct err *e);
/* A name for paths and lists: 1 to TEAM_NAME_MAX bytes, no control character, comma or slash, and
 * not "." or "..". */
CHECKED int team_check_name(const char *what, struct str name, struct err *e);

/* Comma-joined, lower-case, trimmed, without duplicates. */
CHECKED int team_tags(struct arena *a, const struct str *v, size_t n, struct str *ret,
                      struct err *e);
bool team_tags_have(struct str tags, struct str one);
bool team_tags_cover(struct str tags, struct str needed);
struct str team_tags_add(struct arena *a, struct str tags, struct str one);
size_t team_tags_count(struct str tags);
void team_write_tags(struct jw *w, struct str tags); /* as a JSON array */

struct str team_column(const struct team *t, const struct store_rows *r, int column); /* a copy */
/* One number: the first column of the only row. */
CHECKED int team_number(struct team *t, const char *sql, const struct store_param *p, size_t n,
                        int64_t *ret, struct err *e);
/* The newest log entries about the team: changes, reads and refusals; newest first.  hash and prev
 * are not set.  dialect: refusals by its routes are the team's too. */
struct event_list {
    struct event *v;
    size_t n;
};
CHECKED int team_log(struct team *t, const char *dialect, int64_t limit, struct event_list *ret,
                     struct err *e);
void team_event(struct team *t, const char *type, const char *kind, struct str id,
                const struct buf *data);
/* Room for one more row in a list in the arena. */
void *team_grow(struct arena *a, void *v, size_t n, size_t size);

/* Rows as an array of structs: the caller sets the size and the function that reads a row. */
struct team_rows {
    size_t size;
    void (*read)(const struct team *t, const struct store_rows *r, void *to);
    void *v; /* the arena's */
    size_t n;
};
CHECKED int team_read(struct team *t, const char *sql, const struct store_param *p, size_t n,
                      struct team_rows *l, struct err *e);
struct str team_id(struct team *t, const char *prefix); /* a new one, in the arena */
/* Returns -1: "there is no task 'x'". */
int team_missing(struct team *t, const char *kind, struct str id, struct err *e);
