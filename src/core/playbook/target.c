/* target: machines that playbooks are applied to: add, find, remove. */
#include "core/playbook/target.h"

#include "base/mem.h"
#include "core/sandbox/sandbox.h"
#include "proto/json.h"
#include "proto/sshcert.h"

#define TARGETS_MAX 1024
#define NAME_MAX_LEN 63
#define ADDRESS_MAX 253

struct targets {
    struct named_list list;
    struct sandboxes *sandboxes;
};

struct target {
    struct named named; /* first */
    char *address, *login, *host_key, *principals;
    char sandbox[ID_SIZE];
    int64_t port, people;
    bool become;
};

struct target *target_of(struct named *n)
{
    return n ? CONTAINER_OF(n, struct target, named) : NULL;
}

struct targets *targets_free(struct targets *l)
{
    if (!l)
        return NULL;
    named_list_done(&l->list);
    mem_free(l);
    return NULL;
}

/* --- rows and events --- */

static const struct column target_column_list[] = {
    NAMED_COLUMNS(struct target),
    COLUMN(struct target, address, COLUMN_TEXT),
    COLUMN(struct target, port, COLUMN_INT),
    COLUMN(struct target, login, COLUMN_TEXT),
    COLUMN(struct target, host_key, COLUMN_TEXT),
    COLUMN(struct target, principals, COLUMN_TEXT),
    COLUMN(struct target, sandbox, COLUMN_CHARS),
    COLUMN(struct target, become, COLUMN_BOOL),
    COLUMN(struct target, people, COLUMN_INT),
};
static struct columns target_columns = {.table = "targets",
                                        .list = target_column_list,
                                        .count = ARRAY_LEN(target_column_list),
                                        .order = "ORDER BY id",
                                        .prefix = "tg"};

static void target_done(struct named *n)
{
    struct target *t = target_of(n);

    mem_free(t->address);
    mem_free(t->login);
    mem_free(t->host_key);
    mem_free(t->principals);
}

static void target_put(const struct named *n, struct jw *w)
{
    const struct target *t = CONTAINER_OF(n, struct target, named);

    jw_kc(w, "address", t->address);
    jw_kint(w, "port", t->port);
    jw_kc(w, "user", t->login);
    jw_kc(w, "host_key", t->host_key);
    jw_kc(w, "sandbox", t->sandbox);
    jw_kbool(w, "become", t->become);
    jw_kint(w, "people", t->people);
}

static const struct named_kind target_kind = {
    .noun = "target",
    .hint = "holt target ls lists those there are",
    .size = sizeof(struct target),
    .columns = &target_columns,
    .durability = STORE_DURABLE,
    .done = target_done,
    .put = target_put,
};

int targets_open(struct store *store, struct sandboxes *sandboxes, struct targets **ret,
                 struct err *e)
{
    struct targets *l = xzalloc(sizeof *l);

    l->sandboxes = sandboxes;
    if (named_list_open(&l->list, &target_kind, store, e) < 0) {
        targets_free(l);
        return -1;
    }
    *ret = l;
    return 0;
}

/* --- create --- */

/* They stand in files of ssh, which have no quoting that all of its versions read alike. */
static bool is_plain(struct str s, const char *others)
{
    for (size_t i = 0; i < s.n; i++)
        if (!((s.p[i] >= 'a' && s.p[i] <= 'z') || (s.p[i] >= 'A' && s.p[i] <= 'Z') ||
              (s.p[i] >= '0' && s.p[i] <= '9') || (s.p[i] && strchr(others, s.p[i]))))
            return false;
    return s.n > 0 && s.p[0] != '-';
}

static int check_address(const struct target_spec *spec, struct err *e)
{
    AUTO(buf_done) struct buf blob = {0};

    if (!is_plain(spec->address, ".:-") || spec->address.n > ADDRESS_MAX)
        return err_set(e, ERR_INVALID, 0, "field 'address': an IP address or a host name");
    if (spec->host_key.n == 0) {
        err_set(e, ERR_INVALID, 0, "field 'host_key': an address needs the key of its host");
        return err_hint(e, "on that machine: cat /etc/ssh/ssh_host_ed25519_key.pub");
    }
    return ssh_key_read(spec->host_key, &blob, e) < 0 ? err_wrap(e, "field 'host_key'") : 0;
}

static int check_principals(const struct target_spec *spec, struct err *e)
{
    for (size_t i = 0; i < spec->principal_count; i++)
        if (!is_plain(spec->principals[i], "._@-") || spec->principals[i].n > 128)
            return err_set(e, ERR_INVALID, 0,
                           "field 'principals': names of letters, digits and ._@-");
    return 0;
}

static int check_spec(const struct targets *l, const struct target_spec *spec, struct err *e)
{
    if (spec->name.n == 0 || spec->name.n > NAME_MAX_LEN)
        return err_set(e, ERR_INVALID, 0, "field 'name': 1 to %d characters", NAME_MAX_LEN);
    if ((spec->address.n > 0) == (spec->sandbox.n > 0))
        return err_set(e, ERR_INVALID, 0, "a target is either an 'address' or a 'sandbox'");
    if (!is_plain(spec->user, "._-") || spec->user.n > 32)
        return err_set(e, ERR_INVALID, 0, "field 'user': a login name");
    if (spec->sandbox.n > 0 && spec->host_key.n > 0)
        return err_set(e, ERR_INVALID, 0,
                       "field 'host_key': that of a sandbox is known; leave it out");
    if (l->list.count >= TARGETS_MAX) {
        err_set(e, ERR_LIMIT, 0, "there are %d targets already", TARGETS_MAX);
        return err_limit_fixed(e, TARGETS_MAX, "remove some (holt target ls, holt target rm)");
    }
    if (check_principals(spec, e) < 0)
        return -1;
    return spec->address.n > 0 ? check_address(spec, e) : 0;
}

/* Machines trust one authority, which is the installation's. */
static int check_tenant(const struct principal *by, const struct target_spec *spec, struct err *e)
{
    if (spec->address.n == 0 || !by->tenant[0])
        return 0;
    err_set(e, ERR_FORBIDDEN, 0, "field 'address': a tenant's targets are sandboxes");
    return err_hint(e, "somebody without a tenant adds machines");
}

static int check_maker(const struct principal *by, struct err *e)
{
    if (by->role != ROLE_AGENT && !principal_is_inside(by))
        return 0;
    err_set(e, ERR_FORBIDDEN, 0, "only people add and remove targets");
    return err_hint(e, "ask an operator");
}

/* The type and the key, without a comment. */
static char *plain_key(struct str line)
{
    AUTO(buf_done) struct buf text = {0};
    struct str rest, type = str_cut(str_trim(line), ' ', &rest);
    struct str key = str_cut(str_trim(rest), ' ', &rest);

    if (type.n > 0)
        buf_printf(&text, STR_FMT " " STR_FMT, STR_ARG(type), STR_ARG(key));
    return buf_steal(&text);
}

static char *join(const struct target_spec *spec)
{
    AUTO(buf_done) struct buf text = {0};

    for (size_t i = 0; i < spec->principal_count; i++)
        buf_printf(&text, "%s" STR_FMT, i > 0 ? "," : "", STR_ARG(spec->principals[i]));
    if (spec->principal_count == 0)
        buf_add_str(&text, spec->user);
    return buf_steal(&text);
}

int target_create(struct targets *l, const struct target_spec *spec, const struct named_call *c,
                  struct err *e)
{
    struct sandbox_info box = {.id = ""};
    struct str tenant;
    struct target *t;

    if (check_maker(c->by, e) < 0 || check_tenant(c->by, spec, e) < 0 ||
        check_spec(l, spec, e) < 0 || owner_tenant(c->by, STR(""), &tenant, e) < 0 ||
        named_check_free(&l->list, c->by, tenant, spec->name, e) < 0)
        return err_wrap(e, "add a target");
    if (spec->sandbox.n > 0) {
        struct sandbox *s = sandbox_find(l->sandboxes, c->by, spec->sandbox, e);

        if (!s)
            return err_wrap(e, "add a target");
        sandbox_info(s, &box);
    }
    t = target_of(named_new(&l->list, c->by, tenant, spec->name));
    t->address = str_dup(spec->address);
    t->login = str_dup(spec->user);
    t->host_key = plain_key(spec->host_key);
    t->principals = join(spec);
    (void)snprintf(t->sandbox, sizeof t->sandbox, "%s", box.id);
    t->port = spec->port;
    t->people = spec->people;
    t->become = spec->become;
    t->named.shared = spec->shared;
    named_create(&t->named, "target.added", c);
    return 0;
}

int target_remove(struct target *t, const struct named_call *c, struct err *e)
{
    if (check_maker(c->by, e) < 0)
        return -1;
    if (t->named.state != NAMED_READY)
        return err_set(e, ERR_CONFLICT, 0, "target '%s' is being removed", t->named.name);
    named_remove(&t->named, "target.removed", c);
    return 0;
}

/* --- lookup --- */

struct target *target_find(struct targets *l, const struct principal *by, enum owner_use use,
                           struct str ref, struct err *e)
{
    return target_of(
        named_find(&l->list, &(struct named_look){.by = by, .use = use, .ref = ref}, e));
}

struct target *target_next(struct targets *l, const struct principal *by, struct str after)
{
    return target_of(named_next(&l->list, by, after));
}

struct target *target_of_sandbox(struct targets *l, const char *sandbox)
{
    for (size_t i = 0; i < l->list.count; i++) {
        struct target *t = target_of(l->list.sorted[i]);

        if (t->sandbox[0] && strcmp(t->sandbox, sandbox) == 0)
            return t;
    }
    return NULL;
}

void target_info(const struct target *t, struct target_info *ret)
{
    *ret = (struct target_info){.id = t->named.id,
                                .name = str_of(t->named.name),
                                .tenant = str_of(t->named.tenant),
                                .owner = str_of(t->named.owner),
                                .address = str_of(t->address),
                                .sandbox = str_of(t->sandbox),
                                .user = str_of(t->login),
                                .host_key = str_of(t->host_key),
                                .principals = str_of(t->principals),
                                .port = t->port,
                                .people = t->people,
                                .created_ms = t->named.created_ms,
                                .become = t->become,
                                .shared = t->named.shared};
}
