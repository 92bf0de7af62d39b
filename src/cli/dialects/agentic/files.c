/* files: sandboxctl's contexts.toml and its audit log. */
#include "cli/dialects/agentic/sandboxctl.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <unistd.h>

#define FILE_MAX (1 << 20)
#define LOG_MAX (64 << 20)

/* $XDG_…_HOME, else below the home directory; NULL: there is neither. */
static char *path_of(const char *variable, const char *below_home, const char *name)
{
    const char *base = getenv(variable), *home = getenv("HOME");

    if (base && base[0] == '/')
        return xasprintf("%s/%s", base, name);
    return home && home[0] == '/' ? xasprintf("%s/%s/%s", home, below_home, name) : NULL;
}

static int no_home(struct err *e)
{
    return err_set(e, ERR_NOT_FOUND, 0, "no home directory: set HOME");
}

/* --- TOML, as far as this file uses it: tables, and keys with texts --- */

static void skip_space(struct str *s)
{
    while (s->n > 0 && (s->p[0] == ' ' || s->p[0] == '\t' || s->p[0] == '\r'))
        *s = str_skip(*s, 1);
}

static bool escape_of(char c, char *ret)
{
    static const char from[] = "btnfr\"\\", to[] = "\b\t\n\f\r\"\\";
    const char *at = c ? strchr(from, c) : NULL;

    if (at)
        *ret = to[at - from];
    return at != NULL;
}

/* "basic" or 'literal'. */
static bool take_quoted(struct str *s, struct buf *to)
{
    char quote = s->p[0], c;

    for (*s = str_skip(*s, 1); s->n > 0; *s = str_skip(*s, 1)) {
        if (s->p[0] == quote) {
            *s = str_skip(*s, 1);
            return true;
        }
        c = s->p[0];
        if (c == '\\' && quote == '"') {
            *s = str_skip(*s, 1);
            if (s->n == 0 || !escape_of(s->p[0], &c))
                return false;
        }
        buf_add_char(to, c);
    }
    return false;
}

static bool is_bare(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_';
}

static bool take_key(struct str *s, struct buf *to)
{
    skip_space(s);
    buf_clear(to);
    if (s->n > 0 && (s->p[0] == '"' || s->p[0] == '\''))
        return take_quoted(s, to);
    for (; s->n > 0 && is_bare(s->p[0]); *s = str_skip(*s, 1))
        buf_add_char(to, s->p[0]);
    return buf_len(to) > 0;
}

static json_t *child_of(json_t *table, const char *key)
{
    json_t *child = json_object_get(table, key);

    if (!child) {
        child = json_object();
        json_object_set_new(table, key, child);
    }
    return child;
}

static bool ends(struct str s)
{
    skip_space(&s);
    return s.n == 0 || s.p[0] == '#';
}

static bool read_table(struct str s, json_t *root, json_t **ret)
{
    AUTO(buf_done) struct buf key = {0};

    *ret = root;
    do {
        s = str_skip(s, 1); /* [ or . */
        if (!take_key(&s, &key))
            return false;
        *ret = child_of(*ret, buf_cstr(&key));
        if (!json_is_object(*ret))
            return false;
        skip_space(&s);
    } while (s.n > 0 && s.p[0] == '.');
    return s.n > 0 && s.p[0] == ']' && ends(str_skip(s, 1));
}

static bool read_pair(struct str s, json_t *table)
{
    AUTO(buf_done) struct buf key = {0}, value = {0};

    if (!take_key(&s, &key))
        return false;
    skip_space(&s);
    if (s.n == 0 || s.p[0] != '=')
        return false;
    s = str_skip(s, 1);
    skip_space(&s);
    if (s.n == 0 || (s.p[0] != '"' && s.p[0] != '\'') || !take_quoted(&s, &value))
        return false;
    return ends(s) && json_object_set_new(table, buf_cstr(&key),
                                          json_stringn(buf_cstr(&value), buf_len(&value))) == 0;
}

static int read_toml(struct str text, json_t *root, struct err *e)
{
    json_t *table = root;

    for (int line = 1; text.n > 0; line++) {
        struct str s = str_cut(text, '\n', &text);
        bool good;

        skip_space(&s);
        if (ends(s))
            continue;
        good = s.p[0] == '[' ? read_table(s, root, &table) : read_pair(s, table);
        if (!good)
            return err_set(e, ERR_INVALID, 0, "line %d is neither [a.table] nor key = \"text\"",
                           line);
    }
    return 0;
}

static void add_quoted(struct buf *to, const char *s)
{
    buf_add_char(to, '"');
    for (; *s; s++) {
        if (*s == '"' || *s == '\\')
            buf_add_char(to, '\\');
        buf_add_char(to, *s);
    }
    buf_add_char(to, '"');
}

static void write_toml(struct buf *to, const json_t *root)
{
    const char *current = json_string_value(json_object_get(root, "current_context")), *name, *key;
    json_t *one, *v;

    if (current) {
        buf_add_c(to, "current_context = ");
        add_quoted(to, current);
        buf_add_char(to, '\n');
    }
    json_object_foreach(json_object_get(root, "contexts"), name, one)
    {
        buf_add_c(to, "\n[contexts.");
        add_quoted(to, name);
        buf_add_c(to, "]\n");
        json_object_foreach(one, key, v)
        {
            buf_printf(to, "%s = ", key);
            add_quoted(to, json_is_string(v) ? json_string_value(v) : "");
            buf_add_char(to, '\n');
        }
    }
}

/* --- contexts --- */

static int contexts_load(json_t **ret, struct err *e)
{
    AUTO(mem_free)
    char *path = path_of("XDG_CONFIG_HOME", ".config", "agentic-sandbox/contexts.toml");
    AUTO(json_decref) json_t *root = json_object();
    AUTO(buf_done) struct buf text = {0};
    int r = path ? file_read(path, FILE_MAX, &text) : -ENOENT;

    if (r < 0 && r != -ENOENT)
        return err_set(e, err_code_from_errno(-r), -r, "read '%s'", path);
    if (read_toml(buf_str(&text), root, e) < 0)
        return err_wrap(e, "read '%s'", path);
    (void)child_of(root, "contexts");
    *ret = TAKE(root);
    return 0;
}

static int contexts_save(const json_t *root, struct err *e)
{
    AUTO(mem_free)
    char *path = path_of("XDG_CONFIG_HOME", ".config", "agentic-sandbox/contexts.toml");
    AUTO(mem_free) char *copy = path ? xstrdup(path) : NULL;
    AUTO(buf_wipe) struct buf text = {0};
    int r;

    if (!path)
        return no_home(e);
    write_toml(&text, root);
    r = dir_make_all(dirname(copy), 0700);
    if (r == 0)
        r = file_replace(path, 0600, buf_str(&text));
    return r < 0 ? err_set(e, err_code_from_errno(-r), -r, "write '%s'", path) : 0;
}

static bool fits(const char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < ' ' || *text == 127)
            return false;
    return true;
}

int ctl_set_context(struct ctl *x, const struct ctl_call *k, struct err *e)
{
    AUTO(json_decref) json_t *root = NULL;
    const char *token = ctl_text(k, "token"), *role = ctl_text(k, "role");

    if (!x->server)
        return err_set(e, ERR_INVALID, 0, "--server URL is missing");
    if (!fits(k->words[0]) || !fits(x->server) || !fits(token ? token : "") || !fits(role))
        return err_set(e, ERR_INVALID, 0, "names, addresses and tokens have no control characters");
    if (contexts_load(&root, e) < 0)
        return -1;
    json_object_set_new(json_object_get(root, "contexts"), k->words[0],
                        json_pack("{s:s, s:s, s:s}", "server", x->server, "token",
                                  token ? token : "", "role", role));
    if (!json_object_get(root, "current_context"))
        json_object_set_new(root, "current_context", json_string(k->words[0]));
    return contexts_save(root, e);
}

static int no_context(struct err *e, const char *name)
{
    return err_set(e, ERR_NOT_FOUND, 0, "there is no context '%.64s'", name);
}

int ctl_use_context(struct ctl *x, const struct ctl_call *k, struct err *e)
{
    AUTO(json_decref) json_t *root = NULL;

    (void)x;
    if (contexts_load(&root, e) < 0)
        return -1;
    if (!json_object_get(json_object_get(root, "contexts"), k->words[0]))
        return no_context(e, k->words[0]);
    json_object_set_new(root, "current_context", json_string(k->words[0]));
    return contexts_save(root, e);
}

int ctl_contexts(struct ctl *x, const struct ctl_call *k, struct err *e)
{
    static const struct ctl_verb form = {
        .columns = "CURRENT=current,NAME=name,SERVER=server,ROLE=role", .items = "contexts"};
    AUTO(json_decref) json_t *root = NULL;
    AUTO(json_decref) json_t *rows = json_pack("{s:[]}", "contexts");
    const char *name, *current;
    json_t *one;

    (void)k;
    if (contexts_load(&root, e) < 0)
        return -1;
    current = json_string_value(json_object_get(root, "current_context"));
    json_object_foreach(json_object_get(root, "contexts"), name, one) json_array_append_new(
        json_object_get(rows, "contexts"),
        json_pack("{s:s, s:s, s:O, s:O}", "current",
                  current && strcmp(current, name) == 0 ? "*" : "", "name", name, "server",
                  json_object_get(one, "server"), "role", json_object_get(one, "role")));
    ctl_show(x, &form, rows);
    return 0;
}

/* The server and the token: flag, $AGENTIC_SERVER, a context; else as every command of holt. */
int ctl_choose(struct ctl *x, struct err *e)
{
    const char *env = getenv("AGENTIC_SERVER"), *token;
    const char *name = x->context ? x->context : getenv("SANDBOXCTL_CONTEXT");
    AUTO(json_decref) json_t *root = NULL;
    json_t *one = NULL;

    if (contexts_load(&root, e) < 0)
        return -1;
    if (!name || !name[0])
        name = json_string_value(json_object_get(root, "current_context"));
    if (name && !(one = json_object_get(json_object_get(root, "contexts"), name)))
        return no_context(e, name);
    if (x->server || (env && env[0] && !x->context)) {
        x->c->server = x->server ? x->server : env;
        one = NULL;
    } else if (one) {
        x->c->server =
            arena_cstr(&x->c->arena, str_of(json_string_value(json_object_get(one, "server"))));
        x->context_name = arena_cstr(&x->c->arena, str_of(name));
    }
    if (target_choose(x->c, &x->t, e) < 0)
        return -1;
    token = json_string_value(json_object_get(one, "token"));
    if (token && token[0]) {
        mem_free(x->t.token);
        x->t.token = xstrdup(token);
    }
    return 0;
}

int ctl_whoami(struct ctl *x, const struct ctl_call *k, struct err *e)
{
    AUTO(json_decref) json_t *me = NULL;
    AUTO(json_decref) json_t *shown = NULL;

    (void)k;
    if (ctl_get(x, "/holt/v1/tokens/self", &me, e) < 0)
        return -1;
    shown = json_pack("{s:s?, s:s, s:O?, s:O?}", "context", x->context_name, "server", x->t.server,
                      "role", json_object_get(me, "role"), "token", json_object_get(me, "name"));
    ctl_show(x, &(struct ctl_verb){0}, shown);
    return 0;
}

/* --- the audit log --- */

static char *log_path(void)
{
    return path_of("XDG_STATE_HOME", ".local/state", "sandboxctl/audit.log");
}

static void write_line(const struct ctl *x, const struct ctl_call *k, bool intent, int64_t ms,
                       const struct err *e, struct buf *to)
{
    struct jw w = {.to = to};

    jw_object(&w);
    jw_kint(&w, "ts_ms", clock_wall_ms());
    jw_kc(&w, "kind", intent ? "intent" : "outcome");
    jw_kc(&w, "context", x->context_name);
    jw_kc(&w, "verb", k->v->path);
    jw_kc(&w, "target", k->words[0]);
    if (!intent) {
        jw_kc(&w, "outcome", e->code == ERR_NONE ? "ok" : "err");
        jw_kint(&w, "duration_ms", ms);
        if (e->code != ERR_NONE)
            jw_kc(&w, "err", e->msg);
    }
    jw_object_end(&w);
    buf_add_char(to, '\n');
}

void ctl_audit(const struct ctl *x, const struct ctl_call *k, bool intent, int64_t ms,
               const struct err *e)
{
    AUTO(mem_free) char *path = log_path();
    AUTO(mem_free) char *copy = path ? xstrdup(path) : NULL;
    AUTO(buf_done) struct buf line = {0};
    int r = path ? dir_make_all(dirname(copy), 0700) : -ENOENT;
    AUTO(fd_close)
    int fd = r < 0 ? -1 : open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);

    write_line(x, k, intent, ms, e, &line);
    if (r == 0)
        r = fd < 0 ? -errno : fd_write_all(fd, buf_data(&line), buf_len(&line));
    if (r < 0)
        cli_note("the audit log '%s' cannot be written: %s", path ? path : "", strerror(-r));
}

static int log_read(struct buf *to, struct err *e)
{
    AUTO(mem_free) char *path = log_path();
    int r = path ? file_read(path, LOG_MAX, to) : -ENOENT;

    if (r < 0 && r != -ENOENT)
        return err_set(e, err_code_from_errno(-r), -r, "read '%s'", path);
    return 0;
}

int ctl_audit_path(struct ctl *x, const struct ctl_call *k, struct err *e)
{
    AUTO(mem_free) char *path = log_path();

    (void)x, (void)k;
    if (!path)
        return no_home(e);
    ctl_print("%s", path);
    return 0;
}

int ctl_audit_grep(struct ctl *x, const struct ctl_call *k, struct err *e)
{
    AUTO(buf_done) struct buf text = {0};
    struct str rest;

    (void)x;
    if (log_read(&text, e) < 0)
        return -1;
    rest = buf_str(&text);
    while (rest.n > 0) {
        struct str line = str_cut(rest, '\n', &rest);

        if (str_find(line, str_of(k->words[0])))
            ctl_print(STR_FMT, STR_ARG(line));
    }
    return 0;
}

int ctl_audit_tail(struct ctl *x, const struct ctl_call *k, struct err *e)
{
    int64_t lines = json_integer_value(json_object_get(k->flags, "lines"));
    AUTO(buf_done) struct buf text = {0};
    struct str rest;
    size_t at;

    (void)x;
    if (log_read(&text, e) < 0)
        return -1;
    rest = buf_str(&text);
    for (at = rest.n; at > 0; at--)
        if (rest.p[at - 1] == '\n' && at < rest.n && --lines == 0)
            break;
    for (rest = str_skip(rest, at); rest.n > 0;) {
        struct str line = str_cut(rest, '\n', &rest);

        ctl_print(STR_FMT, STR_ARG(line));
    }
    return 0;
}
