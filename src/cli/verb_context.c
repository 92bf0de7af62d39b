/* verb_context: context ls, add, use, rm. */
#include "cli/verbs.h"

#include "base/fd.h"
#include "base/mem.h"
#include "cli/context.h"
#include "net/client.h"
#include "proto/json.h"

#include <unistd.h>

static int no_such(const char *name, struct err *e)
{
    (void)err_set(e, ERR_NOT_FOUND, 0, "there is no context '%s'", name);
    (void)err_object(e, "context", name);
    return err_hint(e, "`holt context ls` lists them");
}

int context_ls_run(struct cli *c, const struct cmd *cmd, const json_t *args, struct err *e)
{
    static const struct print_spec spec = {.columns = "current,name,server,token",
                                           .items = "contexts"};
    AUTO(json_decref) json_t *all = NULL, *out = json_object();
    json_t *list = json_array(), *one;
    const char *name, *current;

    (void)cmd;
    (void)args;
    json_object_set_new(out, "contexts", list);
    if (contexts_read(&all, e) < 0)
        return -1;
    current = args_str(all, "current");
    json_object_foreach(json_object_get(all, "contexts"), name, one)
    {
        json_array_append_new(list, json_pack("{s:s,s:O,s:s,s:b}", "name", name, "server",
                                              json_object_get(one, "server"), "token",
                                              args_str(one, "token") ? "kept" : "none", "current",
                                              current && strcmp(current, name) == 0));
    }
    return cli_print(c, out, &spec, e);
}

/* Reads the token from a file or standard input: every user can see argv with ps. */
static int read_token(const json_t *args, char **ret, struct err *e)
{
    const char *path = args_str(args, "token_file");
    AUTO(buf_done) struct buf text = {0};
    const char *env = getenv("HOLT_TOKEN");
    struct str rest, token;
    int r;

    if (!path) {
        *ret = env && env[0] ? xstrdup(env) : NULL;
        return 0;
    }
    r = strcmp(path, "-") == 0 ? fd_read_all(STDIN_FILENO, 4096, &text)
                               : file_read(path, 4096, &text);
    if (r < 0)
        return err_set(e, err_code_from_errno(-r), -r, "read the token from '%s'", path);
    token = str_trim(str_cut(buf_str(&text), '\n', &rest));
    if (token.n == 0)
        return err_set(e, ERR_INVALID, 0, "'%s' has no token", path);
    *ret = str_dup(token);
    return 0;
}

static bool name_is_good(const char *name)
{
    size_t n = strlen(name);

    return n > 0 && n <= 64 && name[0] != '-' && str_is_utf8(str_of(name)) &&
           strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._@-") == n;
}

static json_t *make_entry(const json_t *args, const char *token)
{
    json_t *one = json_pack("{s:s}", "server", args_str(args, "url"));

    if (token)
        json_object_set_new(one, "token", json_string(token));
    if (args_str(args, "cacert_file"))
        json_object_set_new(one, "cacert", json_string(args_str(args, "cacert_file")));
    return one;
}

int context_add_run(struct cli *c, const struct cmd *cmd, const json_t *args, struct err *e)
{
    AUTO(json_decref) json_t *all = NULL;
    AUTO(mem_free) char *token = NULL;
    AUTO(client_url_done) struct client_url url = {0};
    const char *name = args_str(args, "name"), *server = args_str(args, "url");
    json_t *contexts;

    (void)c;
    (void)cmd;
    if (!name_is_good(name))
        return err_set(e, ERR_INVALID, 0,
                       "'%.64s' is not a context name: letters, digits, '.', '_', '@' and '-'",
                       name);
    if (client_url_parse(server, &url, e) < 0 || contexts_read(&all, e) < 0)
        return -1;
    contexts = json_object_get(all, "contexts");
    if (json_object_get(contexts, name) && !args_bool(args, "force")) {
        (void)err_set(e, ERR_CONFLICT, 0, "there is already a context '%s'", name);
        return err_hint(e, "--force replaces it");
    }
    if (read_token(args, &token, e) < 0)
        return -1;
    json_object_set_new(contexts, name, make_entry(args, token));
    if (args_bool(args, "use") || json_object_size(contexts) == 1)
        json_object_set_new(all, "current", json_string(name));
    if (contexts_write(all, e) < 0)
        return -1;
    if (token && !url.tls && !server_is_local(server))
        cli_note("warning: the token will go to %s unencrypted; use https://", server);
    return 0;
}

int context_use_run(struct cli *c, const struct cmd *cmd, const json_t *args, struct err *e)
{
    AUTO(json_decref) json_t *all = NULL;
    const char *name = args_str(args, "name");

    (void)c;
    (void)cmd;
    if (contexts_read(&all, e) < 0)
        return -1;
    if (!json_object_get(json_object_get(all, "contexts"), name))
        return no_such(name, e);
    json_object_set_new(all, "current", json_string(name));
    return contexts_write(all, e);
}

int context_rm_run(struct cli *c, const struct cmd *cmd, const json_t *args, struct err *e)
{
    AUTO(json_decref) json_t *all = NULL;
    const char *name = args_str(args, "name"), *current;

    (void)c;
    (void)cmd;
    if (contexts_read(&all, e) < 0)
        return -1;
    if (json_object_del(json_object_get(all, "contexts"), name) < 0)
        return no_such(name, e);
    current = args_str(all, "current");
    if (current && strcmp(current, name) == 0)
        json_object_set_new(all, "current", json_null());
    return contexts_write(all, e);
}
