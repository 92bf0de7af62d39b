/* verb_fluid: holt fluid and holt virsh-sandbox, the commands of fluid.sh's programs. */
#include "cli/verbs.h"

#include "base/enc.h"
#include "base/mem.h"
#include "cli/dialects/fluid/fluid.h"
#include "cli/request.h"
#include "proto/json.h"

#include <errno.h>
#include <limits.h>
#include <unistd.h>

/* --- its commands as a table --- */

enum kind { FLAG_TEXT, FLAG_NUMBER, FLAG_BOOL };
struct flag {
    const char *name, *field; /* the member of the body; of a GET: of the query */
    enum kind kind;
    const char *preset; /* NULL: none */
};
#define FLAGS(...) ((const struct flag[]){__VA_ARGS__, {NULL}})

struct command {
    const char *name, *usage, *method;
    const char *path; /* with "%s" for its first word, encoded */
    const struct flag *flags;
    const char *rest; /* the member that the other words make, joined */
    bool no_timeout;
};

/* clang-format off */
static const struct command commands[] = {
    {"create", "create --source-vm NAME [--agent-id ID] [--cpu N] [--memory MB] [--ttl SECONDS] [--auto-start=true] [--wait-ip=true]", "POST", "/v1/sandboxes",
     FLAGS({"source-vm", "source_vm_name", FLAG_TEXT}, {"agent-id", "agent_id", FLAG_TEXT, "cli-agent"}, {"name", "vm_name", FLAG_TEXT}, {"cpu", "cpu", FLAG_NUMBER},
           {"memory", "memory_mb", FLAG_NUMBER}, {"ttl", "ttl_seconds", FLAG_NUMBER}, {"auto-start", "auto_start", FLAG_BOOL, "true"}, {"wait-ip", "wait_for_ip", FLAG_BOOL, "true"}), .no_timeout = true},
    {"list", "list [--state STATE]", "GET", "/v1/sandboxes", FLAGS({"state", "state", FLAG_TEXT})},
    {"get", "get ID", "GET", "/v1/sandboxes/%s"},
    {"destroy", "destroy ID", "DELETE", "/v1/sandboxes/%s"},
    {"start", "start ID [--wait-ip]", "POST", "/v1/sandboxes/%s/start", FLAGS({"wait-ip", "wait_for_ip", FLAG_BOOL})},
    {"stop", "stop ID [--force]", "POST", "/v1/sandboxes/%s/stop", FLAGS({"force", "force", FLAG_BOOL})},
    {"ip", "ip ID", "GET", "/v1/sandboxes/%s/ip"},
    {"run", "run ID [--user NAME] [--timeout SECONDS] COMMAND…", "POST", "/v1/sandboxes/%s/run",
     FLAGS({"user", "user", FLAG_TEXT}, {"key", "private_key_path", FLAG_TEXT}, {"timeout", "timeout_sec", FLAG_NUMBER}), .rest = "command", .no_timeout = true},
    {"ssh-inject", "ssh-inject ID --pubkey KEY [--user NAME]", "POST", "/v1/sandboxes/%s/sshkey",
     FLAGS({"pubkey", "public_key", FLAG_TEXT}, {"user", "username", FLAG_TEXT, "root"})},
    {"snapshot", "snapshot ID [--name NAME] [--external]", "POST", "/v1/sandboxes/%s/snapshot", FLAGS({"name", "name", FLAG_TEXT, "snapshot"}, {"external", "external", FLAG_BOOL})},
    {"vms", "vms", "GET", "/v1/vms"},
    {"hosts", "hosts", "GET", "/holt/v1/hosts"},
};
/* clang-format on */

/* --- failures --- */

static void say_error(struct cli *c, struct str text)
{
    AUTO(buf_done) struct buf line = {0};
    struct jw w = {.to = &line};

    jw_object(&w);
    jw_kstr(&w, "error", text);
    jw_object_end(&w);
    (void)fprintf(stderr, "%s\n", buf_cstr(&line));
    c->status = 1;
}

/* 0: *ret has the reply, or NULL; 1: the failure was printed. */
static int ask(struct cli *c, const struct request *rq, json_t **ret)
{
    AUTO(reply_done) struct reply reply = {0};
    struct target target = {0};
    struct err e = {0};
    int r = target_choose(c, &target, &e);

    if (r == 0)
        r = request_run(&target, rq, &reply, &e);
    target_done(&target);
    if (reply.status >= 400) {
        AUTO(json_decref)
        json_t *body = json_loadb(buf_data(&reply.body), buf_len(&reply.body), 0, NULL);
        const json_t *text = json_object_get(body, "error");

        say_error(c, json_is_string(text) ? str_of(json_string_value(text)) : str_of(e.msg));
        return 1;
    }
    if (r == 0 && buf_len(&reply.body) > 0)
        r = reply_json(&reply, ret, &e);
    if (r < 0)
        say_error(c, str_of(e.msg));
    return r < 0;
}

static void show_json(const json_t *v)
{
    char *text = json_dumps(v, JSON_INDENT(2));

    cli_write(str_of(text));
    cli_write(STR("\n"));
    free(text); /* allocated by jansson */
}

/* --- arguments --- */

struct words {
    char **v;
    size_t n, at;
};

static json_t *value_of(const struct flag *f, const char *text)
{
    int64_t n;

    if (f->kind == FLAG_TEXT)
        return json_string(text);
    if (f->kind == FLAG_BOOL)
        return json_boolean(strcmp(text, "false") != 0 && strcmp(text, "0") != 0);
    return str_parse_i64(str_of(text), &n) == 0 ? json_integer(n) : json_string(text);
}

/* Go's flags: -x V, --x V, --x=V; a bool without a value is true.  False: it is none of these. */
static bool take_flag(const struct command *m, struct words *w, json_t *body)
{
    const char *word = w->v[w->at] + strspn(w->v[w->at], "-");
    struct str value, name = str_cut(str_of(word), '=', &value);
    bool has_value = name.n < strlen(word);

    for (const struct flag *f = m->flags; f && f->name; f++) {
        if (!str_eq_c(name, f->name))
            continue;
        w->at++;
        if (has_value)
            json_object_set_new(body, f->field, value_of(f, value.p));
        else if (f->kind == FLAG_BOOL)
            json_object_set_new(body, f->field, json_true());
        else if (w->at < w->n)
            json_object_set_new(body, f->field, value_of(f, w->v[w->at++]));
        return true;
    }
    return false;
}

static void preset_flags(const struct command *m, json_t *body)
{
    for (const struct flag *f = m->flags; f && f->name; f++)
        if (f->preset)
            json_object_set_new(body, f->field, value_of(f, f->preset));
}

/* False: wrong usage. */
static bool read_words(const struct command *m, struct words *w, json_t *body, const char **ret_id)
{
    AUTO(buf_done) struct buf rest = {0};
    bool needs_id = strstr(m->path, "%s") != NULL;

    while (w->at < w->n) {
        bool flag = w->v[w->at][0] == '-' && buf_len(&rest) == 0;

        if (flag && strcmp(w->v[w->at], "--") == 0) {
            w->at++;
        } else if (flag) {
            if (!take_flag(m, w, body))
                return false;
        } else if (needs_id && !*ret_id) {
            *ret_id = w->v[w->at++];
        } else if (m->rest) {
            buf_add_c(&rest, buf_len(&rest) ? " " : "");
            buf_add_c(&rest, w->v[w->at++]);
        } else {
            return false;
        }
    }
    if (buf_len(&rest) > 0)
        json_object_set_new(body, m->rest, json_string(buf_cstr(&rest)));
    return !needs_id || *ret_id;
}

static void put_path(const struct command *m, const char *id, const json_t *body, struct buf *to)
{
    const char *hole = strstr(m->path, "%s"), *key, *separator = "?";
    json_t *value;

    buf_add(to, m->path, hole ? (size_t)(hole - m->path) : strlen(m->path));
    if (hole) {
        enc_percent(to, str_of(id));
        buf_add_c(to, hole + 2);
    }
    if (strcmp(m->method, "GET") != 0)
        return;
    json_object_foreach((json_t *)body, key, value)
    {
        buf_printf(to, "%s%s=", separator, key);
        enc_percent(to, str_of(json_string_value(value)));
        separator = "&";
    }
}

/* --- running --- */

static void run_command(struct cli *c, const struct command *m, struct words *w)
{
    AUTO(json_decref) json_t *body = json_object(), *reply = NULL;
    AUTO(buf_done) struct buf path = {0};
    bool get = strcmp(m->method, "GET") == 0;
    const char *id = NULL;
    struct request rq = {.method = m->method, .timeout_ms = m->no_timeout ? 0 : c->timeout_ms};
    char *text;

    preset_flags(m, body);
    if (!read_words(m, w, body, &id)) {
        AUTO(buf_done) struct buf usage = {0};

        buf_printf(&usage, "usage: fluid %s", m->usage);
        say_error(c, buf_str(&usage));
        return;
    }
    put_path(m, id, body, &path);
    text = json_dumps(body, JSON_COMPACT);
    rq.target = buf_cstr(&path);
    rq.body = get || strcmp(m->method, "DELETE") == 0 ? STR("") : str_of(text);
    if (ask(c, &rq, &reply) == 0 && reply)
        show_json(reply);
    free(text); /* allocated by jansson */
}

static void say_usage(void)
{
    for (size_t i = 0; i < ARRAY_LEN(commands); i++) {
        cli_write(STR("fluid "));
        cli_write(str_of(commands[i].usage));
        cli_write(STR("\n"));
    }
}

static struct words words_of(struct cli *c, const json_t *args)
{
    const json_t *list = json_object_get(args, "words");
    struct words w = {.n = json_array_size(list)};

    w.v = arena_zalloc(&c->arena, (w.n + 1) * sizeof *w.v);
    for (size_t i = 0; i < w.n; i++)
        w.v[i] = arena_cstr(&c->arena, str_of(json_string_value(json_array_get(list, i))));
    return w;
}

static int fluid_run(struct cli *c, const struct cmd *cmd, const json_t *args, struct err *e)
{
    struct words w = words_of(c, args);

    (void)cmd, (void)e;
    for (size_t i = 0; w.n > 0 && i < ARRAY_LEN(commands); i++)
        if (strcmp(w.v[0], commands[i].name) == 0) {
            w.at = 1;
            run_command(c, &commands[i], &w);
            return 0;
        }
    say_usage();
    c->status = w.n > 0;
    return 0;
}

/* --- virsh-sandbox --- */

static const char *member(const json_t *o, const char *key)
{
    const char *text = json_string_value(json_object_get(o, key));

    return text ? text : "";
}

static void print_host(const json_t *h)
{
    AUTO(buf_done) struct buf raw = {0}, line = {0};

    buf_printf(&raw, "%-20s %-40s %-9s %lld\n", member(h, "name"), member(h, "uri"),
               member(h, "state"), (long long)json_integer_value(json_object_get(h, "running")));
    print_safe(&line, buf_str(&raw));
    cli_write(buf_str(&line));
}

/* Not zero: a host does not answer. */
static void show_hosts(struct cli *c, bool json)
{
    AUTO(json_decref) json_t *reply = NULL;
    const json_t *hosts;

    if (ask(c,
            &(struct request){
                .method = "GET", .target = "/holt/v1/hosts", .timeout_ms = c->timeout_ms},
            &reply) != 0)
        return;
    hosts = json_object_get(reply, "hosts");
    if (json)
        show_json(reply);
    else
        cli_write(
            STR("NAME                 ADDRESS                                  STATE     VMS\n"));
    for (size_t i = 0; i < json_array_size(hosts); i++) {
        const json_t *h = json_array_get(hosts, i);

        if (!json)
            print_host(h);
        if (strcmp(member(h, "state"), "down") == 0)
            c->status = 1;
    }
}

static void show_status(struct cli *c, bool json)
{
    AUTO(json_decref) json_t *reply = NULL;

    if (ask(c,
            &(struct request){.method = "GET", .target = "/v1/health", .timeout_ms = c->timeout_ms},
            &reply) != 0)
        return;
    if (json) {
        show_json(reply);
        return;
    }
    cli_write(STR("status: "));
    cli_write(str_of(member(reply, "status")));
    cli_write(STR("\n"));
}

/* The original is one program: without a command it serves. */
static int serve(const struct words *w, struct err *e)
{
    char path[PATH_MAX], **argv = xzalloc((w->n + 4) * sizeof *argv);
    size_t argc = 0;
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 8);
    char *slash;

    if (n < 0) {
        mem_free(argv);
        return err_set(e, ERR_INTERNAL, errno, "find holtd");
    }
    path[n] = '\0';
    slash = strrchr(path, '/');
    (void)snprintf(slash + 1, sizeof path - (size_t)(slash + 1 - path), "holtd");
    argv[argc++] = path;
    if (access(".env", R_OK) == 0) { /* as the original: of the working directory */
        argv[argc++] = (char *)(uintptr_t)"--env-file";
        argv[argc++] = (char *)(uintptr_t)".env";
    }
    for (size_t i = 0; i < w->n; i++)
        argv[argc++] = w->v[i];
    (void)execv(path, argv);
    mem_free(argv);
    return err_set(e, ERR_INTERNAL, errno, "start '%s'", path);
}

static bool has_word(const struct words *w, const char *word)
{
    for (size_t i = 0; i < w->n; i++)
        if (strcmp(w->v[i] + strspn(w->v[i], "-"), word) == 0)
            return true;
    return false;
}

static int virsh_sandbox_run(struct cli *c, const struct cmd *cmd, const json_t *args,
                             struct err *e)
{
    struct words w = words_of(c, args);
    bool json = has_word(&w, "json");

    (void)cmd;
    if (w.n == 0 || w.v[0][0] == '-')
        return serve(&w, e);
    if (strcmp(w.v[0], "status") == 0)
        show_status(c, json);
    else if (strcmp(w.v[0], "hosts") == 0)
        show_hosts(c, json);
    else
        return err_set(
            e, ERR_INVALID, 0,
            "unknown command '%.40s'; there are: status, hosts list, and --config FILE to serve",
            w.v[0]);
    return 0;
}

/* clang-format off */
static const struct cli_flag fluid_flags[] = {
    {{.name = "words", .type = OP_LIST, .positional = true, .example = "list --state RUNNING",
      .text = "A command of fluid and its flags."}, 0, true},
};
static const struct cli_flag virsh_sandbox_flags[] = {
    {{.name = "words", .type = OP_LIST, .positional = true, .example = "hosts list",
      .text = "status, hosts list (with --json), or flags of holtd."}, 0, true},
};

const struct verb fluid_verb = {
    .verb = "fluid", .group = "sandbox",
    .text = "The commands of fluid, with its flags: create, list, get, destroy, start, stop, ip, run, ssh-inject, snapshot, vms, hosts.\n"
            "A link to holt called fluid is this command. Replies are JSON.",
    .flags = fluid_flags, .flag_count = ARRAY_LEN(fluid_flags), .run = fluid_run,
    .examples = (const char *const[]){"holt fluid create --source-vm ubuntu-base", "holt fluid run SBX-0a1b2c3d -- uname -a", "holt fluid list --state RUNNING", NULL},
};
const struct verb virsh_sandbox_verb = {
    .verb = "virsh-sandbox", .group = "server",
    .text = "The commands of fluid.sh's server: status, hosts list; with --config FILE it serves, as holtd.\n"
            "A link to holt called virsh-sandbox is this command. The exit status is not zero if holtd or a host does not answer.",
    .flags = virsh_sandbox_flags, .flag_count = ARRAY_LEN(virsh_sandbox_flags), .run = virsh_sandbox_run,
    .examples = (const char *const[]){"holt virsh-sandbox status", "holt virsh-sandbox hosts list --json", NULL},
};
/* clang-format on */
