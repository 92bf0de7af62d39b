/* object: Kubernetes objects as JSON values: metadata, conditions, names, patches. */
#include "api/dialects/k8s/k8s.h"

#include "base/clock.h"
#include "base/enc.h"
#include "proto/digest.h"

#include <inttypes.h>

#define SUBDOMAIN_MAX 253
#define LABEL_MAX 63
#define KEY_PREFIX_MAX 253
#define MAP_MAX 256
#define POINTER_DEPTH_MAX 32

struct str k8s_text(const json_t *o, const char *key)
{
    const json_t *v = json_object_get(o, key);

    return json_is_string(v) ? str_make(json_string_value(v), json_string_length(v)) : STR("");
}

const json_t *k8s_meta(const json_t *object)
{
    return json_object_get(object, "metadata");
}

struct str k8s_name(const json_t *object)
{
    return k8s_text(k8s_meta(object), "name");
}

struct str k8s_space(const json_t *object)
{
    return k8s_text(k8s_meta(object), "namespace");
}

json_t *k8s_str(struct str s)
{
    return s.n > 0 ? json_stringn(s.p, s.n) : json_string("");
}

json_t *k8s_time(int64_t wall_ms)
{
    char text[CLOCK_TEXT];

    clock_text(wall_ms, text);
    (void)snprintf(text + 19, sizeof text - 19, "Z");
    return json_string(text);
}

char *k8s_uid(const char *id, char to[K8S_UID])
{
    unsigned char hash[SHA256_SIZE];
    char hex[33];

    sha256(str_of(id), hash);
    enc_hex(hash, 16, hex);
    (void)snprintf(to, K8S_UID, "%.8s-%.4s-%.4s-%.4s-%.12s", hex, hex + 8, hex + 12, hex + 16,
                   hex + 20);
    return to;
}

/* --- metadata --- */

static int64_t last_version(const struct api *a, const struct k8s_identity *i)
{
    const struct k8s *k = k8s_of(a);
    char object[ID_SIZE + 16];
    uintptr_t seq;

    if (i->version > 0)
        return i->version;
    (void)snprintf(object, sizeof object, "%s%s", i->kind->event, i->id);
    seq = (uintptr_t)map_get(&k->versions, str_of(object));
    return seq > 0 ? (int64_t)seq : k->first_seq;
}

json_t *k8s_object(struct api *a, const struct k8s_identity *i)
{
    char uid[K8S_UID], version[24], kind_id[ID_SIZE + 16];
    json_t *o = json_object(), *meta = json_object();

    (void)snprintf(version, sizeof version, "%" PRId64, last_version(a, i));
    (void)snprintf(kind_id, sizeof kind_id, "%.12s %s", i->kind->kind, i->id);
    json_object_set_new(o, "apiVersion", json_sprintf("%s/" K8S_VERSION, i->kind->group));
    json_object_set_new(o, "kind", json_string(i->kind->kind));
    json_object_set_new(meta, "name", k8s_str(i->name));
    json_object_set_new(meta, "namespace", k8s_str(i->space));
    json_object_set_new(meta, "uid", json_string(k8s_uid(kind_id, uid)));
    json_object_set_new(meta, "resourceVersion", json_string(version));
    json_object_set_new(meta, "generation", json_integer(i->generation > 0 ? i->generation : 1));
    json_object_set_new(meta, "creationTimestamp", k8s_time(i->created_ms));
    json_object_set_new(o, "metadata", meta);
    return o;
}

void k8s_set_meta(json_t *object, const char *key, json_t *map)
{
    if (json_object_size(map) > 0)
        json_object_set(json_object_get(object, "metadata"), key, map);
    json_decref(map);
}

json_t *k8s_condition(const char *type, bool yes, struct str reason, struct str message,
                      int64_t since_ms)
{
    json_t *c = json_object();

    json_object_set_new(c, "type", json_string(type));
    json_object_set_new(c, "status", json_string(yes ? "True" : "False"));
    json_object_set_new(c, "reason", k8s_str(reason));
    json_object_set_new(c, "message", k8s_str(message));
    json_object_set_new(c, "lastTransitionTime", k8s_time(since_ms));
    return c;
}

bool k8s_may_see(const struct principal *by, const json_t *data, struct str sandbox)
{
    const struct owned o = {.owner = k8s_text(data, "owner"),
                            .tenant = k8s_text(data, "tenant"),
                            .sandbox = sandbox,
                            .shared = json_is_true(json_object_get(data, "shared"))};

    return owner_may(by, &o, OWNER_SEE);
}

/* --- names --- */

static bool is_alnum(char c, bool upper)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || (upper && c >= 'A' && c <= 'Z');
}

/* Letters and digits, and between them characters of `inner`. */
static bool has_form(struct str s, const char *inner, bool upper, size_t max)
{
    for (size_t i = 0; i < s.n; i++) {
        bool edge = i == 0 || i == s.n - 1;

        if (!is_alnum(s.p[i], upper) && (edge || s.p[i] == '\0' || !strchr(inner, s.p[i])))
            return false;
    }
    return s.n > 0 && s.n <= max;
}

bool k8s_is_label(struct str s)
{
    return has_form(s, "-", false, LABEL_MAX);
}

bool k8s_is_subdomain(struct str s)
{
    size_t n = 0;

    while (n < s.n) {
        struct str left, part = str_cut(str_skip(s, n), '.', &left);

        if (!has_form(part, "-", false, SUBDOMAIN_MAX))
            return false;
        n += part.n + 1;
    }
    return s.n > 0 && s.n <= SUBDOMAIN_MAX && s.p[s.n - 1] != '.';
}

static bool is_key(struct str key)
{
    struct str name, prefix = str_cut(key, '/', &name);

    if (str_index(key, '/') < 0)
        return has_form(key, "-_.", true, LABEL_MAX);
    return prefix.n <= KEY_PREFIX_MAX && k8s_is_subdomain(prefix) &&
           has_form(name, "-_.", true, LABEL_MAX);
}

int k8s_check_map(const json_t *map, const char *field, bool labels, struct err *e)
{
    const char *key;
    json_t *v;

    if (!map || json_is_null(map))
        return 0;
    if (!json_is_object(map) || json_object_size(map) > MAP_MAX)
        return err_set(e, ERR_INVALID, 0, "%s: must be an object of at most %d texts", field,
                       MAP_MAX);
    json_object_foreach((json_t *)(uintptr_t)map, key, v)
    {
        if (!is_key(str_of(key)))
            return err_set(e, ERR_INVALID, 0,
                           "%s: Invalid value: \"%.80s\": name part must "
                           "consist of alphanumeric characters, '-', '_' or '.'",
                           field, key);
        if (!json_is_string(v))
            return err_set(e, ERR_INVALID, 0, "%s: the value of \"%.80s\" must be a string", field,
                           key);
        if (labels && json_string_length(v) > 0 &&
            !has_form(str_of(json_string_value(v)), "-_.", true, LABEL_MAX))
            return err_set(e, ERR_INVALID, 0,
                           "%s: Invalid value: \"%.80s\": a valid label must "
                           "be at most 63 alphanumeric characters, '-', '_' or '.'",
                           field, json_string_value(v));
    }
    return 0;
}

/* --- patches --- */

void k8s_merge(json_t *to, const json_t *patch)
{
    const char *key;
    json_t *v;

    json_object_foreach((json_t *)(uintptr_t)patch, key, v)
    {
        json_t *old = json_object_get(to, key);

        if (json_is_null(v)) {
            json_object_del(to, key);
        } else if (!json_is_object(v)) {
            json_object_set(to, key, v);
        } else {
            if (!json_is_object(old))
                json_object_set_new(to, key, json_object());
            k8s_merge(json_object_get(to, key), v);
        }
    }
}

/* The next name of a JSON pointer (RFC 6901), on the heap of buf. */
static struct str pointer_next(struct str *left, struct buf *to)
{
    struct str raw = str_cut(str_skip(*left, 1), '/', left);

    if (raw.p + raw.n < left->p) /* there was a '/' */
        *left = str_make(left->p - 1, left->n + 1);
    buf_clear(to);
    for (size_t i = 0; i < raw.n; i++) {
        bool escaped = raw.p[i] == '~' && i + 1 < raw.n;

        buf_add_char(to, !escaped ? raw.p[i] : raw.p[i + 1] == '1' ? '/' : '~');
        i += escaped;
    }
    return str_of(buf_cstr(to));
}

static json_t *member(json_t *o, struct str name)
{
    int64_t at;

    if (json_is_object(o))
        return json_object_get(o, name.p);
    return json_is_array(o) && str_parse_i64(name, &at) == 0 && at >= 0
               ? json_array_get(o, (size_t)at)
               : NULL;
}

static int put_member(json_t *in, struct str name, json_t *v, bool replace)
{
    int64_t at = (int64_t)json_array_size(in);

    if (json_is_object(in))
        return json_object_set(in, name.p, v);
    if (!json_is_array(in) || (!str_eq_c(name, "-") && str_parse_i64(name, &at) < 0) || at < 0)
        return -1;
    return replace ? json_array_set(in, (size_t)at, v) : json_array_insert(in, (size_t)at, v);
}

static int del_member(json_t *in, struct str name)
{
    int64_t at;

    if (json_is_object(in))
        return json_object_del(in, name.p);
    return json_is_array(in) && str_parse_i64(name, &at) == 0 && at >= 0
               ? json_array_remove(in, (size_t)at)
               : -1;
}

static int patch_step(json_t *to, const json_t *step)
{
    struct str op = k8s_text(step, "op"), path = k8s_text(step, "path");
    json_t *v = json_object_get(step, "value"), *in = NULL, *at = to;
    AUTO(buf_done) struct buf hold = {0};
    struct str name = STR("");

    if (path.n == 0 || path.p[0] != '/')
        return -1;
    for (int depth = 0; at && path.n > 0; depth++) {
        if (depth > POINTER_DEPTH_MAX)
            return -1;
        in = at;
        name = pointer_next(&path, &hold);
        at = member(in, name);
    }
    if (path.n > 0 || (!at && !str_eq_c(op, "add")))
        return -1;
    if (str_eq_c(op, "remove"))
        return del_member(in, name);
    if (!v)
        return -1;
    if (str_eq_c(op, "test"))
        return json_equal(at, v) ? 0 : -1;
    if (!str_eq_c(op, "add") && !str_eq_c(op, "replace"))
        return -1;
    return put_member(in, name, v, str_eq_c(op, "replace"));
}

int k8s_json_patch(json_t **to, const json_t *patch, struct err *e)
{
    for (size_t i = 0; i < json_array_size(patch); i++)
        if (patch_step(*to, json_array_get(patch, i)) < 0)
            return err_set(e, ERR_INVALID, 0,
                           "the server rejected our request: step %zu of the JSON patch does not "
                           "apply (add, remove, replace and test are known)",
                           i);
    return 0;
}
