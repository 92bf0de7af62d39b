/* context: reads and writes contexts.json, chooses the server and token of a command. */
#include "cli/context.h"

#include "base/fd.h"
#include "base/mem.h"
#include "conf/conf.h"
#include "proto/json.h"

#include <errno.h>
#include <libgen.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_MAX (1024 * 1024)

static const char *home_dir(void)
{
    const char *home = getenv("HOME");
    const struct passwd *pw;

    if (home && home[0] == '/')
        return home;
    pw = getpwuid(getuid());
    return pw ? pw->pw_dir : NULL;
}

char *contexts_path(void)
{
    const char *base = getenv("XDG_CONFIG_HOME");
    const char *home = home_dir();

    if (base && base[0] == '/')
        return xasprintf("%s/holt/contexts.json", base);
    return home ? xasprintf("%s/.config/holt/contexts.json", home) : NULL;
}

char *state_dir(void)
{
    const char *named = getenv("HOLT_STATE");

    return named && named[0] ? xstrdup(named) : conf_default_state();
}

static int check_shape(const json_t *all, const char *path, struct err *e)
{
    json_t *contexts = json_object_get(all, "contexts"), *v;
    const char *name;

    if (!json_is_object(contexts))
        return err_set(e, ERR_INVALID, 0, "'%s' has no object \"contexts\"", path);
    json_object_foreach(contexts, name, v)
    {
        if (!json_is_string(json_object_get(v, "server")))
            return err_set(e, ERR_INVALID, 0, "context '%s' in '%s' has no server", name, path);
    }
    return 0;
}

int contexts_read(json_t **ret, struct err *e)
{
    AUTO(mem_free) char *path = contexts_path();
    AUTO(buf_done) struct buf text = {0};
    AUTO(json_decref) json_t *all = NULL;
    int r = path ? file_read(path, FILE_MAX, &text) : -ENOENT;

    if (r == -ENOENT) {
        *ret = json_pack("{s:n,s:{}}", "current", "contexts");
        return 0;
    }
    if (r < 0)
        return err_set(e, err_code_from_errno(-r), -r, "read contexts from '%s'", path);
    if (json_read(buf_str(&text), &all, e) < 0) {
        (void)err_wrap(e, "read contexts from '%s'", path);
        return err_hint(e, "fix or remove that file; `holt context add` writes a new one");
    }
    if (check_shape(all, path, e) < 0)
        return err_hint(e, "fix or remove that file; `holt context add` writes a new one");
    *ret = TAKE(all);
    return 0;
}

int contexts_write(const json_t *all, struct err *e)
{
    AUTO(mem_free) char *path = contexts_path();
    AUTO(mem_free) char *copy = path ? xstrdup(path) : NULL;
    AUTO(buf_done) struct buf text = {0};
    int r;

    if (!path)
        return err_set(e, ERR_NOT_FOUND, 0, "no home directory: set HOME or XDG_CONFIG_HOME");
    print_json(&text, all);
    r = dir_make_all(dirname(copy), 0700);
    if (r == 0)
        r = file_replace(path, 0600, buf_str(&text));
    mem_wipe(text.base, text.size);
    if (r < 0)
        return err_set(e, err_code_from_errno(-r), -r, "write contexts to '%s'", path);
    return 0;
}

bool server_is_local(const char *server)
{
    static const char *const hosts[] = {"127.", "localhost", "[::1]"};
    struct str rest, host;

    if (strncmp(server, "unix:", 5) == 0)
        return true;
    host = str_of(strstr(server, "://"));
    if (!host.p)
        return false;
    host = str_cut(str_skip(host, 3), '/', &rest);
    if (host.p[0] == '[')
        return str_starts(host, str_of(hosts[2])) && (host.n == 5 || host.p[5] == ':');
    host = str_cut(host, ':', &rest);
    if (str_eq_c(host, hosts[1]))
        return true;
    for (size_t i = 0; i < host.n; i++)
        if (host.p[i] != '.' && (host.p[i] < '0' || host.p[i] > '9'))
            return false;
    return str_starts(host, str_of(hosts[0]));
}

/* The token that holtd wrote at its first start, if this user may read it. */
static char *local_token(void)
{
    AUTO(mem_free) char *dir = state_dir();
    AUTO(mem_free) char *path = xasprintf("%s/admin-token", dir);
    AUTO(buf_done) struct buf text = {0};
    struct str token;

    if (file_read(path, 4096, &text) < 0)
        return NULL;
    token = buf_str(&text);
    while (token.n > 0 && (unsigned char)token.p[token.n - 1] <= ' ')
        token.n--;
    return token.n > 0 ? str_dup(token) : NULL;
}

static char *env_text(const char *name)
{
    const char *v = getenv(name);

    return v && v[0] ? xstrdup(v) : NULL;
}

static char *member_text(const json_t *object, const char *key)
{
    const char *v = json_string_value(json_object_get(object, key));

    return v && v[0] ? xstrdup(v) : NULL;
}

/* The context named by flag, environment or the file; without a name *ret is unchanged. */
static int from_context(const struct cli *c, struct target *t, struct err *e)
{
    AUTO(json_decref) json_t *all = NULL;
    AUTO(mem_free) char *env = env_text("HOLT_CONTEXT");
    const char *name = c->context ? c->context : env;
    const json_t *one;

    if (contexts_read(&all, e) < 0)
        return -1;
    if (!name)
        name = args_str(all, "current");
    if (!name)
        return 0;
    one = json_object_get(json_object_get(all, "contexts"), name);
    if (!one) {
        (void)err_set(e, ERR_NOT_FOUND, 0, "there is no context '%s'", name);
        (void)err_object(e, "context", name);
        return err_hint(e, "`holt context ls` lists them; `holt context add %.40s URL` makes it",
                        name);
    }
    t->server = member_text(one, "server");
    t->token = member_text(one, "token");
    t->cacert = member_text(one, "cacert");
    t->chosen = "context";
    return 0;
}

static void replace(char **at, char *with)
{
    if (!with)
        return;
    mem_free(*at);
    *at = with;
}

int target_choose(const struct cli *c, struct target *ret, struct err *e)
{
    AUTO(target_done) struct target t = {0};

    if (c->server) {
        t.server = xstrdup(c->server);
        t.chosen = "--server";
    } else if (!c->context && (t.server = env_text("HOLT_SERVER"))) {
        t.chosen = "HOLT_SERVER";
    } else if (from_context(c, &t, e) < 0) {
        return -1;
    }
    if (!t.server) {
        t.server = xstrdup(CONTEXT_SERVER_DEFAULT);
        t.chosen = "default";
    }
    replace(&t.token, env_text("HOLT_TOKEN"));
    if (!t.token && server_is_local(t.server))
        t.token = local_token();
    replace(&t.cacert, env_text("HOLT_CACERT"));
    replace(&t.cacert, c->cacert ? xstrdup(c->cacert) : NULL);
    *ret = t;
    t = (struct target){0};
    return 0;
}

void target_done(struct target *t)
{
    mem_free(t->server);
    if (t->token)
        mem_wipe(t->token, strlen(t->token));
    mem_free(t->token);
    mem_free(t->cacert);
    *t = (struct target){0};
}
