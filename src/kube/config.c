/* config: reads kubeconfig files and the service account of a pod. */
#include "kube/config.h"

#include "base/enc.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/starter.h"
#include "proto/yaml.h"

#include <errno.h>
#include <stdlib.h>

#define FILE_BYTES_MAX (1 << 20)
#define FILES_MAX 16
#define ACCOUNT "/var/run/secrets/kubernetes.io/serviceaccount"

struct source { /* one file, parsed */
    struct yaml doc;
    char *path;
};
struct sources {
    struct source v[FILES_MAX];
    size_t n;
};
struct entry { /* what a name stands for, and the file that says so */
    json_t *body;
    const char *path;
};

static void sources_done_p(struct sources *s)
{
    for (size_t i = 0; i < s->n; i++) {
        yaml_done(&s->v[i].doc);
        mem_free(s->v[i].path);
    }
}

/* ---- files ---- */

static int add_source(struct sources *s, struct str path, struct err *e)
{
    AUTO(buf_wipe) struct buf text = {0};
    struct source *to = &s->v[s->n];
    int r;

    if (s->n == FILES_MAX)
        return err_set(e, ERR_INVALID, 0, "more than %d kubeconfig files", FILES_MAX);
    to->path = str_dup(path);
    s->n++;
    r = starter_read(to->path, FILE_BYTES_MAX, &text);
    if (r == -ENOENT) { /* kubectl's rule: a missing one among several is skipped */
        s->n--;
        mem_free(to->path);
        return 0;
    }
    if (r < 0)
        return err_set(e, err_code_from_errno(-r), -r, "read the kubeconfig '%s'", to->path);
    if (yaml_read(buf_str(&text), &to->doc, e) < 0)
        return err_wrap(e, "read the kubeconfig '%s'", to->path);
    return 0;
}

static int read_sources(const char *files, struct sources *s, struct err *e)
{
    struct str rest = str_of(files);

    while (rest.n > 0) {
        struct str path = str_cut(rest, ':', &rest);

        if (path.n > 0 && add_source(s, path, e) < 0)
            return -1;
    }
    if (s->n > 0)
        return 0;
    (void)err_set(e, ERR_NOT_FOUND, 0, "there is no kubeconfig '%s'", files);
    return err_hint(e, "name a file that exists, such as ~/.kube/config");
}

/* ---- entries ---- */

static const char *text_of(const json_t *o, const char *key)
{
    const char *s = json_string_value(json_object_get(o, key));

    return s && s[0] ? s : NULL;
}

static bool find_entry(const struct sources *s, const char *list, const char *kind,
                       const char *name, struct entry *ret)
{
    for (size_t i = 0; i < s->n; i++) {
        json_t *item;
        size_t at;

        json_array_foreach(json_object_get(s->v[i].doc.root, list), at, item)
        {
            const char *own = text_of(item, "name");

            if (!own || strcmp(own, name) != 0)
                continue;
            *ret = (struct entry){json_object_get(item, kind), s->v[i].path};
            return json_is_object(ret->body);
        }
    }
    return false;
}

static int need_entry(const struct sources *s, const char *list, const char *kind, const char *name,
                      struct entry *ret, struct err *e)
{
    if (!name)
        return err_set(e, ERR_INVALID, 0, "the kubeconfig '%s' names no %s", s->v[0].path, kind);
    if (!find_entry(s, list, kind, name, ret))
        return err_set(e, ERR_INVALID, 0, "the kubeconfig '%s' has no %s '%.80s'", s->v[0].path,
                       kind, name);
    return 0;
}

/* Relative paths count from the file's own folder. */
static char *path_in(const struct entry *at, const char *path)
{
    const char *last = strrchr(at->path, '/');

    if (path[0] == '/' || !last)
        return xstrdup(path);
    return xasprintf("%.*s/%s", (int)(last - at->path), at->path, path);
}

/* NAME-data, base64, wins over the path in NAME. */
static int read_pem(const struct entry *from, const char *name, struct buf *to, struct err *e)
{
    AUTO(mem_free) char *inner = xasprintf("%s-data", name);
    AUTO(mem_free) char *path = NULL;
    const char *data = text_of(from->body, inner), *file = text_of(from->body, name);
    int r = 0;

    if (data && dec_base64(to, str_of(data)) < 0)
        return err_set(e, ERR_INVALID, 0, "the kubeconfig '%s': %s is not base64", from->path,
                       inner);
    if (data || !file)
        return 0;
    path = path_in(from, file);
    r = starter_read(path, FILE_BYTES_MAX, to);
    if (r < 0)
        return err_set(e, err_code_from_errno(-r), -r, "read '%s', the %s of '%s'", path, name,
                       from->path);
    return 0;
}

static char *dup_text(const json_t *o, const char *key)
{
    const char *s = text_of(o, key);

    return s ? xstrdup(s) : NULL;
}

static int take_cluster(const struct entry *from, struct kube_config *c, struct err *e)
{
    if (text_of(from->body, "proxy-url"))
        return err_set(e, ERR_UNSUPPORTED, 0, "the kubeconfig '%s' has a proxy-url", from->path);
    c->server = dup_text(from->body, "server");
    if (!c->server)
        return err_set(e, ERR_INVALID, 0, "the kubeconfig '%s': its cluster has no server",
                       from->path);
    c->tls_name = dup_text(from->body, "tls-server-name");
    c->unverified = json_is_true(json_object_get(from->body, "insecure-skip-tls-verify"));
    return read_pem(from, "certificate-authority", &c->ca, e);
}

/* A credential plugin is a program, and holtd runs none. */
static int refuse_plugin(const struct entry *from, struct err *e)
{
    const char *command = text_of(json_object_get(from->body, "exec"), "command");

    if (!command && !json_object_get(from->body, "auth-provider"))
        return 0;
    (void)err_set(e, ERR_UNSUPPORTED, 0, "the kubeconfig '%s' gets its credentials from %s%.80s",
                  from->path, command ? "the program " : "an auth-provider",
                  command ? command : "");
    return err_hint(e, "holt runs no credential programs: use a token, a tokenFile or a client "
                       "certificate of a service account");
}

static int take_user(const struct entry *from, struct kube_config *c, struct err *e)
{
    const char *file = text_of(from->body, "tokenFile");

    if (refuse_plugin(from, e) < 0)
        return -1;
    c->token = dup_text(from->body, "token");
    c->token_file = file && !c->token ? path_in(from, file) : NULL;
    c->user = dup_text(from->body, "username");
    c->password = dup_text(from->body, "password");
    c->as = dup_text(from->body, "as");
    if (json_object_get(from->body, "as-groups") || json_object_get(from->body, "as-user-extra"))
        return err_set(e, ERR_UNSUPPORTED, 0, "the kubeconfig '%s' impersonates groups",
                       from->path);
    if (read_pem(from, "client-certificate", &c->cert, e) < 0 ||
        read_pem(from, "client-key", &c->key, e) < 0)
        return -1;
    if ((buf_len(&c->cert) > 0) != (buf_len(&c->key) > 0))
        return err_set(e, ERR_INVALID, 0,
                       "the kubeconfig '%s': a client certificate and its key belong together",
                       from->path);
    return 0;
}

static const char *current_context(const struct sources *s)
{
    const char *name = NULL;

    for (size_t i = 0; i < s->n && !name; i++)
        name = text_of(s->v[i].doc.root, "current-context");
    return name;
}

int kube_config_read(const char *files, const char *context, struct kube_config *ret, struct err *e)
{
    AUTO(sources_done) struct sources s = {0};
    AUTO(kube_config_done) struct kube_config c = {0};
    struct entry in, cluster, user;
    const char *name;

    if (read_sources(files, &s, e) < 0)
        return -1;
    name = context && context[0] ? context : current_context(&s);
    if (need_entry(&s, "contexts", "context", name, &in, e) < 0 ||
        need_entry(&s, "clusters", "cluster", text_of(in.body, "cluster"), &cluster, e) < 0 ||
        need_entry(&s, "users", "user", text_of(in.body, "user"), &user, e) < 0 ||
        take_cluster(&cluster, &c, e) < 0 || take_user(&user, &c, e) < 0)
        return -1;
    c.space = dup_text(in.body, "namespace");
    if (!c.space)
        c.space = xstrdup("default");
    *ret = c;
    c = (struct kube_config){0};
    return 0;
}

/* ---- in a pod ---- */

static int read_account(const char *root, const char *name, struct buf *to, struct err *e)
{
    AUTO(mem_free) char *path = xasprintf("%s" ACCOUNT "/%s", root, name);
    int r = starter_read(path, FILE_BYTES_MAX, to);

    return r < 0 ? err_set(e, err_code_from_errno(-r), -r, "read '%s'", path) : 0;
}

int kube_config_in_cluster(const char *root, struct kube_config *ret, struct err *e)
{
    AUTO(kube_config_done) struct kube_config c = {0};
    AUTO(buf_done) struct buf space = {0};
    const char *host = getenv("KUBERNETES_SERVICE_HOST"),
               *port = getenv("KUBERNETES_SERVICE_PORT_HTTPS");

    if (!port)
        port = getenv("KUBERNETES_SERVICE_PORT");
    if (!host || !port) {
        (void)err_set(e, ERR_UNSUPPORTED, 0, "this process does not run in a pod");
        return err_hint(e, "use a kubeconfig file instead");
    }
    c.server = xasprintf(strchr(host, ':') ? "https://[%s]:%s" : "https://%s:%s", host, port);
    if (read_account(root, "ca.crt", &c.ca, e) < 0 ||
        read_account(root, "namespace", &space, e) < 0)
        return err_wrap(e, "use the pod's service account");
    c.space = str_dup(str_trim(buf_str(&space)));
    c.token_file = xasprintf("%s" ACCOUNT "/token", root);
    *ret = c;
    c = (struct kube_config){0};
    return 0;
}

static void wipe_text(char *s)
{
    if (s)
        mem_wipe(s, strlen(s));
    mem_free(s);
}

void kube_config_done(struct kube_config *c)
{
    mem_free(c->server);
    mem_free(c->space);
    mem_free(c->token_file);
    mem_free(c->user);
    mem_free(c->as);
    mem_free(c->tls_name);
    wipe_text(c->token);
    wipe_text(c->password);
    buf_done(&c->ca);
    buf_done(&c->cert);
    buf_wipe(&c->key);
    *c = (struct kube_config){0};
}
