/* registry: fetches manifests and blobs from an image registry. */
#include "net/registry.h"

#include "base/buf.h"
#include "base/enc.h"
#include "base/mem.h"
#include "net/client.h"
#include "proto/digest.h"

#define REDIRECTS_MAX 5
#define TOKEN_REPLY_MAX (64 * 1024)
#define TARGET_MAX 8192

/* The purpose of the request in progress:
 *
 *   GET object ──401──▶ GET token ──200──▶ GET object again, with it
 *        │ 30x: GET elsewhere, without it
 *        ▼ 200: body to the sink, hashed */
enum step { STEP_OBJECT, STEP_TOKEN };

struct registry {
    struct registry_config c;
    struct oci_ref ref;
    struct client_url base;
    struct buf token; /* sent only to base's host */
    bool asked_token; /* a token was requested in this get */

    /* the get */
    struct client *client;
    struct registry_want want;
    char *name;
    const struct registry_sink *to;
    void *arg;
    enum step step;
    int redirects;
    char *next;       /* the URL to request when this reply has ended */
    struct buf small; /* a token's or an error's body */
    struct sha256_state *hash;
    int64_t came;
    int status;
    struct err err;
    bool closing, passing; /* the body goes to the sink */
};

static int request(struct registry *r, const struct client_url *url, const char *target,
                   struct err *e);

/* --- addresses --- */

static bool is_loopback(const char *host)
{
    return strcmp(host, "localhost") == 0 || strncmp(host, "127.", 4) == 0 ||
           strcmp(host, "::1") == 0;
}

/* A name that starts with "127." would be resolved: accept only digits and dots. */
static bool is_safe_clear(const struct registry *r, const struct client_url *u)
{
    if (u->tls || r->c.insecure)
        return true;
    if (!u->host || !is_loopback(u->host))
        return false;
    return u->host[0] != '1' || strspn(u->host, "0123456789.") == strlen(u->host);
}

/* "https://host/path?query" into its server and its target. */
static int split_url(const struct registry *r, const char *url, struct client_url *server,
                     char **ret_target, struct err *e)
{
    const char *scheme = strstr(url, "://");
    size_t head = scheme ? (size_t)(scheme - url) + 3 : 0;
    size_t end = head + strcspn(url + head, "/?#");
    AUTO(mem_free) char *origin = xstrndup(url, end);
    size_t path = strcspn(url + end, "#");

    if (!scheme || (strncmp(url, "http://", 7) != 0 && strncmp(url, "https://", 8) != 0))
        return err_set(e, ERR_INVALID, 0, "'%.100s' is not a web address", url);
    if (client_url_parse(origin, server, e) < 0)
        return -1;
    if (!is_safe_clear(r, server)) {
        err_set(e, ERR_FORBIDDEN, 0, "'%.100s' is not encrypted", origin);
        client_url_done(server);
        return err_hint(e, "use a registry with https, or set image_insecure for clear text");
    }
    /* A remote registry must not make us send requests to services of this machine. */
    if (server->host && is_loopback(server->host) && !is_loopback(r->base.host)) {
        err_set(e, ERR_FORBIDDEN, 0, "the registry '%s' redirects to this machine: '%.100s'",
                r->base.authority, origin);
        client_url_done(server);
        return -1;
    }
    *ret_target = xasprintf("%s%.*s", url[end] == '/' ? "" : "/", (int)path, url + end);
    return 0;
}

static bool same_server(const struct client_url *a, const struct client_url *b)
{
    return a->tls == b->tls && a->port == b->port && a->host && b->host &&
           str_case_eq(str_of(a->host), str_of(b->host));
}

/* --- the end of a get --- */

static void finish(struct registry *r)
{
    const struct registry_sink *to = r->to;
    struct err e = r->err;
    char digest[OCI_DIGEST_SIZE] = "sha256:";
    unsigned char bytes[SHA256_SIZE];

    sha256_end(r->hash, bytes);
    enc_hex(bytes, sizeof bytes, digest + strlen("sha256:"));
    if (e.code == ERR_NONE && str_starts(str_of(r->name), STR("sha256:")) &&
        strcmp(r->name, digest) != 0) {
        err_set(&e, ERR_INVALID, 0, "%.19s… was received with another digest: %.19s…", r->name,
                digest);
        (void)err_hint(&e,
                       "try again; if it happens again, the registry's copy is damaged or forged");
    }
    r->to = NULL;
    to->end(r->arg, digest, &e);
}

static void fail(struct registry *r, const struct err *e)
{
    if (r->err.code == ERR_NONE)
        r->err = *e;
    if (r->client)
        client_cancel(r->client);
}

/* --- replies --- */

static void not_found(struct registry *r, int status, struct err *e)
{
    err_set(e, status == 404 ? ERR_NOT_FOUND : err_code_from_http(status), 0,
            "the registry '%s' replied with status %d for '%s' of '%s'", r->base.authority, status,
            r->name, r->ref.repository);
    if (status == 401 || status == 403)
        (void)err_hint(e, "it may be private or may not exist; check the name and the tag");
}

static void take_challenge(struct registry *r, const struct http_header *h, size_t count,
                           struct err *e)
{
    struct oci_challenge c;
    AUTO(buf_done) struct buf url = {0};
    const struct http_header *a;
    size_t at = 0;
    int found = 0;

    while (found == 0 && (a = http_find(h, count, "www-authenticate", &at)))
        found = oci_challenge_parse(a->value, &c, e);
    if (found < 0)
        return;
    if (found == 0 || r->asked_token) {
        not_found(r, 401, e);
        return;
    }
    buf_printf(&url, "%s%cservice=", c.realm, strchr(c.realm, '?') ? '&' : '?');
    enc_percent(&url, str_of(c.service));
    buf_add_c(&url, "&scope=");
    if (c.scope[0]) {
        enc_percent(&url, str_of(c.scope));
    } else {
        AUTO(mem_free) char *scope = xasprintf("repository:%s:pull", r->ref.repository);

        enc_percent(&url, str_of(scope));
    }
    r->asked_token = true;
    r->next = buf_steal(&url);
    r->step = STEP_TOKEN;
}

static void take_redirect(struct registry *r, const struct http_header *h, size_t count,
                          struct err *e)
{
    const struct http_header *to = http_get(h, count, "location");

    if (!to || to->value.n == 0 || to->value.n > TARGET_MAX ||
        memchr(to->value.p, '\0', to->value.n)) {
        err_set(e, ERR_INVALID, 0, "the registry '%s' redirects without an address",
                r->base.authority);
        return;
    }
    if (++r->redirects > REDIRECTS_MAX) {
        err_set(e, ERR_INVALID, 0, "the registry '%s' redirects too often", r->base.authority);
        return;
    }
    if (to->value.p[0] == '/' && (to->value.n < 2 || to->value.p[1] != '/'))
        r->next = xasprintf("%s://%s" STR_FMT, r->base.tls ? "https" : "http", r->base.authority,
                            STR_ARG(to->value));
    else
        r->next = str_dup(to->value);
}

static void take_object(struct registry *r, const struct http_header *h, size_t count,
                        struct err *e)
{
    const struct http_header *length = http_get(h, count, "content-length");
    uint64_t n;

    if (length && str_parse_u64(length->value, &n) == 0 && n > (uint64_t)r->want.size_max) {
        err_set(e, ERR_TOO_LARGE, 0, "'%s' has %llu bytes where at most %lld are expected", r->name,
                (unsigned long long)n, (long long)r->want.size_max);
        return;
    }
    r->passing = true;
}

static void on_head(struct client *c, int status, const struct http_header *h, size_t count)
{
    struct registry *r = client_arg(c);
    struct err e = {0};

    r->status = status;
    if (r->closing || r->err.code != ERR_NONE)
        return;
    if (r->step == STEP_TOKEN) {
        if (status != 200)
            err_set(&e, err_code_from_http(status), 0, "the token server replied with status %d",
                    status);
    } else if (status == 200) {
        take_object(r, h, count, &e);
    } else if (status == 401) {
        take_challenge(r, h, count, &e);
    } else if (status == 301 || status == 302 || status == 303 || status == 307 || status == 308) {
        take_redirect(r, h, count, &e);
    } else {
        not_found(r, status, &e);
    }
    if (e.code != ERR_NONE)
        fail(r, &e);
}

static void on_body(struct client *c, struct str part)
{
    struct registry *r = client_arg(c);
    struct err e = {0};

    if (r->closing || r->err.code != ERR_NONE || !r->passing) {
        if (r->step == STEP_TOKEN && buf_len(&r->small) + part.n <= TOKEN_REPLY_MAX)
            buf_add_str(&r->small, part);
        client_consume(c, part.n);
        return;
    }
    r->came += (int64_t)part.n;
    if (r->came > r->want.size_max) {
        err_set(&e, ERR_TOO_LARGE, 0, "'%s' is longer than the %lld bytes expected", r->name,
                (long long)r->want.size_max);
        fail(r, &e);
        return;
    }
    sha256_add(r->hash, part.p, part.n);
    r->to->data(r->arg, part);
}

static int ask_object(struct registry *r, struct err *e);

static int go_on(struct registry *r, struct err *e)
{
    AUTO(mem_free) char *url = TAKE(r->next);
    AUTO(mem_free) char *target = NULL;
    AUTO(client_url_done) struct client_url server = {0};

    if (!url && r->step == STEP_TOKEN) { /* the token's reply has arrived */
        buf_clear(&r->token);
        if (oci_token_read(buf_str(&r->small), &r->token, e) < 0)
            return -1;
        r->step = STEP_OBJECT;
        return ask_object(r, e);
    }
    if (split_url(r, url, &server, &target, e) < 0)
        return -1;
    return request(r, &server, target, e);
}

static void on_client_closed(struct client *c, const struct err *e)
{
    struct registry *r = client_arg(c);

    r->client = NULL;
    if (r->closing) {
        registry_close(r);
        return;
    }
    if (r->err.code == ERR_NONE && e->code != ERR_NONE) {
        r->err = *e;
        err_wrap(&r->err, "the registry '%s'", r->base.authority);
    }
    if (r->err.code == ERR_NONE && (r->next || r->step == STEP_TOKEN) && go_on(r, &r->err) == 0)
        return;
    finish(r);
}

static const struct client_ops client_ops = {
    .head = on_head, .body = on_body, .closed = on_client_closed};

/* --- requests --- */

static int request(struct registry *r, const struct client_url *url, const char *target,
                   struct err *e)
{
    AUTO(mem_free)
    char *bearer = buf_len(&r->token) > 0 ? xasprintf("Bearer %s", buf_cstr(&r->token)) : NULL;
    struct http_header h[3] = {{STR("user-agent"), STR("holt")}};
    size_t n = 1;

    if (r->step == STEP_OBJECT)
        h[n++] = (struct http_header){
            STR("accept"), r->want.manifest
                               ? STR("application/vnd.oci.image.index.v1+json, "
                                     "application/vnd.oci.image.manifest.v1+json, "
                                     "application/vnd.docker.distribution.manifest.list.v2+json, "
                                     "application/vnd.docker.distribution.manifest.v2+json")
                               : STR("*/*")};
    /* The token is the registry's: do not send it to another host (storage, token server). */
    if (bearer && r->step == STEP_OBJECT && same_server(url, &r->base))
        h[n++] = (struct http_header){STR("authorization"), str_of(bearer)};
    buf_clear(&r->small);
    r->passing = false;
    return client_start(&(struct client_request){.loop = r->c.loop,
                                                 .url = url,
                                                 .tls = r->c.tls,
                                                 .method = "GET",
                                                 .target = target,
                                                 .headers = h,
                                                 .header_count = n,
                                                 .connect_ms = 20000,
                                                 .head_ms = 60000,
                                                 .idle_ms = r->c.idle_ms ? r->c.idle_ms : 60000,
                                                 .ops = &client_ops,
                                                 .arg = r},
                        &r->client, e);
}

static int ask_object(struct registry *r, struct err *e)
{
    AUTO(mem_free)
    char *target = xasprintf("/v2/%s/%s/%s", r->ref.repository,
                             r->want.manifest ? "manifests" : "blobs", r->name);

    r->redirects = 0;
    return request(r, &r->base, target, e);
}

int registry_get(struct registry *r, const struct registry_want *w, const struct registry_sink *to,
                 void *arg, struct err *e)
{
    assert(!r->client && !r->to);
    mem_free(r->name);
    r->name = xstrdup(w->name);
    r->want = *w;
    r->err = (struct err){0};
    r->asked_token = false;
    r->step = STEP_OBJECT;
    r->came = 0;
    sha256_free(r->hash);
    r->hash = sha256_new();
    if (ask_object(r, e) < 0)
        return err_wrap(e, "ask the registry '%s'", r->base.authority);
    r->to = to;
    r->arg = arg;
    return 0;
}

void registry_consume(struct registry *r, size_t n)
{
    if (r->client)
        client_consume(r->client, n);
}

/* --- open and close --- */

int registry_open(const struct registry_config *c, const struct oci_ref *ref, struct registry **ret,
                  struct err *e)
{
    struct registry *r = xzalloc(sizeof *r);
    const char *host = ref->host[0] ? ref->host : c->fallback;
    AUTO(mem_free) char *plain = NULL;
    AUTO(mem_free) char *url = NULL;

    r->c = *c;
    r->ref = *ref;
    /* The one registry whose API host differs from the host in image names. */
    if (strcmp(host, "docker.io") == 0) {
        host = "registry-1.docker.io";
        if (!strchr(ref->repository, '/'))
            (void)snprintf(r->ref.repository, sizeof r->ref.repository, "library/%s",
                           ref->repository);
    }
    plain = xstrndup(host, strcspn(host, ":"));
    url = xasprintf("%s://%s", is_loopback(plain) || c->insecure ? "http" : "https", host);
    if (client_url_parse(url, &r->base, e) < 0 || !is_safe_clear(r, &r->base)) {
        if (r->base.host)
            err_set(e, ERR_FORBIDDEN, 0, "the registry '%s' is not encrypted", host);
        registry_close(r);
        return -1;
    }
    *ret = r;
    return 0;
}

void registry_close(struct registry *r)
{
    if (!r)
        return;
    r->closing = true;
    r->to = NULL;
    if (r->client) { /* freed when it has closed */
        client_cancel(r->client);
        return;
    }
    client_url_done(&r->base);
    if (buf_len(&r->token) > 0)
        mem_wipe(buf_data(&r->token), buf_len(&r->token));
    buf_done(&r->token);
    buf_done(&r->small);
    sha256_free(r->hash);
    mem_free(r->next);
    mem_free(r->name);
    mem_free(r);
}
