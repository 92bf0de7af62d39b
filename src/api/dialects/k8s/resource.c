/* resource: list, get, create, patch, replace and delete, of any kind. */
#include "api/dialects/k8s/k8s.h"

#include "base/mem.h"
#include "base/rnd.h"

#include <inttypes.h>

#define TIMEOUT_MAX_S (24 * 3600)
#define GENERATED 5 /* characters after generateName */

/* --- queries --- */

static struct str query(const struct request *r, const char *key)
{
    struct str v = {0};

    if (http_query_get(xchg_req(r->x)->query, key, xchg_arena(r->x), &v) <= 0)
        return STR("");
    return v;
}

static bool query_flag(const struct request *r, const char *key)
{
    struct str v = query(r, key);

    return str_eq_c(v, "true") || str_eq_c(v, "1");
}

/* "application/json;as=Table;v=v1;g=meta.k8s.io,application/json": the first we know wins. */
static enum k8s_form form_of(const struct request *r)
{
    struct str accept = http_req_header(xchg_req(r->x), "accept");

    while (accept.n > 0) {
        struct str params, one = str_trim(str_cut(accept, ',', &accept));
        bool json = str_case_eq_c(str_trim(str_cut(one, ';', &params)), "application/json");
        bool table = json && str_find(params, STR("as=Table"));

        if (table && str_find(params, STR("v=v1")) && !str_find(params, STR("v=v1beta1")))
            return K8S_TABLE;
        if (json && !str_find(params, STR("as=")))
            return K8S_OBJECTS;
    }
    return K8S_OBJECTS;
}

static int read_query(struct request *r, struct k8s_query *q, struct err *e)
{
    struct str timeout = query(r, "timeoutSeconds"), include = query(r, "includeObject");
    struct str dry = query(r, "dryRun");

    *q = (struct k8s_query){.version = query(r, "resourceVersion"),
                            .watch = query_flag(r, "watch"),
                            .bookmarks = query_flag(r, "allowWatchBookmarks"),
                            .initial = query_flag(r, "sendInitialEvents"),
                            .dry = dry.n > 0,
                            .form = form_of(r),
                            .include = str_eq_c(include, "Object") ? K8S_WHOLE
                                       : str_eq_c(include, "None") ? K8S_NOTHING
                                                                   : K8S_METADATA};
    if (dry.n > 0 && !str_eq_c(dry, "All"))
        return err_set(e, ERR_INVALID, 0, "dryRun: the only value is All");
    if (timeout.n > 0 && (str_parse_i64(timeout, &q->timeout_s) < 0 || q->timeout_s < 0 ||
                          q->timeout_s > TIMEOUT_MAX_S))
        return err_set(e, ERR_INVALID, 0, "timeoutSeconds must be from 0 to %d", TIMEOUT_MAX_S);
    if (k8s_select_labels(&q->selector, query(r, "labelSelector"), e) < 0)
        return -1;
    return k8s_select_fields(&q->selector, query(r, "fieldSelector"), e);
}

/* NULL: the reply is sent. */
static struct k8s_query *query_of(struct request *r)
{
    struct k8s_query *q = arena_zalloc(xchg_arena(r->x), sizeof *q);
    struct err e = {0};

    if (read_query(r, q, &e) == 0)
        return q;
    k8s_refuse(r, &e);
    return NULL;
}

static struct str param(const struct request *r, size_t i)
{
    return i < r->params.n ? r->params.v[i] : STR("");
}

static bool check_space(struct request *r)
{
    if (param(r, 0).n == 0 || k8s_is_label(param(r, 0)))
        return true;
    k8s_error(r, 400, NULL, STR(""), "the namespace is not a DNS-1123 label");
    return false;
}

/* --- list, get --- */

static json_t *selected(struct request *r, const struct k8s_kind *kind, const struct k8s_query *q)
{
    json_t *all = kind->list(r->api, &r->who, param(r, 0)), *some = json_array(), *o;
    size_t i;

    json_array_foreach(all, i, o)
    {
        if (k8s_selects(&q->selector, o))
            json_array_append(some, o);
    }
    json_decref(all);
    return some;
}

static json_t *list_meta(const struct request *r)
{
    json_t *meta = json_object();

    json_object_set_new(meta, "resourceVersion",
                        json_sprintf("%" PRId64, events_head(r->api->c.events, NULL)));
    return meta;
}

void k8s_list(struct request *r, const struct k8s_kind *kind)
{
    struct k8s_query *q = query_of(r);
    json_t *list;

    if (!q || !check_space(r))
        return;
    if (q->watch) {
        k8s_watch(r, kind, q, param(r, 0));
        return;
    }
    if (q->form == K8S_TABLE) {
        list = k8s_table(kind, q, selected(r, kind, q), true);
    } else {
        list = json_object();
        json_object_set_new(list, "apiVersion", json_sprintf("%s/" K8S_VERSION, kind->group));
        json_object_set_new(list, "kind", json_sprintf("%sList", kind->kind));
        json_object_set_new(list, "items", selected(r, kind, q));
    }
    json_object_set_new(list, "metadata", list_meta(r));
    k8s_send(r, 200, list);
}

static void not_found(struct request *r, const struct k8s_kind *kind, struct str name)
{
    k8s_error(r, 404, kind, name, "%s.%s \"" STR_FMT "\" not found", kind->plural, kind->group,
              (int)size_min(name.n, 100), name.p);
}

/* The object of the path; NULL: the reply is sent. */
static json_t *here(struct request *r, const struct k8s_kind *kind)
{
    struct err e = {0};
    json_t *o;

    if (!check_space(r))
        return NULL;
    o = kind->find(r->api, &r->who, param(r, 0), param(r, 1), &e);
    if (!o && e.code == ERR_CONFLICT)
        k8s_refuse(r, &e);
    else if (!o)
        not_found(r, kind, param(r, 1));
    return o;
}

void k8s_get(struct request *r, const struct k8s_kind *kind)
{
    struct k8s_query *q = query_of(r);
    json_t *o = q ? here(r, kind) : NULL, *table;

    if (!o)
        return;
    if (q->form != K8S_TABLE) {
        k8s_send(r, 200, o);
        return;
    }
    table = k8s_table(kind, q, json_pack("[o]", o), true);
    json_object_set_new(table, "metadata", list_meta(r));
    k8s_send(r, 200, table);
}

/* --- bodies --- */

static bool has_type(const struct request *r, const char *type)
{
    struct str given = http_req_header(xchg_req(r->x), "content-type");

    return str_case_eq_c(str_trim(str_cut(given, ';', &(struct str){0})), type);
}

/* False: the reply is sent. */
static bool read_body(struct request *r, struct str body)
{
    struct err e = {0};

    if (json_read_lax(body, &r->body, &e) < 0) {
        err_wrap(&e, "the object provided is not JSON");
        k8s_refuse(r, &e);
        return false;
    }
    return true;
}

static bool check_kind(struct request *r, const struct k8s_kind *kind, const json_t *o)
{
    const char *version = arena_printf(xchg_arena(r->x), "%s/" K8S_VERSION, kind->group);
    struct str given = k8s_text(o, "apiVersion"), name = k8s_text(o, "kind");

    if (!json_is_object(o) || !json_is_object(k8s_meta(o)))
        k8s_error(r, 400, NULL, STR(""), "the object must have metadata");
    else if ((given.n > 0 && !str_eq_c(given, version)) ||
             (name.n > 0 && !str_eq_c(name, kind->kind)))
        k8s_error(r, 400, NULL, STR(""),
                  "the object provided is " STR_FMT " " STR_FMT ", expected %s %s",
                  (int)size_min(given.n, 80), given.p, (int)size_min(name.n, 80), name.p, version,
                  kind->kind);
    else if (k8s_space(o).n > 0 && !str_eq(k8s_space(o), param(r, 0)))
        k8s_error(r, 400, NULL, STR(""),
                  "the namespace of the provided object does not match the namespace sent on the "
                  "request");
    else
        return true;
    return false;
}

/* --- create --- */

static struct str generated(struct request *r, struct str prefix)
{
    static const char letters[] = "bcdfghjklmnpqrstvwxz2456789"; /* Kubernetes': no words */
    unsigned char bytes[GENERATED];
    char text[GENERATED + 1] = "";

    rnd_bytes(bytes, sizeof bytes);
    for (size_t i = 0; i < GENERATED; i++)
        text[i] = letters[bytes[i] % (sizeof letters - 1)];
    return str_of(arena_printf(xchg_arena(r->x), STR_FMT "%s", STR_ARG(prefix), text));
}

static const struct k8s_kind *kind_of(const struct request *r)
{
    return ((const struct k8s_route *)r->route->data)->kind;
}

static void create_with(struct request *r, struct str body)
{
    const struct k8s_kind *kind = kind_of(r);
    const struct k8s_query *q = r->in;
    struct err e = {0};
    struct str name;

    if (!read_body(r, body) || !check_kind(r, kind, r->body))
        return;
    name = k8s_name(r->body);
    if (name.n == 0 && k8s_text(k8s_meta(r->body), "generateName").n > 0)
        name = generated(r, k8s_text(k8s_meta(r->body), "generateName"));
    if (!k8s_is_subdomain(name))
        k8s_invalid(r, kind, name, "metadata.name",
                    name.n ? "Invalid value: a lowercase RFC 1123 subdomain must consist of lower "
                             "case alphanumeric characters, '-' or '.'"
                           : "Required value: name or generateName is required");
    else if (k8s_check_map(json_object_get(k8s_meta(r->body), "labels"), "metadata.labels", true,
                           &e) < 0 ||
             k8s_check_map(json_object_get(k8s_meta(r->body), "annotations"),
                           "metadata.annotations", false, &e) < 0)
        k8s_invalid(r, kind, name, "metadata", e.msg);
    else if (json_array_size(json_object_get(k8s_meta(r->body), "finalizers")) > 0)
        k8s_invalid(r, kind, name, "metadata.finalizers", "holt knows no finalizers");
    else
        kind->create(r, param(r, 0), name, q->dry);
}

void k8s_create(struct request *r, const struct k8s_kind *kind)
{
    (void)kind;
    r->in = query_of(r);
    if (r->in && check_space(r))
        request_collect(r, create_with);
}

/* --- patch, replace --- */

/* The body was an object's next form; now is released here. */
static void change_to(struct request *r, json_t *now, json_t *wanted)
{
    const struct k8s_kind *kind = kind_of(r);
    const struct k8s_query *q = r->in;
    struct str given = k8s_text(k8s_meta(wanted), "resourceVersion");
    struct err e = {0};

    if (!check_kind(r, kind, wanted)) {
        /* replied */
    } else if (!str_eq(k8s_name(wanted), k8s_name(now))) {
        k8s_error(r, 400, NULL, STR(""), "the name of the object does not match the URL");
    } else if (given.n > 0 && !str_eq(given, k8s_text(k8s_meta(now), "resourceVersion"))) {
        k8s_error(r, 409, kind, k8s_name(now),
                  "Operation cannot be fulfilled on %s.%s \"" STR_FMT
                  "\": the object has been modified; please apply your changes to the latest "
                  "version and try again",
                  kind->plural, kind->group, STR_ARG(k8s_name(now)));
    } else if (k8s_check_map(json_object_get(k8s_meta(wanted), "labels"), "metadata.labels", true,
                             &e) < 0 ||
               k8s_check_map(json_object_get(k8s_meta(wanted), "annotations"),
                             "metadata.annotations", false, &e) < 0) {
        k8s_invalid(r, kind, k8s_name(now), "metadata", e.msg);
    } else if (json_array_size(json_object_get(k8s_meta(wanted), "finalizers")) > 0) {
        k8s_invalid(r, kind, k8s_name(now), "metadata.finalizers", "holt knows no finalizers");
    } else {
        kind->change(r, now, wanted, q->dry);
    }
}

static void patch_with(struct request *r, struct str body)
{
    AUTO(json_decref) json_t *now = NULL, *wanted = NULL;
    struct err e = {0};

    if (!read_body(r, body))
        return;
    now = here(r, kind_of(r));
    if (!now)
        return;
    wanted = json_deep_copy(now);
    if (json_is_array(r->body) && k8s_json_patch(&wanted, r->body, &e) < 0)
        k8s_error(r, 422, NULL, STR(""), "%s", e.msg);
    else {
        if (json_is_object(r->body))
            k8s_merge(wanted, r->body);
        change_to(r, now, wanted);
    }
}

void k8s_patch(struct request *r, const struct k8s_kind *kind)
{
    bool known = has_type(r, "application/merge-patch+json") ||
                 has_type(r, "application/json-patch+json") ||
                 has_type(r, "application/apply-patch+yaml");
    json_t *now;

    if (!kind->change) {
        k8s_error(r, 405, kind, STR(""), "%s cannot be changed here", kind->plural);
        return;
    }
    now = here(r, kind);
    if (!now)
        return;
    json_decref(now); /* the body is still to come: it is looked up again then */
    if (!known) {
        k8s_error(r, 415, kind, STR(""),
                  "the body of the request was in an unknown format - accepted media types "
                  "include: application/json-patch+json, application/merge-patch+json, "
                  "application/apply-patch+yaml");
        return;
    }
    r->in = query_of(r);
    if (r->in)
        request_collect(r, patch_with);
}

static void replace_with(struct request *r, struct str body)
{
    AUTO(json_decref) json_t *now = NULL;

    if (!read_body(r, body))
        return;
    now = here(r, kind_of(r));
    if (now)
        change_to(r, now, r->body);
}

void k8s_replace(struct request *r, const struct k8s_kind *kind)
{
    if (!kind->change) {
        k8s_error(r, 405, kind, STR(""), "%s cannot be changed here", kind->plural);
        return;
    }
    r->in = query_of(r);
    if (r->in)
        request_collect(r, replace_with);
}

/* --- delete --- */

struct delete_job { /* of one object, or of several */
    struct waiter waiter;
    const struct k8s_kind *kind;
    size_t left;
    char *name, *uid; /* of one; NULL: several */
    struct err e;     /* the first failure */
};

static void delete_ended(struct delete_job *j)
{
    struct request *r = waiter_end(&j->waiter);
    json_t *s, *d;

    if (r && j->e.code != ERR_NONE) {
        k8s_refuse(r, &j->e);
    } else if (r) {
        s = k8s_status(200, NULL, STR(""));
        d = json_object();
        if (j->name) {
            json_object_set_new(d, "name", json_string(j->name));
            json_object_set_new(d, "uid", json_string(j->uid));
        }
        json_object_set_new(d, "group", json_string(j->kind->group));
        json_object_set_new(d, "kind", json_string(j->kind->plural));
        json_object_set_new(s, "details", d);
        json_object_del(s, "code");
        k8s_send(r, 200, s);
    }
    mem_free(j->name);
    mem_free(j->uid);
    mem_free(j);
}

static void one_deleted(void *arg, const struct err *e)
{
    struct delete_job *j = arg;

    if (e->code != ERR_NONE && e->code != ERR_NOT_FOUND && j->e.code == ERR_NONE)
        j->e = *e;
    if (--j->left == 0)
        delete_ended(j);
}

/* objects is released; name: of the only one. */
static void delete_all(struct request *r, const struct k8s_kind *kind, json_t *objects, bool one)
{
    struct delete_job *j = xzalloc(sizeof *j);
    const struct principal by = request_who(r);
    json_t *o;
    size_t i;

    j->kind = kind;
    j->left = 1; /* until all have begun */
    if (one) {
        j->name = str_dup(k8s_name(json_array_get(objects, 0)));
        j->uid = str_dup(k8s_text(k8s_meta(json_array_get(objects, 0)), "uid"));
    }
    request_wait(r, &j->waiter);
    json_array_foreach(objects, i, o)
    {
        struct err e = {0};

        j->left++;
        if (kind->remove(r->api, &by, o, one_deleted, j, &e) < 0)
            one_deleted(j, &e);
    }
    json_decref(objects);
    one_deleted(j, &(struct err){0});
}

static bool fits_preconditions(struct request *r, const struct k8s_kind *kind, const json_t *o)
{
    const json_t *p = json_object_get(r->body, "preconditions");
    struct str uid = k8s_text(p, "uid"), version = k8s_text(p, "resourceVersion");
    const char *what = NULL;

    if (uid.n > 0 && !str_eq(uid, k8s_text(k8s_meta(o), "uid")))
        what = "UID";
    else if (version.n > 0 && !str_eq(version, k8s_text(k8s_meta(o), "resourceVersion")))
        what = "ResourceVersion";
    if (what)
        k8s_error(r, 409, kind, k8s_name(o),
                  "Operation cannot be fulfilled on %s.%s \"" STR_FMT
                  "\": Precondition failed: %s in precondition is not that of the object",
                  kind->plural, kind->group, STR_ARG(k8s_name(o)), what);
    return !what;
}

static bool is_dry(const struct request *r)
{
    const struct k8s_query *q = r->in;

    return q->dry || json_array_size(json_object_get(r->body, "dryRun")) > 0;
}

static void delete_with(struct request *r, struct str body)
{
    const struct k8s_kind *kind = kind_of(r);
    json_t *o;

    if (body.n > 0 && !read_body(r, body))
        return;
    o = here(r, kind);
    if (!o)
        return;
    if (!fits_preconditions(r, kind, o)) {
        json_decref(o);
    } else if (is_dry(r)) {
        k8s_send(r, 200, o);
    } else {
        delete_all(r, kind, json_pack("[o]", o), true);
    }
}

void k8s_delete(struct request *r, const struct k8s_kind *kind)
{
    (void)kind;
    r->in = query_of(r);
    if (r->in)
        request_collect(r, delete_with);
}

static void delete_all_with(struct request *r, struct str body)
{
    const struct k8s_kind *kind = kind_of(r);

    if (body.n > 0 && !read_body(r, body))
        return;
    if (is_dry(r))
        k8s_send(r, 200, k8s_status(200, NULL, STR("")));
    else
        delete_all(r, kind, selected(r, kind, r->in), false);
}

void k8s_delete_all(struct request *r, const struct k8s_kind *kind)
{
    (void)kind;
    r->in = query_of(r);
    if (r->in && check_space(r))
        request_collect(r, delete_all_with);
}
