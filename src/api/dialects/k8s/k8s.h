/* k8s: the Kubernetes API as far as clients of the community's agent-sandbox and kubectl call it
 * (docs/k8s.md): claims of sandboxes are core/claim, Sandboxes are ours under an alias
 * NAMESPACE/NAME, SandboxTemplates and SandboxWarmPools are our templates.  A resourceVersion is
 * the seq of an event, a watch a view of the event log.  The router: a request with X-Sandbox-ID is
 * for that sandbox, whatever its path.  Errors are of kind Status, the router's {"detail"}. Objects
 * are built as jansson values: selections, tables and patches work on any kind. Thread: the loop's.
 */
#pragma once

#include "api/dialects/dialect.h"
#include "api/share/sandbox.h"
#include "core/claim/claim.h"
#include "core/template/template.h"

#define K8S_DIALECT "k8s"
#define K8S_GROUP "agents.x-k8s.io"
#define K8S_EXTENSIONS "extensions.agents.x-k8s.io"
#define K8S_VERSION "v1beta1"
#define K8S_SPACE "default" /* of what has no namespace of its own */
#define K8S_BASE "/workspace"
#define K8S_UID 40
#define K8S_TABLE_VERSION "meta.k8s.io/v1"

extern const struct dialect dialect_k8s;
struct k8s; /* its state, below */

/* --- kinds (kinds.c) --- */

struct k8s_column {
    const char *name, *type, *format, *text;
    int priority; /* above 0: in wide output only */
    void (*cell)(const json_t *object, struct buf *to);
};

typedef void (*k8s_removed)(void *arg, const struct err *e);
struct k8s_kind {
    const char *group, *kind, *plural, *singular, *short_name;
    const char *event; /* "claim/": its objects in the event log */
    bool status;       /* has the subresource */
    bool everywhere;   /* in every namespace, under one name */
    const struct k8s_column *columns;
    size_t column_count;
    /* Objects that the caller may see; an array.  space empty: of all namespaces. */
    json_t *(*list)(struct api *a, const struct principal *by, struct str space);
    json_t *(*find)(struct api *a, const struct principal *by, struct str space, struct str name,
                    struct err *e); /* NULL: *e */
    /* As it was at this event; NULL: not for this caller.  *ret_gone: the event ended it,
     * *ret_new: made it. */
    json_t *(*at_event)(struct api *a, const struct principal *by, const struct event *ev,
                        bool *ret_gone, bool *ret_new);
    /* Both reply.  body is r->body. */
    void (*create)(struct request *r, struct str space, struct str name, bool dry);
    void (*change)(struct request *r, const json_t *now, json_t *wanted,
                   bool dry); /* NULL: never */
    /* done is called later, unless -1. */
    int (*remove)(struct api *a, const struct principal *by, const json_t *object, k8s_removed done,
                  void *arg, struct err *e);
};
extern const struct k8s_kind *const k8s_kinds[]; /* NULL at the end */
extern const struct k8s_kind k8s_claims, k8s_sandboxes, k8s_templates, k8s_pools;

/* --- objects (object.c) --- */

struct str k8s_text(const json_t *o, const char *key); /* "" if it is no string */
const json_t *k8s_meta(const json_t *object);
struct str k8s_name(const json_t *object);
struct str k8s_space(const json_t *object);
json_t *k8s_str(struct str s);
json_t *k8s_time(int64_t wall_ms); /* to the second, as Kubernetes has it */
char *k8s_uid(const char *id, char to[K8S_UID]);
struct k8s_identity {
    const struct k8s_kind *kind;
    struct str name, space;
    const char *id;                          /* ours */
    int64_t created_ms, version, generation; /* version 0: that of its last event */
};
/* apiVersion, kind, metadata. */
json_t *k8s_object(struct api *a, const struct k8s_identity *i);
void k8s_set_meta(json_t *object, const char *key, json_t *map); /* takes it; labels, annotations */
json_t *k8s_condition(const char *type, bool yes, struct str reason, struct str message,
                      int64_t since_ms);
bool k8s_is_label(struct str s);     /* RFC 1123: a namespace, a router's id */
bool k8s_is_subdomain(struct str s); /* …: a name */
/* -1 with the field: a map of texts whose keys and, for labels, values have Kubernetes' form. */
CHECKED int k8s_check_map(const json_t *map, const char *field, bool labels, struct err *e);
void k8s_merge(json_t *to, const json_t *patch); /* RFC 7396 */
/* RFC 6902, in place; -1: it does not apply. */
CHECKED int k8s_json_patch(json_t **to, const json_t *patch, struct err *e);
/* What the caller and the log may both know of it: owner, tenant of an event's data. */
bool k8s_may_see(const struct principal *by, const json_t *data, struct str sandbox);

/* --- replies (status.c) --- */

void k8s_send(struct request *r, int status, json_t *object); /* takes it */
void k8s_fail(struct request *r, int status, const struct err *e);
void k8s_refuse(struct request *r, const struct err *e); /* with the status of its code */
/* An error about one object; kind NULL: about none. */
void k8s_error(struct request *r, int status, const struct k8s_kind *kind, struct str name,
               const char *fmt, ...) PRINTF_LIKE(5, 6);
/* 422: one cause. */
void k8s_invalid(struct request *r, const struct k8s_kind *kind, struct str name, const char *field,
                 const char *text);
json_t *k8s_status(int code, const char *reason, struct str message);
void k8s_write_error(struct buf *to, const struct err *e);

/* --- selections (selector.c) --- */

#define K8S_TERMS_MAX 64
struct k8s_term {
    struct str key;
    enum { TERM_IN, TERM_NOT_IN, TERM_EXISTS, TERM_ABSENT } op;
    struct str values; /* separated by commas */
};
struct k8s_selector {
    struct k8s_term labels[K8S_TERMS_MAX], fields[K8S_TERMS_MAX];
    size_t label_count, field_count;
};
/* Texts are borrowed. */
CHECKED int k8s_select_labels(struct k8s_selector *s, struct str text, struct err *e);
CHECKED int k8s_select_fields(struct k8s_selector *s, struct str text, struct err *e);
bool k8s_selects(const struct k8s_selector *s, const json_t *object);

/* --- requests about any kind (resource.c, table.c, watch.c) --- */

enum k8s_form { K8S_OBJECTS, K8S_TABLE };
struct k8s_query {
    struct k8s_selector selector;
    struct str version; /* resourceVersion */
    int64_t timeout_s;  /* 0: none given */
    bool watch, bookmarks, initial, dry;
    enum k8s_form form;
    enum { K8S_METADATA, K8S_WHOLE, K8S_NOTHING } include; /* in the rows of a table */
};
struct k8s_route { /* data of a route */
    const struct k8s_kind *kind;
    void (*run)(struct request *r, const struct k8s_kind *kind);
};
void k8s_list(struct request *r, const struct k8s_kind *kind);
void k8s_get(struct request *r, const struct k8s_kind *kind);
void k8s_create(struct request *r, const struct k8s_kind *kind);
void k8s_patch(struct request *r, const struct k8s_kind *kind);
void k8s_replace(struct request *r, const struct k8s_kind *kind);
void k8s_delete(struct request *r, const struct k8s_kind *kind);
void k8s_delete_all(struct request *r, const struct k8s_kind *kind);
json_t *k8s_table(const struct k8s_kind *kind, const struct k8s_query *q, json_t *objects,
                  bool head); /* takes objects; head: with the definitions of its columns */
/* Ends watches whose time is over; bookmarks. */
void k8s_watches_tick(struct k8s *k);
void k8s_age(int64_t ms, struct buf *to); /* "5m", as kubectl has it */
void k8s_cell_age(const json_t *object, struct buf *to);
void k8s_cell_ready(const json_t *object, struct buf *to);
void k8s_cell_reason(const json_t *object, struct buf *to);
/* q lives in the arena. */
void k8s_watch(struct request *r, const struct k8s_kind *kind, const struct k8s_query *q,
               struct str space);

/* --- discovery (discovery.c) --- */

void k8s_version(struct request *r);
void k8s_core(struct request *r);
void k8s_groups(struct request *r);
void k8s_group(struct request *r);
void k8s_resources(struct request *r);
void k8s_openapi(struct request *r);
void k8s_openapi_group(struct request *r);
void k8s_openapi_v2(struct request *r);

/* --- state --- */

struct k8s {
    struct api *api;
    struct subscription *events;
    struct map versions;         /* "claim/ID" to the seq of its last event */
    int64_t first_seq;           /* of all that had none since */
    struct list watches;         /* struct k8s_watch */
    struct map works;            /* of a claim's id to struct work */
    bool looked, ending, failed; /* failed: the log could not be read */
};
struct k8s *k8s_of(const struct api *a);

/* --- what becomes of claims (control.c, make.c) --- */

/* Makes its sandbox, if it needs one. */
void k8s_claim_begin(struct k8s *k, struct claim *c);
void k8s_claim_event(struct k8s *k, const struct event *ev); /* of sandboxes */
void k8s_claims_tick(struct k8s *k);
void k8s_claims_done(struct k8s *k);
bool k8s_claim_is_leaving(const struct api *a, const char *id);
/* Destroys its sandbox, then removes it. */
void k8s_claim_remove(struct k8s *k, struct claim *c, const struct principal *by, k8s_removed done,
                      void *arg);
struct k8s_wish { /* a sandbox to be made, with what its texts are in */
    struct sandbox_spec spec;
    struct arena mem;
    json_t *body; /* the template's fields */
};
void k8s_wish_done(struct k8s_wish *w);
/* Reads a claim's template and its own wishes.  -1: *why is how it ends. */
CHECKED int k8s_claim_spec(struct api *a, const struct principal *by, const struct claim_info *i,
                           struct k8s_wish *w, struct claim_state *why);
/* A sandbox's note: who it is for. */
void k8s_note(struct buf *to, const char *claim, const json_t *annotations);
struct str k8s_note_claim(const json_t *note);
/* Adds the directory of the runtime, unless something is mounted there. */
void k8s_add_base(struct sandbox_spec *spec, struct arena *mem);

/* The sandbox of this name, which the caller may use (box.c). */
struct sandbox *k8s_sandbox(struct api *a, const struct principal *by, struct str space,
                            struct str name, struct err *e);

/* --- the router (router.c, runtime.c, file.c) --- */

bool k8s_takes(const struct xchg *x);
void k8s_router(struct request *r);
/* The sandbox that the headers name, and its port; NULL: the reply is sent. */
struct sandbox *k8s_target(struct request *r, int *ret_port);
void k8s_router_fail(struct request *r, int status, const struct err *e);
void k8s_detail(struct request *r, int status, const char *fmt, ...) PRINTF_LIKE(3, 4);
/* Whether it is a call of one of the two runtimes: then it is served. */
bool k8s_legacy(struct request *r, struct sandbox *s);
bool k8s_sandboxd(struct request *r, struct sandbox *s);
