/* load: merges settings of all sources into struct config. */
#include "conf/conf.h"
#include "conf/setting.h"

#include "base/mem.h"
#include "base/suggest.h"
#include "ops/value.h"

#include <inttypes.h>
#include <stdarg.h>

const char holt_version[] = HOLT_VERSION;

/* --- lists --- */

void conf_list_add(struct conf_list *l, const char *text)
{
    l->v = xrealloc(l->v, (l->n + 1) * sizeof *l->v);
    l->v[l->n++] = xstrdup(text);
}

static void conf_list_done(struct conf_list *l)
{
    for (size_t i = 0; i < l->n; i++)
        mem_free(l->v[i]);
    mem_free(l->v);
    *l = (struct conf_list){0};
}

void load_warn(struct load *l, const char *fmt, ...)
{
    AUTO(buf_done) struct buf b = {0};
    va_list ap;

    va_start(ap, fmt);
    buf_vprintf(&b, fmt, ap);
    va_end(ap);
    conf_list_add(&l->c->warnings, buf_cstr(&b));
}

/* --- one value into its member --- */

union decoded { /* the value types of ops/value.h */
    struct str text;
    int64_t number;
    bool flag;
    int choice;
    struct op_list list;
};

static void put_text(char **to, const char *text)
{
    mem_free(*to);
    *to = xstrdup(text);
}

/* Keeps addresses added by a seed's own variable (GRPC_PORT) when `listen` is set by another
 * source. */
static size_t keep_added(struct config *c)
{
    struct conf_list old = c->listen;
    size_t n = 0;

    c->listen = (struct conf_list){0};
    for (size_t i = 0; i < old.n; i++) {
        if (!c->listen_added[i])
            continue;
        conf_list_add(&c->listen, old.v[i]);
        c->listen_optional[n] = c->listen_optional[i];
        c->listen_added[n++] = true;
    }
    conf_list_done(&old);
    return n;
}

/* The values of `listen` itself come first. */
static void first_to_end(struct config *c)
{
    size_t last = c->listen.n - 1;
    char *address = c->listen.v[0];
    bool optional = c->listen_optional[0];

    memmove(c->listen.v, c->listen.v + 1, last * sizeof *c->listen.v);
    memmove(c->listen_optional, c->listen_optional + 1, last * sizeof optional);
    memmove(c->listen_added, c->listen_added + 1, last * sizeof optional);
    c->listen.v[last] = address;
    c->listen_optional[last] = optional;
    c->listen_added[last] = true;
}

static void put_list(struct config *c, const struct given *g, const struct op_list *from, bool add)
{
    struct conf_list *to = setting_member(c, g->s);
    bool addresses = to == &c->listen;
    size_t kept = 0;

    if (!add && addresses)
        kept = keep_added(c);
    else if (!add)
        conf_list_done(to);
    for (size_t i = 0; i < from->n; i++) {
        conf_list_add(to, from->v[i].p);
        if (!addresses)
            continue;
        c->listen_optional = xrealloc(c->listen_optional, to->n * sizeof *c->listen_optional);
        c->listen_optional[to->n - 1] = g->optional;
        c->listen_added = xrealloc(c->listen_added, to->n * sizeof *c->listen_added);
        c->listen_added[to->n - 1] = g->adds;
    }
    for (; kept > 0; kept--)
        first_to_end(c);
}

static void put(struct config *c, const struct given *g, const union decoded *d, bool add)
{
    const struct setting *s = g->s;

    if (s->f.type == OP_LIST)
        put_list(c, g, &d->list, add);
    else if (s->f.type == OP_STR)
        put_text(setting_member(c, s), d->text.p);
    else if (s->as_text)
        put_text(setting_member(c, s), s->f.choices[d->choice]);
    else if (s->f.type == OP_CHOICE)
        memcpy(setting_member(c, s), &d->choice, sizeof d->choice); /* an enum */
    else if (s->f.type == OP_BOOL)
        *(bool *)setting_member(c, s) = d->flag;
    else
        *(int64_t *)setting_member(c, s) = d->number;
}

static int check(const struct setting *s, const union decoded *d, struct err *e)
{
    if (!s->check)
        return 0;
    if (s->f.type == OP_STR)
        return s->check(d->text.p, e);
    for (size_t i = 0; i < d->list.n; i++)
        if (s->check(d->list.v[i].p, e) < 0)
            return -1;
    return 0;
}

/* A list that grows over several sources or flags keeps its limit. */
static int check_room(struct config *c, const struct given *g, const struct op_list *more,
                      struct err *e)
{
    size_t n = ((struct conf_list *)setting_member(c, g->s))->n + more->n;

    if (g->s->f.max == 0 || (int64_t)n <= g->s->f.max)
        return 0;
    return err_set(e, ERR_INVALID, 0,
                   "%s: setting '%s' has %zu entries; it must have at most %" PRId64, g->where,
                   g->s->f.name, n, g->s->f.max);
}

static void note_source(char **to, const struct given *g)
{
    char *text = g->adds ? xasprintf("%s and %s", *to, g->where) : xstrdup(g->where);

    mem_free(*to);
    *to = text;
}

int load_apply(struct load *l, const struct given *g, struct err *e)
{
    size_t row = setting_row(g->s);
    bool same = g->rank == l->ranks[row] && g->s->f.type == OP_LIST;
    union decoded d = {0};
    struct value v = {.kind = "setting", .f = &g->s->f, .a = &l->a, .slot = &d, .e = e};

    if (g->rank < l->ranks[row] && !g->adds)
        return 0;
    if ((g->whole ? value_entry(&v, g->text) : value_text(&v, g->text)) < 0 || value_end(&v) < 0)
        return err_wrap(e, "%s", g->where);
    if (check(g->s, &d, e) < 0)
        return err_wrap(e, "%s: setting '%s'", g->where, g->s->f.name);
    if (g->s->f.type == OP_LIST && (same || g->adds) && check_room(l->c, g, &d.list, e) < 0)
        return -1;
    put(l->c, g, &d, same || g->adds);
    if (!g->adds)
        l->ranks[row] = g->rank;
    note_source(&l->c->sources[row], g);
    return 0;
}

int load_alias(struct load *l, const struct setting *s, const struct setting_alias *a,
               const struct given *g, struct err *e)
{
    AUTO(buf_done) struct buf text = {0};
    struct given own = *g;

    own.s = s;
    own.adds = a->adds;
    own.optional = a->optional;
    if (a->convert) {
        if (a->convert(g->text, &text, e) < 0)
            return err_wrap(e, "%s", g->where);
        own.text = buf_str(&text);
    }
    if (g->rest.n > 0) {
        own.whole = true;
        own.text =
            str_of(arena_printf(&l->a, STR_FMT "=" STR_FMT, STR_ARG(g->rest), STR_ARG(own.text)));
    }
    return load_apply(l, &own, e);
}

int load_unknown(struct load *l, struct str name, enum spelling as, const char *where,
                 struct err *e)
{
    static const char *const what[] = {"setting", "setting", "flag"};
    static const size_t prefix[] = {0, 5, 2}; /* compare without "HOLT_" and "--" */
    struct suggest n = {.word = str_skip(name, size_min(name.n, prefix[as]))};
    char shown[VALUE_SHOWN * 6 + 8];

    for (size_t i = 0; i < setting_count(); i++) {
        AUTO(buf_done) struct buf known = {0};

        if (as == AS_VARIABLE)
            setting_variable(setting_at(i), &known);
        else if (as == AS_FLAG)
            setting_flag(setting_at(i), &known);
        else
            buf_add_c(&known, setting_at(i)->f.name);
        suggest_try(&n, arena_cstr(&l->a, buf_str(&known)) + prefix[as]);
    }
    (void)err_set(e, ERR_INVALID, 0, "%s: there is no %s '%s'", where, what[as],
                  value_shown(name, shown));
    if (n.best)
        return err_hint(e, "did you mean '%s'?", n.best - prefix[as]);
    return err_hint(e, "holtd --help lists them all");
}

/* --- loading --- */

static int load_presets(struct load *l, struct err *e)
{
    for (size_t i = 0; i < setting_count(); i++) {
        AUTO(buf_done) struct buf text = {0};
        struct given g = {.s = setting_at(i), .rank = RANK_DEFAULT, .where = "default"};

        setting_preset(g.s, &text);
        g.text = buf_str(&text);
        if (load_apply(l, &g, e) < 0)
            return -1;
    }
    return 0;
}

/* `hosts` held the names that are host_names now. */
static void take_old_names(struct load *l)
{
    struct conf_list *hosts = &l->c->hosts;
    size_t n = 0;

    for (size_t i = 0; i < hosts->n; i++) {
        if (!conf_host_is_name(hosts->v[i])) {
            hosts->v[n++] = hosts->v[i];
            continue;
        }
        load_warn(l,
                  "%s: '%s' in 'hosts' is taken as a member of 'host_names'; 'hosts' are the "
                  "hosts of virtual machines",
                  l->c->sources[setting_row(setting_find(STR("hosts")))], hosts->v[i]);
        conf_list_add(&l->c->host_names, hosts->v[i]);
        mem_free(hosts->v[i]);
    }
    hosts->n = n;
}

static int check_hosts(const struct config *c, struct err *e)
{
    for (size_t i = 0; i < c->hosts.n; i++)
        for (size_t k = 0; k < i; k++) {
            size_t n = strcspn(c->hosts.v[i], "=");

            if (strncmp(c->hosts.v[i], c->hosts.v[k], n + 1) == 0)
                return err_set(e, ERR_INVALID, 0, "setting 'hosts' has two hosts named '%.*s'",
                               (int)n, c->hosts.v[i]);
        }
    return 0;
}

/* Rules across several rows. */
static int check_together(const struct config *c, struct err *e)
{
    if (conf_check_runtime(c, e) < 0 || check_hosts(c, e) < 0)
        return -1;
    if ((c->tls_cert[0] == '\0') != (c->tls_key[0] == '\0'))
        return err_set(e, ERR_INVALID, 0, "set both 'tls_cert' and 'tls_key', or neither");
    for (size_t i = 0; i < c->listen.n; i++) {
        if (c->auth == CONF_AUTH_OFF && !conf_is_loopback(c->listen.v[i])) {
            (void)err_set(
                e, ERR_INVALID, 0,
                "'auth' is off, but 'listen' has '%.100s', which other machines can reach",
                c->listen.v[i]);
            return err_hint(e, "listen on 127.0.0.1, or leave 'auth' at 'token'");
        }
        if (!c->tls_cert[0] && strncmp(c->listen.v[i], "tls://", 6) == 0)
            return err_set(e, ERR_INVALID, 0, "'listen' has '%.100s', but 'tls_cert' is not set",
                           c->listen.v[i]);
    }
    return 0;
}

static void load_done_p(struct load *l)
{
    (void)config_free(l->c);
    map_done(&l->file_env);
    arena_done(&l->a);
    mem_free(l->ranks);
}

static int load_all(struct load *l, const struct conf_sources *from, struct err *e)
{
    l->c = xzalloc(sizeof *l->c);
    for (size_t i = 0; setting_groups[i]; i++)
        l->c->groups[i] = xzalloc(setting_groups[i]->size);
    l->c->sources = xzalloc(setting_count() * sizeof *l->c->sources);
    l->ranks = xzalloc(setting_count() * sizeof *l->ranks);
    if (flags_special(l, from, e) < 0)
        return -1;
    if (l->ask && strcmp(l->ask, "print-settings") != 0)
        return 0; /* actions without settings work even if one is wrong */
    if (load_presets(l, e) < 0 || env_special(l, from->environ, e) < 0)
        return -1;
    if (l->config_file && file_load(l, l->config_file, false, e) < 0)
        return -1;
    for (size_t i = 0; setting_groups[i]; i++)
        if (l->seed_files[i] && file_load(l, l->seed_files[i], true, e) < 0)
            return -1;
    if (env_load(l, from->environ, e) < 0 || flags_load(l, from, e) < 0)
        return -1;
    take_old_names(l);
    return check_together(l->c, e);
}

static char *answer(const struct load *l)
{
    AUTO(buf_done) struct buf b = {0};

    if (strcmp(l->ask, "help") == 0)
        conf_print_help(&b);
    else if (strcmp(l->ask, "version") == 0)
        buf_printf(&b, "holtd %s\n", holt_version);
    else if (strcmp(l->ask, "print-settings") == 0)
        conf_print_yaml(l->c, &b);
    else if (strcmp(l->ask, "print-openapi") == 0)
        op_openapi(&b, holt_version);
    else
        conf_print_markdown(&b);
    return buf_steal(&b);
}

int conf_load(const struct conf_sources *from, struct config **ret, char **ret_text, struct err *e)
{
    __attribute__((cleanup(load_done_p))) struct load l = {0};

    if (load_all(&l, from, e) < 0)
        return -1;
    if (l.ask) {
        *ret_text = answer(&l);
        return 1;
    }
    *ret = TAKE(l.c);
    return 0;
}

static void swap_member(const struct setting *s, struct config *a, struct config *b)
{
    static const size_t sizes[] = {
        [OP_STR] = sizeof(char *),
        [OP_INT] = sizeof(int64_t),
        [OP_BOOL] = sizeof(bool),
        [OP_DURATION] = sizeof(int64_t),
        [OP_SIZE] = sizeof(int64_t),
        [OP_CHOICE] = sizeof(int),
        [OP_LIST] = sizeof(struct conf_list),
    };
    size_t n = s->as_text ? sizeof(char *) : sizes[s->f.type];
    char keep[sizeof(struct conf_list)];

    memcpy(keep, setting_member(a, s), n);
    memcpy(setting_member(a, s), setting_member(b, s), n);
    memcpy(setting_member(b, s), keep, n);
}

int conf_reload(struct config *c, const struct conf_sources *from, struct err *e)
{
    __attribute__((cleanup(load_done_p))) struct load l = {0};

    if (load_all(&l, from, e) < 0)
        return err_wrap(e, "reload the settings");
    for (size_t i = 0; i < setting_count(); i++) {
        const struct setting *s = setting_at(i);
        AUTO(buf_done) struct buf old = {0}, new = {0};
        char *source = c->sources[i];

        setting_text(s, c, &old);
        setting_text(s, l.c, &new);
        if (!s->reload && !str_eq(buf_str(&old), buf_str(&new)))
            load_warn(&l, "%s: setting '%s' has changed; it takes effect at the next start",
                      l.c->sources[i], s->f.name);
        if (!s->reload)
            continue;
        swap_member(s, c, l.c);
        c->sources[i] = l.c->sources[i];
        l.c->sources[i] = source;
    }
    conf_list_done(&c->warnings);
    c->warnings = l.c->warnings;
    l.c->warnings = (struct conf_list){0};
    return 0;
}

struct config *config_free(struct config *c)
{
    if (!c)
        return NULL;
    for (size_t i = 0; i < setting_count(); i++) {
        const struct setting *s = setting_at(i);

        if (s->f.type == OP_LIST)
            conf_list_done(setting_member(c, s));
        else if (s->f.type == OP_STR || s->as_text)
            mem_free(*(char **)setting_member(c, s));
        if (c->sources)
            mem_free(c->sources[i]);
    }
    for (size_t i = 0; setting_groups[i]; i++)
        mem_free(c->groups[i]);
    mem_free(c->sources);
    mem_free(c->listen_optional);
    conf_list_done(&c->files);
    mem_free(c->listen_added);
    conf_list_done(&c->warnings);
    mem_free(c);
    return NULL;
}
