/* spec: reads sandbox and command specs from requests. */
#include "api/share/sandbox.h"
#include "base/enc.h"
#include "core/network/secret.h"
#include "core/sandbox/traits.h"
#include "core/sandbox/volume.h"

#include <signal.h>

#define ARGV_MAX 4096 /* arguments; their bytes are bounded by the guest protocol */
#define MOUNTS_MAX 64
#define LABELS_MAX 64
#define SECRETS_MAX 32

static struct str json_text(const json_t *v)
{
    return str_make(json_string_value(v), json_string_length(v));
}

const struct pair *spec_pairs(const struct op_map *m, struct arena *a)
{
    struct pair *p = m->n ? arena_alloc(a, m->n * sizeof *p) : NULL;

    for (size_t i = 0; i < m->n; i++)
        p[i] = (struct pair){m->v[i].key, m->v[i].value};
    return p;
}

static int64_t or_zero(int64_t v)
{
    return v == OP_ABSENT ? 0 : v;
}

/* --- mounts --- */

static int mount_wrong(size_t at, const char *what, struct err *e)
{
    return err_set(e, ERR_INVALID, 0, "field 'mounts', entry %zu: %s", at, what);
}

static int mount_member(const char *key, const json_t *v, struct sandbox_mount *m, size_t at,
                        struct err *e)
{
    struct {
        const char *key;
        struct str *to;
    } texts[] = {{"kind", &m->kind}, {"source", &m->source}, {"target", &m->target}};

    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        if (strcmp(key, texts[i].key) != 0)
            continue;
        if (!json_is_string(v))
            return err_set(e, ERR_INVALID, 0, "field 'mounts', entry %zu: '%s' must be a string",
                           at, key);
        *texts[i].to = json_text(v);
        return 0;
    }
    if (strcmp(key, "readonly") == 0 && json_is_boolean(v)) {
        m->readonly = json_is_true(v);
        return 0;
    }
    if (strcmp(key, "size_bytes") == 0 && json_is_integer(v) && json_integer_value(v) > 0) {
        m->size_bytes = json_integer_value(v);
        return 0;
    }
    if (strcmp(key, "readonly") == 0)
        return mount_wrong(at, "'readonly' must be true or false", e);
    if (strcmp(key, "size_bytes") == 0)
        return mount_wrong(at, "'size_bytes' must be a whole number above 0", e);
    err_set(e, ERR_INVALID, 0, "field 'mounts', entry %zu has no member '%.48s'", at, key);
    return err_hint(e, "it knows: kind, source, target, readonly, size_bytes");
}

/* A prefix ends at a '/': "/srv/a" allows "/srv/a/b", not "/srv/ab". */
static bool is_below(struct str path, struct str root)
{
    while (root.n > 1 && root.p[root.n - 1] == '/')
        root.n--;
    return str_starts(path, root) && (path.n == root.n || root.n == 1 || path.p[root.n] == '/');
}

static bool is_plain_path(struct str path)
{
    return path.n > 0 && path.p[0] == '/' && (path.n == 1 || http_path_is_normal(path));
}

static int check_host_mount(const struct request *r, const struct sandbox_mount *m, size_t at,
                            struct err *e)
{
    const struct conf_list *allowed = &r->api->c.conf->host_mounts;

    if (!is_plain_path(m->source))
        return mount_wrong(at, "'source' must be an absolute path without '.', '..' and '//'", e);
    for (size_t i = 0; i < allowed->n; i++) {
        struct str root = str_of(allowed->v[i]);
        bool readonly = str_ends(root, STR(":ro"));

        if (readonly)
            root.n -= 3;
        if (is_below(m->source, root) && (m->readonly || !readonly))
            return 0;
    }
    err_set(e, ERR_FORBIDDEN, 0, "the host directory '" STR_FMT "' may not be mounted%s",
            (int)size_min(m->source.n, 100), m->source.p, m->readonly ? "" : " read-write");
    return err_hint(e, "an operator can allow directories with the setting 'host_mounts'");
}

static int check_mount(const struct request *r, const struct sandbox_mount *m, size_t at,
                       struct err *e)
{
    bool known = false;

    for (size_t i = 0; op_mount_kinds[i]; i++)
        known = known || str_eq_c(m->kind, op_mount_kinds[i]);
    if (!known)
        return mount_wrong(
            at, "'kind' must be tmpfs, host or own (volumes go into the field 'volumes')", e);
    if (!is_plain_path(m->target) || m->target.n == 1)
        return mount_wrong(at, "'target' must be an absolute path without '.', '..' and '//'", e);
    if (str_eq_c(m->kind, "tmpfs"))
        return m->source.n ? mount_wrong(at, "a tmpfs has no 'source'", e) : 0;
    if (str_eq_c(m->kind, "own"))
        return m->source.n || m->readonly
                   ? mount_wrong(at, "an 'own' directory has a 'target' and 'size_bytes' only", e)
                   : 0;
    if (m->size_bytes)
        return mount_wrong(at, "a directory of the host has no 'size_bytes'", e);
    return check_host_mount(r, m, at, e);
}

static int read_mounts(const struct request *r, json_t *list, struct arena *a,
                       struct sandbox_spec *ret, struct err *e)
{
    struct sandbox_mount *m;
    size_t n = json_array_size(list);

    if (!list)
        return 0;
    if (!json_is_array(list) || n > MOUNTS_MAX)
        return err_set(e, ERR_INVALID, 0, "field 'mounts' must be a list of at most %d objects",
                       MOUNTS_MAX);
    m = arena_zalloc(a, size_max(n, 1) * sizeof *m);
    for (size_t i = 0; i < n; i++) {
        json_t *o = json_array_get(list, i);

        if (!json_is_object(o))
            return mount_wrong(i, "it must be an object", e);
        for (void *at = json_object_iter(o); at; at = json_object_iter_next(o, at))
            if (mount_member(json_object_iter_key(at), json_object_iter_value(at), &m[i], i, e) < 0)
                return -1;
        if (check_mount(r, &m[i], i, e) < 0)
            return -1;
    }
    ret->mounts = m;
    ret->mount_count = n;
    return 0;
}

/* --- network --- */

int spec_read_network(const json_t *network, const struct op_list *allow, struct arena *a,
                      struct str *ret, struct err *e)
{
    AUTO(buf_done) struct buf text = {0};
    struct jw w = {.to = &text};
    const json_t *own = json_object_get(network, "allow");
    const char *key;
    json_t *v;

    if (network && !json_is_string(network) && !json_is_object(network))
        return err_set(e, ERR_INVALID, 0, "field 'network' must be a mode or an object");
    if (allow->n == 0) {
        if (network)
            jw_json(&w, network);
        *ret = arena_str(a, buf_str(&text));
        return 0;
    }
    jw_object(&w);
    if (json_is_string(network))
        jw_kstr(&w, "mode", json_text(network));
    json_object_foreach((json_t *)(uintptr_t)network, key, v) if (strcmp(key, "allow") != 0)
    {
        jw_key(&w, key);
        jw_json(&w, v);
    }
    jw_key(&w, "allow");
    jw_array(&w);
    for (size_t i = 0; i < json_array_size(own); i++)
        jw_json(&w, json_array_get(own, i));
    for (size_t i = 0; i < allow->n; i++)
        jw_str(&w, allow->v[i]);
    jw_array_end(&w);
    jw_object_end(&w);
    *ret = arena_str(a, buf_str(&text));
    return 0;
}

/* --- volumes --- */

static int volume_wrong(size_t at, const char *what, struct err *e)
{
    return err_set(e, ERR_INVALID, 0, "field 'volumes', entry %zu: %s", at, what);
}

static int read_volume(json_t *o, size_t at, struct volume_use *u, struct err *e)
{
    if (!json_is_object(o))
        return volume_wrong(at, "it must be an object", e);
    for (void *i = json_object_iter(o); i; i = json_object_iter_next(o, i)) {
        const char *key = json_object_iter_key(i);
        const json_t *v = json_object_iter_value(i);

        if (strcmp(key, "name") == 0 && json_is_string(v))
            u->name = json_text(v);
        else if (strcmp(key, "path") == 0 && json_is_string(v))
            u->path = json_text(v);
        else if (strcmp(key, "read_only") == 0 && json_is_boolean(v))
            u->readonly = json_is_true(v);
        else {
            err_set(e, ERR_INVALID, 0, "field 'volumes', entry %zu: '%.48s' is wrong or unknown",
                    at, key);
            return err_hint(e, "it knows: name (string), path (string), read_only (true or false)");
        }
    }
    if (u->name.n == 0)
        return volume_wrong(at, "'name' must name the volume", e);
    if (!is_plain_path(u->path) || u->path.n == 1)
        return volume_wrong(at, "'path' must be an absolute path without '.', '..' and '//'", e);
    return 0;
}

static int read_volumes(json_t *list, struct arena *a, struct sandbox_spec *ret, struct err *e)
{
    struct volume_use *u;
    size_t n = json_array_size(list);

    if (!list)
        return 0;
    if (!json_is_array(list) || n > MOUNTS_MAX)
        return err_set(e, ERR_INVALID, 0, "field 'volumes' must be a list of at most %d objects",
                       MOUNTS_MAX);
    u = arena_zalloc(a, size_max(n, 1) * sizeof *u);
    for (size_t i = 0; i < n; i++)
        if (read_volume(json_array_get(list, i), i, &u[i], e) < 0)
            return -1;
    ret->volumes = u;
    ret->volume_count = n;
    return 0;
}

/* --- secrets --- */

static int read_secret(json_t *o, size_t at, struct secret_use *u, struct err *e)
{
    if (!json_is_object(o))
        return err_set(e, ERR_INVALID, 0, "field 'secrets', entry %zu: it must be an object", at);
    for (void *i = json_object_iter(o); i; i = json_object_iter_next(o, i)) {
        const char *key = json_object_iter_key(i);
        const json_t *v = json_object_iter_value(i);

        if (strcmp(key, "name") == 0 && json_is_string(v))
            u->name = json_text(v);
        else if (strcmp(key, "env") == 0 && json_is_string(v))
            u->env = json_text(v);
        else {
            err_set(e, ERR_INVALID, 0, "field 'secrets', entry %zu: '%.48s' is wrong or unknown",
                    at, key);
            return err_hint(e, "it knows: name (string), env (string)");
        }
    }
    return 0;
}

static int read_secrets(json_t *list, const struct op_list *more, struct arena *a,
                        struct sandbox_spec *ret, struct err *e)
{
    size_t n = json_array_size(list);
    struct secret_use *u;

    if (!list && more->n == 0)
        return 0;
    if ((list && !json_is_array(list)) || n + more->n > SECRETS_MAX)
        return err_set(e, ERR_INVALID, 0, "field 'secrets' must be a list of at most %d objects",
                       SECRETS_MAX);
    u = arena_zalloc(a, size_max(n + more->n, 1) * sizeof *u);
    for (size_t i = 0; i < n; i++)
        if (read_secret(json_array_get(list, i), i, &u[i], e) < 0)
            return -1;
    for (size_t i = 0; i < more->n; i++)
        u[n + i].name = str_cut(more->v[i], '=', &u[n + i].env);
    ret->secrets = u;
    ret->secret_count = n + more->n;
    return 0;
}

static int may_be_wide(const struct request *r, struct err *e)
{
    enum conf_wide who = r->api->c.conf->wide_syscalls;

    if (who == CONF_WIDE_AGENTS || (who == CONF_WIDE_PEOPLE && r->who.role != ROLE_AGENT))
        return 0;
    err_set(e, ERR_FORBIDDEN, 0, "field 'syscalls': 'wide' is not allowed %s",
            who == CONF_WIDE_NEVER ? "here" : "to agents");
    return err_hint(e, "an operator can allow it with the setting 'wide_syscalls'");
}

int spec_read_sandbox(const struct request *r, const struct sandbox_fields *f, struct arena *a,
                      struct sandbox_spec *ret, struct err *e)
{
    *ret = (struct sandbox_spec){
        .image = f->image,
        .runtime = f->runtime,
        .host = f->host,
        .tenant = f->tenant,
        .traits = f->traits,
        .calls = f->syscalls == OP_SYSCALLS_WIDE     ? SANDBOX_CALLS_WIDE
                 : f->syscalls == OP_SYSCALLS_NARROW ? SANDBOX_CALLS_NARROW
                                                     : SANDBOX_CALLS_USUAL,
        .require_limits = f->require_limits || r->api->c.conf->require_limits,
        .agent = f->agent,
        .policy = f->policy,
        .require_paths = f->require_paths,
        .labels = spec_pairs(&f->labels, a),
        .label_count = f->labels.n,
    };
    ret->traits.rootfs_ro = f->rootfs == OP_ROOTFS_RO;
    ret->traits.memory_upper = f->upper == OP_UPPER_MEMORY;
    traits_settle(&ret->traits);
    if (f->traits.nesting && !r->api->c.conf->nesting) {
        err_set(e, ERR_FORBIDDEN, 0, "field 'nesting': it is not allowed here");
        return err_hint(e, "an operator can allow it with the setting 'nesting'");
    }
    if (f->syscalls == OP_SYSCALLS_WIDE && may_be_wide(r, e) < 0)
        return -1;
    if (spec_read_network(f->network, &f->allow, a, &ret->network, e) < 0)
        return -1;
    if (read_mounts(r, f->mounts, a, ret, e) < 0 || read_volumes(f->volumes, a, ret, e) < 0)
        return -1;
    return read_secrets(f->secrets, &f->secret, a, ret, e);
}

int spec_read_labels(const json_t *labels, struct arena *a, struct sandbox_change *c, struct err *e)
{
    json_t *o = (json_t *)(uintptr_t)labels; /* jansson's iterators are not const */
    struct pair *p;
    size_t n = 0;

    if (!labels)
        return 0;
    if (!json_is_object(labels) || json_object_size(labels) > LABELS_MAX)
        return err_set(e, ERR_INVALID, 0, "field 'labels' must be an object of at most %d strings",
                       LABELS_MAX);
    p = arena_alloc(a, (json_object_size(labels) + 1) * sizeof *p);
    for (void *at = json_object_iter(o); at; at = json_object_iter_next(o, at)) {
        const json_t *v = json_object_iter_value(at);

        if (!json_is_string(v))
            return err_set(e, ERR_INVALID, 0,
                           "field 'labels': the value of '%.48s' must be a string",
                           json_object_iter_key(at));
        p[n++] = (struct pair){str_of(json_object_iter_key(at)), json_text(v)};
    }
    c->labels = p;
    c->label_count = n;
    c->set_labels = true;
    return 0;
}

/* --- commands --- */

static int read_command(const json_t *c, struct arena *a, struct exec_spec *ret, struct err *e)
{
    struct str *argv;
    size_t n = json_array_size(c);

    if (!c) {
        ret->image_command = true;
        return 0;
    }
    if (json_is_string(c) && json_string_length(c) > 0) {
        ret->shell = json_text(c);
        return 0;
    }
    if (!json_is_array(c) || n == 0 || n > ARGV_MAX)
        return err_set(
            e, ERR_INVALID, 0,
            "field 'command' must be a list of 1 to %d strings, or one string for the shell",
            ARGV_MAX);
    argv = arena_alloc(a, n * sizeof *argv);
    for (size_t i = 0; i < n; i++) {
        const json_t *v = json_array_get(c, i);

        if (!json_is_string(v) || (i == 0 && json_string_length(v) == 0))
            return err_set(e, ERR_INVALID, 0, "field 'command': entry %zu must be a string%s", i,
                           i ? "" : ": the name or path of a program");
        argv[i] = json_text(v);
    }
    ret->argv = argv;
    ret->argc = n;
    return 0;
}

static int read_size(const json_t *pty, const char *key, int preset, int *ret, struct err *e)
{
    const json_t *v = json_object_get(pty, key);

    *ret = preset;
    if (!v)
        return 0;
    if (!json_is_integer(v) || json_integer_value(v) < 1 || json_integer_value(v) > OP_PTY_SIDE_MAX)
        return err_set(e, ERR_INVALID, 0, "field 'pty': '%s' must be a whole number from 1 to %d",
                       key, OP_PTY_SIDE_MAX);
    *ret = (int)json_integer_value(v);
    return 0;
}

static int read_pty(const json_t *pty, struct exec_spec *ret, struct err *e)
{
    if (!pty || json_is_false(pty))
        return 0;
    if (!json_is_true(pty) && !json_is_object(pty))
        return err_set(e, ERR_INVALID, 0,
                       "field 'pty' must be true, false or {\"rows\": 24, \"cols\": 80}");
    ret->pty = true;
    return read_size(pty, "rows", 24, &ret->rows, e) < 0 ||
                   read_size(pty, "cols", 80, &ret->cols, e) < 0
               ? -1
               : 0;
}

static int read_input(const struct exec_fields *f, struct arena *a, struct exec_input *ret,
                      struct err *e)
{
    AUTO(buf_done) struct buf bytes = {0};

    *ret = (struct exec_input){0};
    if (f->stdin_text.p && f->stdin_base64.p)
        return err_set(e, ERR_INVALID, 0, "give only one of the fields 'stdin' and 'stdin_base64'");
    ret->eof = (f->stdin_text.p || f->stdin_base64.p) && !f->stdin_open;
    ret->bytes = f->stdin_text;
    if (!f->stdin_base64.p)
        return 0;
    if (dec_base64(&bytes, f->stdin_base64) < 0)
        return err_set(e, ERR_INVALID, 0, "field 'stdin_base64' is not base64");
    ret->bytes = arena_str(a, buf_str(&bytes));
    return 0;
}

int spec_read_exec(const struct exec_fields *f, struct arena *a, struct exec_spec *ret,
                   struct exec_input *ret_input, struct err *e)
{
    *ret = (struct exec_spec){
        .env = spec_pairs(&f->env, a),
        .env_count = f->env.n,
        .cwd = f->cwd,
        .user = f->user,
        .timeout_ms = or_zero(f->timeout_ms),
        .merge = f->merge,
        .kill_rest = f->kill_rest,
        .output_bytes = or_zero(f->output_bytes),
        .block_when_full = f->on_full == OP_ON_FULL_BLOCK,
    };
    if (read_command(f->command, a, ret, e) < 0 || read_pty(f->pty, ret, e) < 0 ||
        read_input(f, a, ret_input, e) < 0)
        return -1;
    ret->want_stdin = f->stdin_open || f->stdin_text.p || f->stdin_base64.p;
    return 0;
}

int spec_check_unread(const struct exec_fields *f, struct err *e)
{
    if (f->on_full != OP_ON_FULL_BLOCK)
        return 0;
    err_set(e, ERR_INVALID, 0,
            "field 'on_full': this form does not read output before the command's end");
    return err_hint(e, "set 'background' and follow its output, or use the WebSocket form of run");
}

/* --- signals --- */

int signal_parse(struct str text, int *ret, struct err *e)
{
    int64_t n;

    if (str_starts(text, STR("SIG")))
        text = str_skip(text, 3);
    if (str_parse_i64(text, &n) == 0 && n >= 1 && n <= SIGRTMAX) {
        *ret = (int)n;
        return 0;
    }
    for (int s = 1; s < NSIG; s++) {
        const char *name = sigabbrev_np(s);

        if (name && str_case_eq_c(text, name)) {
            *ret = s;
            return 0;
        }
    }
    err_set(e, ERR_INVALID, 0, "field 'signal': there is no signal '" STR_FMT "'",
            (int)size_min(text.n, 32), text.p);
    return err_hint(e, "give a name such as TERM, INT, HUP, or a number");
}
