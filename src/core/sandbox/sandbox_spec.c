/* sandbox_spec: a sandbox's spec as JSON. */
#include "core/sandbox/sandbox_internal.h"

#include "base/log.h"
#include "base/mem.h"
#include "proto/json.h"

/* --- writing --- */

static void put_pairs(struct jw *w, const char *key, const struct pair *p, size_t n)
{
    jw_key(w, key);
    jw_object(w);
    for (size_t i = 0; i < n; i++)
        jw_kstr(w, p[i].key.p, p[i].value);
    jw_object_end(w);
}

static void put_mounts(struct jw *w, const struct sandbox *s)
{
    jw_key(w, "mounts");
    jw_array(w);
    for (size_t i = 0; i < s->mount_count; i++) {
        jw_object(w);
        jw_kstr(w, "kind", s->mounts[i].kind);
        jw_kstr(w, "source", s->mounts[i].source);
        jw_kstr(w, "target", s->mounts[i].target);
        jw_kbool(w, "readonly", s->mounts[i].readonly);
        jw_kint(w, "size_bytes", s->mounts[i].size_bytes);
        jw_object_end(w);
    }
    jw_array_end(w);
}

static void sandbox_put_policy(struct jw *w, const struct sandbox *s)
{
    struct policy_info i = {.id = ""};

    if (s->policy)
        policy_info(s->policy, &i);
    jw_kc(w, "policy", s->policy_lost ? "lost" : i.id);
    jw_kc(w, "policy_agent", s->policy_agent ? s->policy_agent : "");
    jw_kbool(w, "by_agent", s->by_agent);
    jw_kbool(w, "ruled", s->ruled);
}

void sandbox_put_spec(struct jw *w, const struct sandbox *s)
{
    traits_put(w, &s->traits);
    jw_kc(w, "agent", s->agent);
    sandbox_put_policy(w, s);
    jw_key(w, "network");
    jw_raw(w, str_of(s->network));
    jw_kbool(w, "networked", sandbox_is_networked(s));
    jw_kbool(w, "trusts", s->wire == WIRE_TRUSTS);
    jw_kc(w, "dialect", s->dialect);
    jw_kc(w, "note", s->note);
    put_pairs(w, "labels", s->labels, s->label_count);
    put_mounts(w, s);
    sandbox_put_layers(w, s);
    jw_kbool(w, "on_host", s->on_host);
    jw_kc(w, "snapshot", s->snapshot ? s->snapshot : "");
    jw_kc(w, "forked_from", s->forked ? s->forked : "");
}

void sandbox_spec_text(const struct sandbox *s, struct buf *to)
{
    struct jw w = {.to = to};

    jw_object(&w);
    sandbox_put_spec(&w, s);
    put_pairs(&w, "env", s->env, s->env_count);
    sandbox_put_secrets(&w, s, true);
    sandbox_put_defaults(&w, s);
    jw_kc(&w, "asked_image", s->asked_image ? s->asked_image : "");
    if (s->crashes.total > 0)
        sandbox_put_crashes(&w, s);
    jw_object_end(&w);
}

/* --- reading --- */

static struct str json_text(const json_t *o, const char *key)
{
    const json_t *v = json_object_get(o, key);

    return json_is_string(v) ? str_make(json_string_value(v), json_string_length(v)) : STR("");
}

static int64_t json_number(const json_t *o, const char *key)
{
    return json_integer_value(json_object_get(o, key));
}

static bool json_flag(const json_t *o, const char *key)
{
    return json_is_true(json_object_get(o, key));
}

static struct pair *get_pairs(json_t *o, size_t *ret_n)
{
    size_t n = json_object_size(o), i = 0;
    AUTO(mem_free) struct pair *p = n > 0 ? xzalloc(n * sizeof *p) : NULL;
    const char *key;
    json_t *v;

    json_object_foreach(o, key, v) p[i++] =
        (struct pair){str_of(key), str_make(json_string_value(v), json_string_length(v))};
    *ret_n = i;
    return pairs_copy(p, i);
}

static void get_mounts(struct sandbox *s, const json_t *list)
{
    size_t n = json_array_size(list);
    AUTO(mem_free) struct sandbox_mount *m = n > 0 ? xzalloc(n * sizeof *m) : NULL;

    for (size_t i = 0; i < n; i++) {
        const json_t *o = json_array_get(list, i);

        m[i] = (struct sandbox_mount){.kind = json_text(o, "kind"),
                                      .source = json_text(o, "source"),
                                      .target = json_text(o, "target"),
                                      .readonly = json_flag(o, "readonly"),
                                      .size_bytes = json_number(o, "size_bytes")};
    }
    s->mounts = mounts_copy(m, n);
    s->mount_count = n;
}

/* An unreadable policy allows nothing.  A policy made with interception is kept: rules that need it
 * grant nothing without. */
static void get_network(struct sandbox *s, const json_t *v)
{
    AUTO(buf_done) struct buf text = {0};
    AUTO(sandbox_net_done) struct sandbox_net n = {0};
    struct jw w = {.to = &text};
    struct err e;

    if (v)
        jw_json(&w, v);
    if (sandbox_net_read(buf_str(&text), true, &n, &e) < 0) {
        log_error("the network policy of a row", LOG_C("id", s->id), LOG_E(&e));
        buf_clear(&n.policy);
        buf_add_c(&n.policy, NETWORK_NONE);
    }
    sandbox_net_take(s, &n);
}

static void get_policy(struct sandbox *s, const json_t *o)
{
    struct str id = json_text(o, "policy");
    struct err e;

    if (id.n > 0 && s->all->policies)
        s->policy = policy_hold(policy_find(s->all->policies, id, &e));
    s->policy_lost = id.n > 0 && !s->policy;
    if (s->policy_lost)
        log_error("the policy of a sandbox does not exist", LOG_C("id", s->id),
                  LOG_S("policy", id));
    text_set(&s->policy_agent, json_text(o, "policy_agent"));
    s->by_agent = json_flag(o, "by_agent");
    s->ruled = json_flag(o, "ruled");
}

int sandbox_get_spec(struct sandbox *s, struct str text, struct err *e)
{
    AUTO(json_decref) json_t *o = NULL;

    if (json_read(text, &o, e) < 0)
        return err_wrap(e, "the row of sandbox '%s'", s->id);
    traits_get(&s->traits, o);
    text_set(&s->agent, json_text(o, "agent"));
    get_policy(s, o);
    get_network(s, json_object_get(o, "network"));
    s->wire = !json_flag(o, "networked") ? WIRE_NONE
              : json_flag(o, "trusts")   ? WIRE_TRUSTS
                                         : WIRE_PLAIN;
    text_set(&s->dialect, json_text(o, "dialect"));
    text_set(&s->note, json_text(o, "note"));
    s->labels = get_pairs(json_object_get(o, "labels"), &s->label_count);
    s->env = get_pairs(json_object_get(o, "env"), &s->env_count);
    get_mounts(s, json_object_get(o, "mounts"));
    sandbox_get_secrets(s, json_object_get(o, "secrets"));
    sandbox_get_layers(s, json_object_get(o, "layers"));
    s->on_host = json_flag(o, "on_host");
    text_set(&s->snapshot, json_text(o, "snapshot"));
    text_set(&s->forked, json_text(o, "forked_from"));
    text_set(&s->asked_image, json_text(o, "asked_image"));
    sandbox_get_defaults(s, json_object_get(o, "defaults"));
    sandbox_get_crashes(s, json_object_get(o, "crashes"));
    return 0;
}
