/* discovery: which groups, kinds and verbs there are, as kubectl and other clients ask. */
#include "api/dialects/k8s/k8s.h"

#include <ctype.h>

#define MAJOR "1"
#define MINOR "36" /* of the API whose forms these are */
#define AGGREGATED "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

static const char *const groups[] = {K8S_GROUP, K8S_EXTENSIONS, NULL};

static json_t *verbs_of(const struct k8s_kind *kind)
{
    static const char *const all[] = {"create", "delete", "deletecollection",
                                      "get",    "list",   "watch"};
    json_t *v = json_array();

    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        json_array_append_new(v, json_string(all[i]));
    if (kind->change) {
        json_array_append_new(v, json_string("patch"));
        json_array_append_new(v, json_string("update"));
    }
    return v;
}

static json_t *short_names(const struct k8s_kind *kind)
{
    return kind->short_name ? json_pack("[s]", kind->short_name) : json_array();
}

/* --- /version, /api --- */

void k8s_version(struct request *r)
{
    k8s_send(
        r, 200,
        json_pack("{s:s,s:s,s:o,s:s,s:s,s:s,s:s}", "major", MAJOR, "minor", MINOR, "gitVersion",
                  json_sprintf("v" MAJOR "." MINOR ".0+holt-%s", r->api->c.version), "gitTreeState",
                  "clean", "goVersion", "none", "compiler", "none", "platform", "linux/amd64"));
}

static bool wants_aggregated(const struct request *r)
{
    struct str accept = http_req_header(xchg_req(r->x), "accept");

    while (accept.n > 0) {
        struct str one = str_cut(accept, ',', &accept);

        if (str_find(one, STR("as=APIGroupDiscoveryList")) && str_find(one, STR("v=v2;")))
            return true;
    }
    return false;
}

static void send_aggregated(struct request *r, json_t *items)
{
    json_t *list = json_pack("{s:s,s:s,s:{},s:o}", "kind", "APIGroupDiscoveryList", "apiVersion",
                             "apidiscovery.k8s.io/v2", "metadata", "items", items);
    struct jw w = request_json(r);

    jw_json(&w, list);
    json_decref(list);
    request_send(r, 200, AGGREGATED, buf_str(&r->api->scratch));
}

/* The core group is empty: there are no pods here. */
void k8s_core(struct request *r)
{
    if (wants_aggregated(r))
        send_aggregated(r, json_array());
    else
        k8s_send(r, 200, json_pack("{s:s,s:[]}", "kind", "APIVersions", "versions"));
}

/* --- /apis --- */

static json_t *response_kind(const struct k8s_kind *kind)
{
    return json_pack("{s:s,s:s,s:s}", "group", kind->group, "version", K8S_VERSION, "kind",
                     kind->kind);
}

static json_t *discovered(const struct k8s_kind *kind)
{
    json_t *d = json_pack("{s:s,s:o,s:s,s:s,s:o}", "resource", kind->plural, "responseKind",
                          response_kind(kind), "scope", "Namespaced", "singularResource",
                          kind->singular, "verbs", verbs_of(kind));

    if (kind->short_name)
        json_object_set_new(d, "shortNames", short_names(kind));
    if (kind->status)
        json_object_set_new(d, "subresources",
                            json_pack("[{s:s,s:o,s:[s]}]", "subresource", "status", "responseKind",
                                      response_kind(kind), "verbs", "get"));
    return d;
}

static json_t *group_discovery(const char *group)
{
    json_t *all = json_array();

    for (size_t i = 0; k8s_kinds[i]; i++)
        if (strcmp(k8s_kinds[i]->group, group) == 0)
            json_array_append_new(all, discovered(k8s_kinds[i]));
    return json_pack("{s:{s:s,s:n},s:[{s:s,s:o,s:s}]}", "metadata", "name", group,
                     "creationTimestamp", "versions", "version", K8S_VERSION, "resources", all,
                     "freshness", "Current");
}

static json_t *group_of(const char *group)
{
    json_t *version = json_object();

    json_object_set_new(version, "groupVersion", json_sprintf("%s/" K8S_VERSION, group));
    json_object_set_new(version, "version", json_string(K8S_VERSION));
    return json_pack("{s:s,s:[O],s:o}", "name", group, "versions", version, "preferredVersion",
                     version);
}

void k8s_groups(struct request *r)
{
    json_t *all = json_array();
    bool aggregated = wants_aggregated(r);

    for (size_t i = 0; groups[i]; i++)
        json_array_append_new(all, aggregated ? group_discovery(groups[i]) : group_of(groups[i]));
    if (aggregated)
        send_aggregated(r, all);
    else
        k8s_send(
            r, 200,
            json_pack("{s:s,s:s,s:o}", "kind", "APIGroupList", "apiVersion", "v1", "groups", all));
}

static const char *group_named(struct request *r)
{
    for (size_t i = 0; groups[i]; i++)
        if (str_eq_c(r->params.v[0], groups[i]))
            return groups[i];
    k8s_error(r, 404, NULL, STR(""), "the server could not find the requested resource");
    return NULL;
}

void k8s_group(struct request *r)
{
    const char *group = group_named(r);
    json_t *g;

    if (!group)
        return;
    g = group_of(group);
    json_object_set_new(g, "kind", json_string("APIGroup"));
    json_object_set_new(g, "apiVersion", json_string("v1"));
    k8s_send(r, 200, g);
}

static bool is_version(struct request *r)
{
    if (str_eq_c(r->params.v[1], K8S_VERSION))
        return true;
    k8s_error(r, 404, NULL, STR(""), "the server could not find the requested resource");
    return false;
}

void k8s_resources(struct request *r)
{
    const char *group = group_named(r);
    json_t *all;

    if (!group || !is_version(r))
        return;
    all = json_array();
    for (size_t i = 0; k8s_kinds[i]; i++) {
        const struct k8s_kind *k = k8s_kinds[i];

        if (strcmp(k->group, group) != 0)
            continue;
        json_array_append_new(all, json_pack("{s:s,s:s,s:b,s:s,s:o,s:o}", "name", k->plural,
                                             "singularName", k->singular, "namespaced", true,
                                             "kind", k->kind, "verbs", verbs_of(k), "shortNames",
                                             short_names(k)));
        if (k->status)
            json_array_append_new(all, json_pack("{s:o,s:s,s:b,s:s,s:[s]}", "name",
                                                 json_sprintf("%s/status", k->plural),
                                                 "singularName", "", "namespaced", true, "kind",
                                                 k->kind, "verbs", "get"));
    }
    k8s_send(r, 200,
             json_pack("{s:s,s:s,s:o,s:o}", "kind", "APIResourceList", "apiVersion", "v1",
                       "groupVersion", json_sprintf("%s/" K8S_VERSION, group), "resources", all));
}

/* --- /openapi: as much as kubectl needs to let the server check objects --- */

void k8s_openapi(struct request *r)
{
    json_t *paths = json_object();

    for (size_t i = 0; groups[i]; i++) {
        const char *at = arena_printf(xchg_arena(r->x), "apis/%s/" K8S_VERSION, groups[i]);

        json_object_set_new(
            paths, at, json_pack("{s:o}", "serverRelativeURL", json_sprintf("/openapi/v3/%s", at)));
    }
    k8s_send(r, 200, json_pack("{s:o}", "paths", paths));
}

static json_t *operation(const struct k8s_kind *kind, const char *action)
{
    return json_pack("{s:s,s:o,s:[{s:s,s:s,s:{s:s}},{s:s,s:s,s:{s:s}}],s:{s:{s:s}}}",
                     "x-kubernetes-action", action, "x-kubernetes-group-version-kind",
                     response_kind(kind), "parameters", "name", "fieldValidation", "in", "query",
                     "schema", "type", "string", "name", "dryRun", "in", "query", "schema", "type",
                     "string", "responses", "200", "description", "OK");
}

static void put_schema(json_t *to, const struct k8s_kind *kind, struct arena *a)
{
    /* "io.x-k8s.agents.v1beta1.Sandbox": the group backwards */
    const char *ext = strcmp(kind->group, K8S_EXTENSIONS) == 0 ? "extensions." : "";

    json_object_set_new(
        to, arena_printf(a, "io.x-k8s.agents.%s" K8S_VERSION ".%s", ext, kind->kind),
        json_pack("{s:s,s:{s:{s:s},s:{s:s},s:{s:s},s:{s:s,s:b},s:{s:s,s:b}},s:[o]}", "type",
                  "object", "properties", "apiVersion", "type", "string", "kind", "type", "string",
                  "metadata", "type", "object", "spec", "type", "object",
                  "x-kubernetes-preserve-unknown-fields", true, "status", "type", "object",
                  "x-kubernetes-preserve-unknown-fields", true, "x-kubernetes-group-version-kind",
                  response_kind(kind)));
}

void k8s_openapi_group(struct request *r)
{
    const char *group = group_named(r);
    json_t *paths, *schemas;
    struct arena *a = xchg_arena(r->x);

    if (!group || !is_version(r))
        return;
    paths = json_object();
    schemas = json_object();
    for (size_t i = 0; k8s_kinds[i]; i++) {
        const struct k8s_kind *k = k8s_kinds[i];
        const char *all;

        if (strcmp(k->group, group) != 0)
            continue;
        all =
            arena_printf(a, "/apis/%s/" K8S_VERSION "/namespaces/{namespace}/%s", group, k->plural);
        json_object_set_new(paths, all, json_pack("{s:o}", "post", operation(k, "post")));
        json_object_set_new(
            paths, arena_printf(a, "%s/{name}", all),
            json_pack("{s:o,s:o}", "patch", operation(k, "patch"), "put", operation(k, "put")));
        put_schema(schemas, k, a);
    }
    k8s_send(r, 200,
             json_pack("{s:s,s:{s:s,s:s},s:o,s:{s:o}}", "openapi", "3.0.0", "info", "title", "holt",
                       "version", r->api->c.version, "paths", paths, "components", "schemas",
                       schemas));
}

void k8s_openapi_v2(struct request *r)
{
    k8s_send(r, 200,
             json_pack("{s:s,s:{s:s,s:s},s:{},s:{}}", "swagger", "2.0", "info", "title", "holt",
                       "version", r->api->c.version, "paths", "definitions"));
}
