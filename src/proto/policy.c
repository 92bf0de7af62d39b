/* policy: parses, prints and evaluates network policies. */
#include "proto/policy.h"

#include "base/mem.h"
#include "proto/json.h"
#include "proto/match.h"

#include <stdio.h>

#define PORTS_MAX 16

const char *const policy_modes[] = {"none", "allowlist", "open", "raw", NULL};
enum scheme { SCHEME_ANY, SCHEME_HTTP, SCHEME_HTTPS, SCHEME_TCP };
static const char *const schemes[] = {NULL, "http", "https", "tcp"};

struct port_range {
    uint16_t first, last;
};

struct rule {
    bool is_net, is_wild, is_any; /* otherwise a single name */
    struct ip_net net;
    char *host; /* the name; of a wildcard: the part after "*."; of a network: its text */
    enum scheme scheme;
    struct port_range ports[PORTS_MAX];
    size_t port_count; /* 0: the scheme's ports */
    struct match match;
    char *text; /* for people */
};

struct rules {
    struct rule *items;
    size_t count;
};

struct policy {
    enum policy_mode mode;
    bool ask;
    uint64_t bytes_max, connections_max;
    struct rules allow, deny;
    struct rules learned_allow, learned_deny;
    struct rules internal; /* from the operator: host and network */
};

/* ---- ownership ---- */

static void rule_done(struct rule *r)
{
    mem_free(r->host);
    mem_free(r->text);
    match_done(&r->match);
}

static void rules_done(struct rules *l)
{
    for (size_t i = 0; i < l->count; i++)
        rule_done(&l->items[i]);
    mem_free(l->items);
}

struct policy *policy_free(struct policy *p)
{
    if (!p)
        return NULL;
    rules_done(&p->allow);
    rules_done(&p->deny);
    rules_done(&p->learned_allow);
    rules_done(&p->learned_deny);
    rules_done(&p->internal);
    mem_free(p);
    return NULL;
}

static struct rule *rules_add(struct rules *l)
{
    l->items = xrealloc(l->items, (l->count + 1) * sizeof *l->items);
    l->items[l->count] = (struct rule){0};
    return &l->items[l->count++];
}

/* Made once: every verdict of the rule carries this text. */
static void rule_describe(struct rule *r)
{
    char ports[24] = "";

    if (r->port_count > 0 && r->ports[0].first == r->ports[0].last)
        (void)snprintf(ports, sizeof ports, ":%u", r->ports[0].first);
    else if (r->port_count > 0)
        (void)snprintf(ports, sizeof ports, ":%u-%u", r->ports[0].first, r->ports[0].last);
    r->text = xasprintf("%s%.64s%s%s%.32s%s%.64s", r->is_wild ? "*." : "", r->host, ports,
                        r->match.method_count > 0 ? " " : "",
                        r->match.method_count > 0 ? r->match.methods[0] : "",
                        r->match.path ? " " : "", r->match.path ? r->match.path : "");
}

/* ---- reading ---- */

static int parse_target(struct str s, struct rule *r, struct err *e)
{
    char name[HOST_NAME_MAX_LEN + 1];
    struct str bare = s;

    if (str_eq_c(s, "*")) {
        r->is_any = true;
        r->host = xstrdup("*");
        return 0;
    }
    if (s.n > 2 && s.p[0] == '[' && s.p[s.n - 1] == ']')
        bare = str_make(s.p + 1, s.n - 2);
    if (str_index(bare, '/') >= 0 || ip_parse(bare, &r->net.base)) {
        r->is_net = true;
        if (ip_net_parse(bare, &r->net, e) < 0)
            return -1;
        r->host = str_dup(bare);
        return 0;
    }
    if (match_name_parse(s, name, &r->is_wild, e) < 0)
        return -1;
    r->host = xstrdup(name);
    return 0;
}

static int parse_port(struct str s, struct port_range *ret, struct err *e)
{
    struct str last_text, first_text = str_cut(s, '-', &last_text);
    uint64_t first, last;

    if (str_parse_u64(first_text, &first) < 0)
        first = 0;
    last = first;
    if (first_text.n != s.n && str_parse_u64(last_text, &last) < 0)
        last = 0;
    if (first < 1 || first > last || last > 65535)
        return err_set(e, ERR_INVALID, 0, "'" STR_FMT "' is neither a port nor a range of ports",
                       (int)size_min(s.n, 32), s.p);
    *ret = (struct port_range){(uint16_t)first, (uint16_t)last};
    return 0;
}

/* "host", "host:port", "*.host:1-9", "10.0.0.0/8:443", "2001:db8::/32", "[2001:db8::1]:443". */
static int parse_text_rule(struct str s, struct rule *r, struct err *e)
{
    const char *colon = memrchr(s.p, ':', s.n);
    size_t at = colon ? (size_t)(colon - s.p) : s.n;
    bool bracketed = colon && at > 0 && s.p[at - 1] == ']';
    bool one = colon && memchr(s.p, ':', at) == NULL;

    if (bracketed || one) {
        if (parse_port(str_skip(s, at + 1), &r->ports[0], e) < 0)
            return -1;
        r->port_count = 1;
        s.n = at;
    }
    return parse_target(s, r, e);
}

static int parse_ports(const json_t *v, struct rule *r, struct err *e)
{
    size_t n = json_array_size(v);

    if (!json_is_array(v) || n == 0 || n > PORTS_MAX)
        return err_set(e, ERR_INVALID, 0, "'ports' is not a list of 1 to %d ports", PORTS_MAX);
    for (size_t i = 0; i < n; i++) {
        const json_t *p = json_array_get(v, i);
        char text[24];
        struct str s = str_make(json_string_value(p), json_string_length(p));

        if (json_is_integer(p)) {
            (void)snprintf(text, sizeof text, "%lld", (long long)json_integer_value(p));
            s = str_of(text);
        } else if (!json_is_string(p)) {
            return err_set(e, ERR_INVALID, 0,
                           "'ports' must contain numbers, or strings like '8000-8999'");
        }
        if (parse_port(s, &r->ports[i], e) < 0)
            return -1;
        r->port_count = i + 1;
    }
    return 0;
}

static int parse_scheme(const json_t *v, struct rule *r, struct err *e)
{
    for (size_t i = 1; i < ARRAY_LEN(schemes); i++)
        if (json_is_string(v) && strcmp(json_string_value(v), schemes[i]) == 0) {
            r->scheme = (enum scheme)i;
            return 0;
        }
    return err_set(e, ERR_INVALID, 0, "'scheme' is not 'http', 'https' or 'tcp'");
}

static int parse_object_rule(const json_t *o, struct rule *r, struct err *e)
{
    const char *key;
    json_t *v;

    json_object_foreach((json_t *)o, key, v)
    {
        int done = -1;

        if ((strcmp(key, "host") == 0 || strcmp(key, "cidr") == 0) && !r->host) {
            if (!json_is_string(v))
                return err_set(e, ERR_INVALID, 0, "'%s' is not a string", key);
            done = parse_target(str_make(json_string_value(v), json_string_length(v)), r, e);
            if (done == 0 && r->is_net != (key[0] == 'c'))
                return err_set(e, ERR_INVALID, 0, "'%s' does not fit '%s'", r->host, key);
        } else if (strcmp(key, "ports") == 0) {
            done = parse_ports(v, r, e);
        } else if (strcmp(key, "scheme") == 0) {
            done = parse_scheme(v, r, e);
        } else if (strcmp(key, "methods") == 0) {
            done = match_methods(&r->match, v, e);
        } else if (strcmp(key, "path") == 0) {
            done = match_path(&r->match, v, e);
        } else {
            (void)err_set(e, ERR_INVALID, 0, "'%.32s' is unknown or appears twice", key);
            return err_hint(e, "a rule has host or cidr, ports, scheme, methods, path");
        }
        if (done < 0)
            return -1;
    }
    return r->host ? 0 : err_set(e, ERR_INVALID, 0, "a rule needs 'host' or 'cidr'");
}

static int check_rule(const struct rule *r, bool allow, bool intercept, struct err *e)
{
    if (r->scheme == SCHEME_TCP && r->port_count == 0)
        return err_set(e, ERR_INVALID, 0, "scheme 'tcp' needs 'ports'");
    if (r->is_any && allow) {
        (void)err_set(e, ERR_INVALID, 0, "'*' is allowed only in 'deny'");
        return err_hint(e, "mode 'open' allows every public host");
    }
    if (match_is_narrow(&r->match) && !intercept) {
        (void)err_set(e, ERR_UNSUPPORTED, 0,
                      "rules with methods and paths need interception, which is off");
        return err_hint(e, "leave 'methods' and 'path' out, or turn the setting 'intercept' on");
    }
    if (match_is_narrow(&r->match) && (r->is_net || r->scheme == SCHEME_TCP))
        return err_set(
            e, ERR_INVALID, 0,
            "'methods' and 'path' need a host and HTTP; they do not work with a network or 'tcp'");
    return 0;
}

bool policy_is_rule(struct str text, bool allow)
{
    struct rule r = {0};
    struct err e = {0};
    bool is =
        text.n > 0 && parse_text_rule(text, &r, &e) == 0 && check_rule(&r, allow, false, &e) == 0;

    rule_done(&r);
    return is;
}

/* A network keeps its '/'. */
struct str policy_host_rule(struct str host, struct arena *a)
{
    const char *scheme = host.n > 3 ? memmem(host.p, host.n, "://", 3) : NULL;
    struct str rest;

    if (scheme)
        host = str_cut(str_skip(host, (size_t)(scheme - host.p) + 3), '/', &rest);
    if (host.n > 1 && host.p[0] == '.')
        return str_of(arena_printf(a, "*" STR_FMT, STR_ARG(host)));
    return host;
}

static int parse_rules(const json_t *v, struct rules *to, bool allow, bool intercept, struct err *e)
{
    const char *list = allow ? "allow" : "deny";
    size_t n = json_array_size(v);

    if (v && (!json_is_array(v) || n > POLICY_RULES_MAX))
        return err_set(e, ERR_INVALID, 0, "'%s' is not a list of at most %d rules", list,
                       POLICY_RULES_MAX);
    for (size_t i = 0; i < n; i++) {
        const json_t *item = json_array_get(v, i);
        struct rule *r = rules_add(to);
        int done =
            json_is_string(item)
                ? parse_text_rule(str_make(json_string_value(item), json_string_length(item)), r, e)
                : parse_object_rule(item, r, e);

        if (done < 0 || check_rule(r, allow, intercept, e) < 0)
            return err_wrap(e, "rule %zu of '%s'", i + 1, list);
        rule_describe(r);
    }
    return 0;
}

static int parse_mode(const json_t *v, struct policy *p, struct err *e)
{
    for (size_t i = 0; policy_modes[i]; i++)
        if (json_is_string(v) && strcmp(json_string_value(v), policy_modes[i]) == 0) {
            p->mode = (enum policy_mode)i;
            return 0;
        }
    return err_set(e, ERR_INVALID, 0, "'mode' is not 'none', 'allowlist', 'open' or 'raw'");
}

static int parse_number(const json_t *v, const char *key, uint64_t *ret, struct err *e)
{
    if (!json_is_integer(v) || json_integer_value(v) < 0)
        return err_set(e, ERR_INVALID, 0, "'%s' is not a number of at least 0", key);
    *ret = (uint64_t)json_integer_value(v);
    return 0;
}

static int parse_unknown(const json_t *v, struct policy *p, struct err *e)
{
    const char *s = json_string_value(v);

    if (!s || (strcmp(s, "deny") != 0 && strcmp(s, "ask") != 0))
        return err_set(e, ERR_INVALID, 0, "'unknown' is not 'deny' or 'ask'");
    p->ask = s[0] == 'a';
    return 0;
}

static int parse_object(const json_t *o, bool intercept, struct policy *p, struct err *e)
{
    const char *key;
    json_t *v;
    bool has_mode = false;

    json_object_foreach((json_t *)o, key, v)
    {
        int r;

        if (strcmp(key, "mode") == 0) {
            r = parse_mode(v, p, e);
            has_mode = true;
        } else if (strcmp(key, "allow") == 0) {
            r = parse_rules(v, &p->allow, true, intercept, e);
        } else if (strcmp(key, "deny") == 0) {
            r = parse_rules(v, &p->deny, false, intercept, e);
        } else if (strcmp(key, "unknown") == 0) {
            r = parse_unknown(v, p, e);
        } else if (strcmp(key, "bytes") == 0) {
            r = parse_number(v, key, &p->bytes_max, e);
        } else if (strcmp(key, "connections") == 0) {
            r = parse_number(v, key, &p->connections_max, e);
        } else {
            (void)err_set(e, ERR_INVALID, 0, "'%.32s' is unknown", key);
            return err_hint(e, "a policy has mode, allow, deny, unknown, connections, bytes");
        }
        if (r < 0)
            return -1;
    }
    if (!has_mode) /* rules without a mode are an allowlist */
        p->mode = POLICY_ALLOWLIST;
    if ((p->mode == POLICY_NONE || p->mode == POLICY_RAW) &&
        (p->allow.count || p->deny.count || p->ask))
        return err_set(e, ERR_INVALID, 0, "mode '%s' has no rules", policy_modes[p->mode]);
    if (p->ask && p->mode != POLICY_ALLOWLIST)
        return err_set(e, ERR_INVALID, 0, "'unknown' works only with mode 'allowlist'");
    return 0;
}

int policy_parse(struct str text, bool intercept, struct policy **ret, struct err *e)
{
    AUTO(policy_free) struct policy *p = xzalloc(sizeof *p);
    AUTO(json_decref) json_t *v = NULL;
    int r;

    if (text.n > POLICY_TEXT_MAX)
        return err_set(e, ERR_TOO_LARGE, 0, "a network policy of more than %d bytes",
                       POLICY_TEXT_MAX);
    for (size_t i = 0; policy_modes[i]; i++)
        if (str_eq_c(text, policy_modes[i])) {
            p->mode = (enum policy_mode)i;
            *ret = TAKE(p);
            return 0;
        }
    if (json_read(text, &v, e) < 0)
        return err_wrap(e, "read a network policy");
    if (json_is_object(v))
        r = parse_object(v, intercept, p, e);
    else
        r = parse_mode(v, p, e);
    if (r < 0)
        return -1;
    *ret = TAKE(p);
    return 0;
}

/* ---- writing ---- */

static void print_port(struct jw *w, struct port_range range)
{
    char text[24];

    if (range.first == range.last) {
        jw_int(w, range.first);
        return;
    }
    (void)snprintf(text, sizeof text, "%u-%u", range.first, range.last);
    jw_c(w, text);
}

static void print_rule(struct jw *w, const struct rule *r)
{
    char name[HOST_NAME_MAX_LEN + 3];

    (void)snprintf(name, sizeof name, "%s%s", r->is_wild ? "*." : "", r->host);
    jw_object(w);
    jw_kc(w, r->is_net ? "cidr" : "host", name);
    if (r->port_count > 0) {
        jw_key(w, "ports");
        jw_array(w);
        for (size_t i = 0; i < r->port_count; i++)
            print_port(w, r->ports[i]);
        jw_array_end(w);
    }
    if (r->scheme != SCHEME_ANY)
        jw_kc(w, "scheme", schemes[r->scheme]);
    match_print(&r->match, w);
    jw_object_end(w);
}

static void print_rules(struct jw *w, const char *key, const struct rules *l)
{
    jw_key(w, key);
    jw_array(w);
    for (size_t i = 0; i < l->count; i++)
        print_rule(w, &l->items[i]);
    jw_array_end(w);
}

void policy_print(const struct policy *p, struct buf *to)
{
    struct jw w = {.to = to};

    jw_object(&w);
    jw_kc(&w, "mode", policy_modes[p->mode]);
    if (p->mode == POLICY_ALLOWLIST || p->mode == POLICY_OPEN) {
        print_rules(&w, "allow", &p->allow);
        print_rules(&w, "deny", &p->deny);
    }
    if (p->mode == POLICY_ALLOWLIST)
        jw_kc(&w, "unknown", p->ask ? "ask" : "deny");
    if (p->connections_max > 0)
        jw_kint(&w, "connections", (int64_t)p->connections_max);
    if (p->bytes_max > 0)
        jw_kint(&w, "bytes", (int64_t)p->bytes_max);
    jw_object_end(&w);
}

/* ---- evaluation ---- */

static bool host_matches(const struct rule *r, const struct host *h)
{
    if (r->is_any)
        return true;
    if (r->is_net || h->is_ip)
        return r->is_net && h->is_ip && ip_net_has(&r->net, &h->ip);
    return match_name(r->host, r->is_wild, h);
}

/* all: a rule without a port covers all ports (deny); otherwise only those of the web. */
static bool port_matches(const struct rule *r, unsigned port, bool all)
{
    for (size_t i = 0; i < r->port_count; i++)
        if (port >= r->ports[i].first && port <= r->ports[i].last)
            return true;
    if (r->port_count > 0)
        return false;
    if (r->scheme == SCHEME_HTTP)
        return port == 80;
    if (r->scheme == SCHEME_HTTPS)
        return port == 443;
    return all || port == 80 || port == 443;
}

static bool wants_tls(const struct rule *r, unsigned port)
{
    return r->scheme == SCHEME_HTTPS || (r->scheme == SCHEME_ANY && port == 443);
}

/* Before the first request of a connection is known, a rule about some requests may grant but not
 * forbid. */
static bool request_matches(const struct rule *r, const struct policy_query *q, bool deny)
{
    if (q->method.n == 0)
        return !deny || !match_is_narrow(&r->match);
    return match_fits(&r->match, q->method, q->path, deny);
}

static const struct rule *find(const struct rules *l, const struct policy_query *q, bool deny)
{
    for (size_t i = 0; i < l->count; i++) {
        const struct rule *r = &l->items[i];

        if (host_matches(r, q->host) &&
            port_matches(r, q->port, deny && !match_is_narrow(&r->match)) &&
            request_matches(r, q, deny))
            return r;
    }
    return NULL;
}

/* Finds a rule about some requests to this host: then every request must be inspected. */
static void find_narrow(const struct rules *l, const struct policy_query *q,
                        struct policy_verdict *ret)
{
    for (size_t i = 0; i < l->count; i++) {
        const struct rule *r = &l->items[i];

        if (!match_is_narrow(&r->match) || !host_matches(r, q->host) ||
            !port_matches(r, q->port, false))
            continue;
        ret->intercept = true;
        ret->tls |= wants_tls(r, q->port) && !q->host->is_ip;
    }
}

static void say_rule(struct policy_verdict *v, const char *verb, const struct rule *r)
{
    (void)snprintf(v->rule, sizeof v->rule, "%s %s", verb, r->text);
}

static void answer(struct policy_verdict *v, enum policy_answer a, const char *rule)
{
    v->answer = a;
    (void)snprintf(v->rule, sizeof v->rule, "%s", rule);
}

static bool is_denied(const struct rules *deny, const struct policy_query *q,
                      struct policy_verdict *ret)
{
    const struct rule *r = find(deny, q, true);

    if (!r)
        return false;
    ret->answer = POLICY_DENY;
    say_rule(ret, "deny", r);
    return true;
}

static void judge_unknown(const struct policy *p, const struct policy_query *q,
                          struct policy_verdict *ret)
{
    const char *special = q->host->is_ip ? ip_special(&q->host->ip) : NULL;

    if (p->mode == POLICY_OPEN && special) {
        answer(ret, POLICY_DENY, "");
        (void)snprintf(ret->rule, sizeof ret->rule, "%s addresses need an allowed network",
                       special);
    } else if (p->mode == POLICY_OPEN) {
        answer(ret, POLICY_ALLOW, "mode open");
        ret->tls |= q->port == 443 && !q->host->is_ip;
    } else if (p->ask && !q->host->is_ip) {
        answer(ret, POLICY_ASK, "unknown: ask");
        ret->tls |= q->port == 443;
    } else if (q->method.n > 0) {
        answer(ret, POLICY_DENY, "no rule allows this method and path");
    } else {
        answer(ret, POLICY_DENY, q->host->is_ip ? POLICY_NO_NETWORK : POLICY_NO_RULE);
    }
}

void policy_judge(const struct policy *p, const struct policy_query *q, struct policy_verdict *ret)
{
    const struct rule *r;

    *ret = (struct policy_verdict){.answer = POLICY_DENY};
    if (p->mode != POLICY_ALLOWLIST && p->mode != POLICY_OPEN) {
        (void)snprintf(ret->rule, sizeof ret->rule, "mode %s", policy_modes[p->mode]);
        return;
    }
    if (is_denied(&p->deny, q, ret))
        return;
    find_narrow(&p->allow, q, ret);
    find_narrow(&p->deny, q, ret);
    ret->http = q->port == 80;
    r = find(&p->allow, q, false);
    if (!r && p->ask) { /* people's answers count only where people would be asked */
        if (is_denied(&p->learned_deny, q, ret))
            return;
        r = find(&p->learned_allow, q, false);
    }
    if (!r) {
        judge_unknown(p, q, ret);
        return;
    }
    ret->answer = POLICY_ALLOW;
    ret->tls |= wants_tls(r, q->port) && !q->host->is_ip;
    ret->http = r->scheme == SCHEME_HTTP || (r->scheme == SCHEME_ANY && q->port == 80);
    say_rule(ret, "allow", r);
}

static bool is_internal(const struct policy *p, const struct host *h, const struct ip *a)
{
    for (size_t i = 0; i < p->internal.count; i++) {
        const struct rule *r = &p->internal.items[i];

        if (!h->is_ip && match_name(r->host, r->is_wild, h) && ip_net_has(&r->net, a))
            return true;
    }
    return false;
}

static bool parse_internal(struct str host, struct str network, struct host *ret,
                           struct ip_net *ret_net)
{
    struct err e;

    return ip_net_parse(network, ret_net, &e) == 0 &&
           host_parse(str_starts(host, STR("*.")) ? str_skip(host, 2) : host, ret, &e) == 0 &&
           !ret->is_ip;
}

bool policy_is_internal(struct str host, struct str network)
{
    struct ip_net net;
    struct host h;

    return parse_internal(host, network, &h, &net);
}

bool policy_add_internal(struct policy *p, struct str host, struct str network)
{
    bool wild = str_starts(host, STR("*."));
    struct ip_net net;
    struct host h;
    struct rule *r;

    if (p->internal.count >= POLICY_RULES_MAX || !parse_internal(host, network, &h, &net))
        return false;
    r = rules_add(&p->internal);
    r->host = xstrdup(h.name);
    r->is_wild = wild;
    r->net = net;
    return true;
}

void policy_judge_address(const struct policy *p, const struct host *h, const struct ip *a,
                          unsigned port, struct policy_verdict *ret)
{
    /* an address is matched by its bytes: no text needed */
    const struct host to = {.is_ip = true, .ip = *a};
    const struct policy_query q = {.host = &to, .port = port};
    char text[IP_TEXT];

    *ret = (struct policy_verdict){.answer = POLICY_DENY};
    if (is_denied(&p->deny, &q, ret))
        return;
    if (!find(&p->allow, &q, false) && !is_internal(p, h, a))
        ret->special = ip_special(a);
    if (ret->special)
        (void)snprintf(ret->rule, sizeof ret->rule, "it resolves to %s, a %s address",
                       ip_text(a, text), ret->special);
    else
        ret->answer = POLICY_ALLOW;
}

uint64_t policy_bytes_max(const struct policy *p)
{
    return p->bytes_max;
}

uint64_t policy_connections_max(const struct policy *p)
{
    return p->connections_max;
}

enum policy_mode policy_mode(const struct policy *p)
{
    return p->mode;
}

void policy_learn(struct policy *p, const struct host *h, unsigned port, bool allow)
{
    struct rules *l = allow ? &p->learned_allow : &p->learned_deny;
    struct rule *r;

    if (l->count >= POLICY_RULES_MAX || port < 1 || port > 65535)
        return;
    r = rules_add(l);
    r->host = xstrdup(h->name);
    r->is_net = h->is_ip;
    if (h->is_ip)
        r->net = (struct ip_net){h->ip, 128};
    r->ports[0] = (struct port_range){(uint16_t)port, (uint16_t)port};
    r->port_count = 1;
    rule_describe(r);
}
