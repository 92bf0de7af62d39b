/* publish: git commit and push, in a throw-away sandbox. */
#include "core/playbook/publish.h"

#include "base/buf.h"
#include "base/mem.h"
#include "core/exec/tool.h"
#include "core/network/secret.h"
#include "proto/json.h"

#include <arpa/inet.h>

#define PUBLISH_MS (10LL * 60 * 1000)
#define OUTPUT_MAX (64 * 1024)
#define AT_ONCE 4
#define FILE_CONTENT "/tmp/holt-file"
#define FILE_MESSAGE "/tmp/holt-message"

struct publication {
    struct buf content, message;
    publish_done done;
    void *arg;
};
static size_t running;

/* Texts come by the environment and files: nothing of a request is part of the script. */
static const char script[] =
    "set -eu\n"
    "umask 022\n"
    "export HOME=/tmp GIT_TERMINAL_PROMPT=0 GIT_CONFIG_NOSYSTEM=1\n"
    "mkdir /tmp/work && cd /tmp/work\n"
    "git init -q .\n"
    "git config credential.helper '!f() { [ -z \"${SECRET:-}\" ] || printf "
    "\"username=%s\\npassword=%s\\n\" \"$GIT_USER\" \"$SECRET\"; }; f'\n"
    "git remote add origin \"$URL\"\n"
    "heads=$(git ls-remote --heads origin \"refs/heads/$BRANCH\" \"refs/heads/$BASE\")\n"
    "from=\n"
    "case \"$heads\" in\n"
    "*\"\trefs/heads/$BRANCH\"*) from=$BRANCH ;;\n"
    "*\"\trefs/heads/$BASE\"*) from=$BASE ;;\n"
    "'') git ls-remote --heads origin | grep -q . && { echo \"the remote has no branch '$BASE'\" "
    ">&2; exit 3; } ;;\n"
    "esac\n"
    "if [ -n \"$from\" ]; then\n"
    "  git fetch -q --depth 1 origin \"refs/heads/$from:refs/remotes/origin/$from\"\n"
    "  git checkout -q -b \"$BRANCH\" \"refs/remotes/origin/$from\"\n"
    "else\n"
    "  git checkout -q --orphan \"$BRANCH\"\n"
    "fi\n"
    /* what the repository has there may be a link to somewhere else */
    "git rm -q --cached --ignore-unmatch -- \"$FILE\"\n"
    "blob=$(git hash-object -w " FILE_CONTENT ")\n"
    "git update-index --add --cacheinfo \"100644,$blob,$FILE\"\n"
    "if [ -n \"$from\" ] && git diff --cached --quiet HEAD; then\n"
    "  echo \"same $(git rev-parse HEAD)\"\n"
    "  [ \"$from\" = \"$BRANCH\" ] || git push -q origin \"HEAD:refs/heads/$BRANCH\"\n"
    "  exit 0\n"
    "fi\n"
    "git commit -q -F " FILE_MESSAGE "\n"
    "git push -q origin \"HEAD:refs/heads/$BRANCH\"\n"
    "echo \"made $(git rev-parse HEAD)\"\n";

static void publication_free(struct publication *p)
{
    running--;
    buf_done(&p->content);
    buf_done(&p->message);
    mem_free(p);
}

static void tool_ended(void *arg, const struct tool_result *r, const struct err *e)
{
    struct publication *p = arg;
    struct publish_result result = {0};
    struct err why = *e;
    struct str said = str_trim(r->out), commit, word = str_cut(said, ' ', &commit);

    while (commit.n > 0 && commit.p[commit.n - 1] == '\n')
        commit.n--;
    result = (struct publish_result){.commit = commit, .changed = str_eq_c(word, "made")};
    said = str_trim(r->err);
    if (why.code == ERR_NONE && r->failure.n > 0)
        err_set(&why, ERR_UNAVAILABLE, 0, STR_FMT, STR_ARG(r->failure));
    else if (why.code == ERR_NONE && r->timed_out)
        err_set(&why, ERR_TIMEOUT, 0, "it took too long");
    else if (why.code == ERR_NONE && (r->exit_code != 0 || commit.n == 0))
        err_set(&why, ERR_UNAVAILABLE, 0, "git ended with status %d: " STR_FMT, r->exit_code,
                (int)size_min(said.n, 180), said.p ? said.p : "");
    if (why.code != ERR_NONE)
        err_wrap(&why, "publish");
    p->done(p->arg, &result, &why);
    publication_free(p);
}

/* --- the remote --- */

/* The host of "https://user@host:port/path", in the arena of nobody: parts of url. */
static int split_url(struct str url, struct str *host, int64_t *port, struct err *e)
{
    bool tls = str_starts(url, STR("https://"));
    struct str rest, at;

    if (!tls && !str_starts(url, STR("http://"))) {
        err_set(e, ERR_INVALID, 0, "a remote is 'https://HOST/…' or 'http://HOST/…'");
        return err_hint(e, "set publish_url, and publish_secret for its password");
    }
    *host = str_cut(str_skip(url, tls ? 8 : 7), '/', &rest);
    if (str_index(*host, '@') >= 0)
        return err_set(e, ERR_INVALID, 0, "a remote has no user in its address: publish_user");
    *host = str_cut(*host, ':', &at);
    *port = tls ? 443 : 80;
    if (at.n > 0 && (str_parse_i64(at, port) < 0 || *port < 1 || *port > 65535))
        return err_set(e, ERR_INVALID, 0, "the port of the remote is none");
    return host->n > 0 ? 0 : err_set(e, ERR_INVALID, 0, "the remote has no host");
}

int publish_check_url(struct str url, struct err *e)
{
    struct str host;
    int64_t port;

    return url.n > 0 ? split_url(url, &host, &port, e) : 0;
}

static void put_network(struct buf *to, struct str host, int64_t port, bool tls)
{
    AUTO(mem_free) char *text = str_dup(host);
    unsigned char bytes[4];
    bool address = inet_pton(AF_INET, text, bytes) == 1;
    struct jw w = {.to = to};

    jw_object(&w);
    jw_kc(&w, "mode", "allowlist");
    jw_key(&w, "allow");
    jw_array(&w);
    jw_object(&w);
    jw_kstr(&w, address ? "cidr" : "host", host);
    jw_key(&w, "ports");
    jw_array(&w);
    jw_int(&w, port);
    jw_array_end(&w);
    jw_kc(&w, "scheme", tls ? "https" : "http");
    jw_object_end(&w);
    jw_array_end(&w);
    jw_object_end(&w);
}

/* --- interface --- */

int publish(struct sandboxes *l, const struct publish_spec *s, publish_done done, void *arg,
            struct err *e)
{
    const struct str argv[] = {STR("/bin/sh"), STR("-c"), str_of(script)};
    const struct pair env[] = {
        {STR("URL"), s->url},
        {STR("BASE"), s->base},
        {STR("BRANCH"), s->branch},
        {STR("FILE"), s->path},
        {STR("GIT_USER"), s->user},
        {STR("GIT_AUTHOR_NAME"), s->author},
        {STR("GIT_AUTHOR_EMAIL"), s->email},
        {STR("GIT_COMMITTER_NAME"), s->author},
        {STR("GIT_COMMITTER_EMAIL"), s->email},
    };
    const struct secret_use secret = {.name = s->secret, .env = STR("SECRET")};
    AUTO(buf_done) struct buf network = {0};
    struct publication *p;
    struct str host;
    int64_t port;

    if (split_url(s->url, &host, &port, e) < 0)
        return -1;
    if (running >= AT_ONCE) {
        err_set(e, ERR_LIMIT, 0, "%d publications are under way", AT_ONCE);
        return err_limit_fixed(e, AT_ONCE, "try again in a moment");
    }
    put_network(&network, host, port, str_starts(s->url, STR("https://")));
    running++;
    p = xzalloc(sizeof *p);
    *p = (struct publication){.done = done, .arg = arg};
    buf_add_str(&p->content, s->content);
    buf_add_str(&p->message, s->message);
    (void)tool_start(
        l, &(struct tool_spec){
               .name = "publish",
               .argv = argv,
               .argc = ARRAY_LEN(argv),
               .env = env,
               .env_count = ARRAY_LEN(env),
               .files = (const struct tool_file[]){{STR(FILE_CONTENT), buf_str(&p->content), 0600},
                                                   {STR(FILE_MESSAGE), buf_str(&p->message), 0600}},
               .file_count = 2,
               .network = buf_str(&network),
               .secrets = &secret,
               .secret_count = s->secret.n > 0 ? 1 : 0,
               .limits = {.pids = 128, .memory_bytes = 2LL << 30},
               .time_ms = PUBLISH_MS,
               .output_max = OUTPUT_MAX,
               .events = {.done = tool_ended, .arg = p},
           });
    return 0;
}
