/* secret_rule: checks and builds the rule that limits a secret to requests. */
#include "core/network/secret_internal.h"

#include "proto/binding.h"
#include "proto/http1.h"

#define HOSTS_MAX 32

static const char *const places[] = {"header", "query", "basic"};

int secret_name_check(struct str name, struct err *e)
{
    if (name.n > 0 && name.n <= SECRET_NAME_MAX &&
        op_pattern_fits(op_pattern(OP_PATTERN_NAME), name))
        return 0;
    (void)err_set(e, ERR_INVALID, 0, "field 'name': '" STR_FMT "' is not a valid name",
                  (int)size_min(name.n, 64), name.p ? name.p : "");
    return err_hint(e, "1 to %d letters, digits, '.', '_' and '-'", SECRET_NAME_MAX);
}

/* It must be valid in a header (RFC 9110 5.5); the value itself is never in a message. */
int secret_value_check(struct str value, struct err *e)
{
    if (value.n < BINDING_VALUE_MIN || value.n > BINDING_VALUE_MAX)
        return err_set(e, ERR_INVALID, 0, "field 'value' must have %d to %d bytes",
                       BINDING_VALUE_MIN, BINDING_VALUE_MAX);
    if (!http1_is_value(value)) {
        (void)err_set(e, ERR_INVALID, 0,
                      "field 'value' contains a byte that is not allowed in a header");
        return err_hint(e, "one line, without a line break at its end");
    }
    return 0;
}

static int add_host(json_t *to, struct str host, struct err *e)
{
    char name[2 + HOST_NAME_MAX_LEN + 1] = "*.";
    bool wild;
    struct ip ip;

    if (ip_parse(host, &ip)) {
        (void)err_set(e, ERR_INVALID, 0, "field 'hosts': '" STR_FMT "' is an address",
                      (int)size_min(host.n, 64), host.p);
        return err_hint(e, "a secret is for host names: exact, or like *.example.com");
    }
    if (match_name_parse(host, name + 2, &wild, e) < 0)
        return err_wrap(e, "field 'hosts'");
    json_array_append_new(to, json_string(wild ? name : name + 2));
    return 0;
}

static int make_hosts(struct op_list hosts, json_t *rule, struct err *e)
{
    json_t *to = json_array();

    json_object_set_new(rule, "hosts", to);
    if (hosts.n > HOSTS_MAX)
        return err_set(e, ERR_INVALID, 0, "field 'hosts': more than %d", HOSTS_MAX);
    for (size_t i = 0; i < hosts.n; i++)
        if (add_host(to, hosts.v[i], e) < 0)
            return -1;
    return 0;
}

/* Takes v. */
static int put(json_t *rule, const char *key, json_t *v,
               int (*check)(struct match *m, const json_t *v, struct err *e), struct err *e)
{
    struct match m = {0};
    int r = check(&m, v, e);

    match_done(&m);
    json_object_set_new(rule, key, v);
    return r < 0 ? err_wrap(e, "field '%s'", key) : 0;
}

static int make_methods(const struct op_list *methods, json_t *rule, struct err *e)
{
    json_t *to;

    (void)json_object_del(rule, "methods");
    if (methods->n == 0)
        return 0;
    to = json_array();
    for (size_t i = 0; i < methods->n; i++)
        json_array_append_new(to, json_stringn(methods->v[i].p, methods->v[i].n));
    return put(rule, "methods", to, match_methods, e);
}

static int make_path(struct str path, json_t *rule, struct err *e)
{
    (void)json_object_del(rule, "path");
    if (path.n == 0)
        return 0;
    return put(rule, "path", json_stringn(path.p, path.n), match_path, e);
}

/* None given: all. */
static int make_places(struct op_list asked, json_t *rule, struct err *e)
{
    json_t *to = json_array();
    size_t known = 0;

    json_object_set_new(rule, "in", to);
    for (size_t i = 0; asked.n == 0 && i < ARRAY_LEN(places); i++)
        json_array_append_new(to, json_string(places[i]));
    if (asked.n == 0)
        return 0;
    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        size_t k = 0;

        while (k < asked.n && !str_eq_c(asked.v[k], places[i]))
            k++;
        if (k == asked.n)
            continue;
        json_array_append_new(to, json_string(places[i]));
        known++;
    }
    if (known == asked.n)
        return 0;
    return err_set(e, ERR_INVALID, 0, "field 'in' may have header, query and basic, each once");
}

int secret_rule_make(const struct secret_spec *spec, const json_t *old, json_t **ret, struct err *e)
{
    AUTO(json_decref) json_t *rule = old ? json_deep_copy(old) : json_object();
    bool plain = spec->plain ? *spec->plain : json_is_true(json_object_get(old, "plain"));

    if (spec->hosts.n == 0 && !old) {
        (void)err_set(e, ERR_INVALID, 0, "field 'hosts': a secret needs at least one host");
        return err_hint(e, "name the hosts that may receive it: --host api.example.com");
    }
    if ((spec->hosts.n > 0 && make_hosts(spec->hosts, rule, e) < 0) ||
        (spec->methods && make_methods(spec->methods, rule, e) < 0) ||
        (spec->path.p && make_path(spec->path, rule, e) < 0) ||
        ((spec->places.n > 0 || !old) && make_places(spec->places, rule, e) < 0))
        return -1;
    json_object_set_new(rule, "plain", json_boolean(plain));
    *ret = TAKE(rule);
    return 0;
}
