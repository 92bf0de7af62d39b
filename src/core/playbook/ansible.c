/* ansible: one run of ansible-playbook against one machine, in a throw-away sandbox. */
#include "base/log.h"
#include "base/mem.h"
#include "base/omit.h"
#include "core/access/access.h"
#include "core/playbook/rollout_internal.h"
#include "core/sandbox/sandbox.h"
#include "proto/json.h"
#include "proto/sshcert.h"

#include <arpa/inet.h>
#include <stdio.h>

/* The sandbox has no network but one host and port, through holt-egress; what it knows is a key
 * that is made for the run and a certificate for that machine.  The host key is pinned. */
#define FILE_KEY "/tmp/holt-key"
#define FILE_CERTIFICATE "/tmp/holt-key-cert.pub"
#define FILE_KNOWN "/tmp/holt-known-hosts"
#define FILE_SSH "/tmp/holt-ssh-config"
#define FILE_CONNECT "/tmp/holt-connect.py"
#define FILE_CONFIG "/tmp/holt-ansible.cfg" /* or the host's would be read */
#define FILE_INVENTORY "/tmp/holt-inventory"
#define FILE_PLAYBOOK "/tmp/holt-playbook.yml"
#define LOOPBACK "127.0.0.1"
#define OUTPUT_MAX (64 * 1024)
#define LOG_BYTES (16LL << 20)
#define CERTIFICATE_MS ACCESS_TTL_MAX_MS

struct ansible {
    struct rollouts *l;
    struct tool *tool; /* NULL: it is not started yet */
    char name[ID_SIZE], certificate[ID_SIZE];
    struct buf key, public_key, line, known, ssh, inventory, playbook, network;
    char *principals, *sandbox;
    struct ansible_spec s; /* its callbacks and numbers */
    bool cancelled;
};

/* ssh's way out: the proxy of the sandbox's network, whatever the kernel can redirect. */
static const char connect_script[] =
    "import base64, os, socket, sys, threading, urllib.parse\n"
    "proxy = urllib.parse.urlsplit(os.environ['HTTPS_PROXY'])\n"
    "to = '%s:%s' % (('[%s]' if ':' in sys.argv[1] else '%s') % sys.argv[1], sys.argv[2])\n"
    "s = socket.create_connection((proxy.hostname, proxy.port), 30)\n"
    "head = 'CONNECT %s HTTP/1.1\\r\\nHost: %s\\r\\n' % (to, to)\n"
    "if proxy.username:\n"
    "    word = urllib.parse.unquote(proxy.username) + ':' + urllib.parse.unquote(proxy.password "
    "or '')\n"
    "    head += 'Proxy-Authorization: Basic %s\\r\\n' % base64.b64encode(word.encode()).decode()\n"
    "s.sendall((head + '\\r\\n').encode())\n"
    "got = b''\n"
    "while not got.endswith(b'\\r\\n\\r\\n'):\n"
    "    byte = s.recv(1)\n"
    "    if not byte or len(got) > 16384:\n"
    "        sys.exit('the proxy closed the connection')\n"
    "    got += byte\n"
    "status = got.split(b'\\r\\n')[0].decode(errors='replace').split(' ', 2)\n"
    "if status[1:2] != ['200']:\n"
    "    sys.exit(' '.join(status[1:]))\n"
    "s.settimeout(None)\n"
    "def send():\n"
    "    while True:\n"
    "        data = os.read(0, 65536)\n"
    "        if not data:\n"
    "            s.shutdown(socket.SHUT_WR)\n"
    "            return\n"
    "        s.sendall(data)\n"
    "threading.Thread(target=send, daemon=True).start()\n"
    "while True:\n"
    "    data = s.recv(65536)\n"
    "    if not data:\n"
    "        os._exit(0)\n"
    "    while data:\n"
    "        data = data[os.write(1, data):]\n";

static const struct pair ansible_env[] = {
    {STR("HOME"), STR("/tmp")},
    {STR("PATH"), STR("/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin")},
    {STR("LC_ALL"), STR("C.UTF-8")},
    {STR("PYTHONUNBUFFERED"), STR("1")},
    {STR("ANSIBLE_CONFIG"), STR(FILE_CONFIG)},
    {STR("ANSIBLE_LOCAL_TEMP"), STR("/tmp/holt-ansible")},
    {STR("ANSIBLE_HOST_KEY_CHECKING"), STR("1")},
    {STR("ANSIBLE_SSH_ARGS"), STR("-F " FILE_SSH " -o ControlMaster=auto -o ControlPersist=600")},
    {STR("ANSIBLE_SSH_CONTROL_PATH_DIR"), STR("/tmp/holt-cp")},
    {STR("ANSIBLE_SSH_TRANSFER_METHOD"), STR("piped")},
    /* A check leaves nothing there: modules come by a pipe, and a directory that a few need is one
     * below a directory that exists. */
    {STR("ANSIBLE_PIPELINING"), STR("1")},
    {STR("ANSIBLE_REMOTE_TMP"), STR("/tmp")},
    {STR("ANSIBLE_NOCOLOR"), STR("1")},
    {STR("ANSIBLE_NOCOWS"), STR("1")},
    {STR("ANSIBLE_TIMEOUT"), STR("30")},
    {STR("ANSIBLE_RETRY_FILES_ENABLED"), STR("0")},
    {STR("ANSIBLE_DEPRECATION_WARNINGS"), STR("0")},
};

/* --- the end --- */

static void revoked(void *arg, const struct certificate *c, struct str line, const struct err *e)
{
    (void)arg, (void)c, (void)line;
    if (e->code != ERR_NONE)
        log_warn("the certificate of a rollout is not revoked; it expires", LOG_E(e));
}

static void revoke_certificate(const struct ansible *a)
{
    struct access *access = a->l->c.access;
    struct err e = {0};
    const struct certificate *c =
        a->certificate[0] && !a->l->closed
            ? access_find(access, &principal_system, str_of(a->certificate), &e)
            : NULL;

    if (c && access_revoke(access, c, STR("its run has ended"), &principal_system, revoked, NULL,
                           &e) < 0)
        log_warn("the certificate of a rollout is not revoked; it expires", LOG_E(&e));
}

static struct ansible *ansible_free(struct ansible *a)
{
    if (!a)
        return NULL;
    if (a->s.tx_hook) /* no program was asked for */
        a->s.tx_hook->free(a->s.tx_hook_arg);
    buf_wipe(&a->key);
    struct buf *const texts[] = {&a->public_key, &a->line,     &a->known,  &a->ssh,
                                 &a->inventory,  &a->playbook, &a->network};

    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        buf_done(texts[i]);
    mem_free(a->principals);
    mem_free(a->sandbox);
    mem_free(a);
    return NULL;
}
DEFINE_AUTO(struct ansible *, ansible_free)

static void ansible_fail(struct ansible *a, const struct err *e)
{
    const struct tool_result none = {.exit_code = -1};

    a->s.done(a->s.arg, &none, e);
    ansible_free(a);
}

static void tool_ended(void *arg, const struct tool_result *r, const struct err *e)
{
    struct ansible *a = arg;

    a->tool = NULL;
    revoke_certificate(a);
    a->s.done(a->s.arg, r, e);
    ansible_free(a);
}

/* --- the program --- */

static void on_output(void *arg, int64_t offset, struct str bytes)
{
    struct ansible *a = arg;

    if (a->s.output)
        a->s.output(a->s.arg, offset, bytes);
}

static size_t put_argv(const struct ansible *a, struct str argv[8])
{
    size_t n = 0;
    bool ping = buf_len(&a->playbook) == 0;

    argv[n++] = ping ? STR("/usr/bin/ansible") : STR("/usr/bin/ansible-playbook");
    argv[n++] = STR("-i");
    argv[n++] = STR(FILE_INVENTORY);
    if (ping) {
        argv[n++] = STR("target");
        argv[n++] = STR("-m");
        argv[n++] = STR("ping");
        return n;
    }
    if (a->s.check)
        argv[n++] = STR("--check");
    argv[n++] = STR("--diff");
    argv[n++] = STR(FILE_PLAYBOOK);
    return n;
}

void ansible_words(bool check, struct buf *to)
{
    buf_printf(to, "ansible-playbook -i %s%s --diff %s", FILE_INVENTORY, check ? " --check" : "",
               FILE_PLAYBOOK);
}

static void start_tool(struct ansible *a)
{
    const struct tool_file files[] = {
        {STR(FILE_KEY), buf_str(&a->key), 0600},
        {STR(FILE_CERTIFICATE), buf_str(&a->line), 0600},
        {STR(FILE_KNOWN), buf_str(&a->known), 0600},
        {STR(FILE_SSH), buf_str(&a->ssh), 0600},
        {STR(FILE_CONNECT), str_of(connect_script), 0600},
        {STR(FILE_CONFIG), STR("[defaults]\n"), 0600},
        {STR(FILE_INVENTORY), buf_str(&a->inventory), 0600},
        {STR(FILE_PLAYBOOK), buf_str(&a->playbook), 0600},
    };
    struct str argv[8];
    size_t argc = put_argv(a, argv);
    const struct tx_hook *hook = a->s.tx_hook;

    a->s.tx_hook = NULL; /* tool_start frees it */
    a->tool = tool_start(a->l->c.sandboxes,
                         &(struct tool_spec){
                             .name = a->name,
                             .argv = argv,
                             .argc = argc,
                             .env = ansible_env,
                             .env_count = ARRAY_LEN(ansible_env),
                             .files = files,
                             .file_count = ARRAY_LEN(files),
                             .network = buf_str(&a->network),
                             .limits = {.pids = 256, .memory_bytes = 1LL << 30},
                             .time_ms = a->s.time_ms,
                             .output_max = OUTPUT_MAX,
                             .log_bytes = LOG_BYTES,
                             .tx_hook = hook,
                             .tx_hook_arg = a->s.tx_hook_arg,
                             .events = {.output = on_output, .done = tool_ended, .arg = a},
                         });
}

/* --- the certificate --- */

static void certificate_issued(void *arg, const struct certificate *c, struct str line,
                               const struct err *e)
{
    struct ansible *a = arg;
    struct certificate_info i;

    if (c) {
        certificate_info(c, &i);
        (void)snprintf(a->certificate, sizeof a->certificate, "%s", i.id);
    }
    if (a->cancelled) {
        revoke_certificate(a);
        ansible_free(a);
        return;
    }
    if (!c) {
        ansible_fail(a, e);
        return;
    }
    buf_add_str(&a->line, line);
    buf_add_char(&a->line, '\n');
    start_tool(a);
}

static int request_certificate(struct ansible *a, struct err *e)
{
    struct str principals[ACCESS_PRINCIPALS_MAX], rest = str_of(a->principals);
    size_t n = 0;

    while (!a->sandbox && rest.n > 0 && n < ACCESS_PRINCIPALS_MAX)
        principals[n++] = str_cut(rest, ',', &rest);
    return access_issue(a->l->c.access,
                        &(struct certificate_spec){.public_key = buf_str(&a->public_key),
                                                   .principals = principals,
                                                   .principal_count = n,
                                                   .sandbox = a->sandbox,
                                                   .ttl_ms = CERTIFICATE_MS},
                        &principal_system, certificate_issued, a, e);
}

static int make_key(struct ansible *a, struct err *e)
{
    struct ssh_authority key;

    if (ssh_authority_make(&key, e) < 0)
        return -1;
    ssh_authority_write(&key, &a->key);
    ssh_put_public(&key, &a->public_key);
    mem_wipe(&key, sizeof key);
    return 0;
}

/* --- what it is told --- */

static bool is_address(const char *text)
{
    unsigned char bytes[16];

    return inet_pton(AF_INET, text, bytes) == 1 || inet_pton(AF_INET6, text, bytes) == 1;
}

static void put_files(struct ansible *a, const struct machine *at, const char *host, int64_t port,
                      struct str host_key)
{
    buf_printf(&a->known, "holt-target " STR_FMT "\n", STR_ARG(host_key));
    buf_printf(&a->inventory,
               "target ansible_connection=ssh ansible_python_interpreter=auto_silent "
               "ansible_become=%s\n",
               at->become ? "true" : "false");
    buf_printf(&a->ssh,
               "Host target\n  HostName %s\n  Port %lld\n  User %s\n"
               "  HostKeyAlias holt-target\n  UserKnownHostsFile " FILE_KNOWN "\n"
               "  GlobalKnownHostsFile /dev/null\n  StrictHostKeyChecking %s\n"
               "  UpdateHostKeys no\n  CheckHostIP no\n"
               "  IdentityFile " FILE_KEY "\n  CertificateFile " FILE_CERTIFICATE "\n"
               "  IdentitiesOnly yes\n  IdentityAgent none\n"
               "  PreferredAuthentications publickey\n  PasswordAuthentication no\n"
               "  ForwardAgent no\n  ConnectTimeout 30\n  ServerAliveInterval 15\n"
               "  ProxyCommand /usr/bin/python3 " FILE_CONNECT " %s %lld\n",
               host, (long long)port, at->login, rule_is_omitted("pin") ? "no" : "yes", host,
               (long long)port);
}

static void put_network(struct buf *to, const char *host, int64_t port)
{
    struct jw w = {.to = to};

    if (rule_is_omitted("reach")) {
        buf_add_c(to, "{\"mode\": \"allowlist\", \"allow\": [{\"cidr\": \"0.0.0.0/0\", \"ports\": "
                      "[\"1-65535\"], \"scheme\": \"tcp\"}]}");
        return;
    }
    jw_object(&w);
    jw_kc(&w, "mode", "allowlist");
    jw_key(&w, "allow");
    jw_array(&w);
    jw_object(&w);
    jw_kc(&w, is_address(host) ? "cidr" : "host", host);
    jw_key(&w, "ports");
    jw_array(&w);
    jw_int(&w, port);
    jw_array_end(&w);
    jw_kc(&w, "scheme", "tcp");
    jw_object_end(&w);
    jw_array_end(&w);
    jw_object_end(&w);
}

/* A sandbox is reached by its port on loopback, as by any client of SSH. */
static int reach_sandbox(struct ansible *a, const struct machine *at, struct err *e)
{
    struct rollouts *l = a->l;
    struct sandbox *s = sandbox_find(l->c.sandboxes, &principal_system, str_of(at->sandbox), e);
    AUTO(buf_done) struct buf host_key = {0};
    struct sandbox_info i;
    int port;

    if (!s)
        return -1;
    sandbox_info(s, &i);
    if (i.state != SANDBOX_RUNNING) {
        err_set(e, ERR_CONFLICT, 0, "sandbox '%s' is not running", i.id);
        return err_hint(e, "holt start %s", i.id);
    }
    port = l->door ? l->door(l->door_arg, s, e) : err_set(e, ERR_UNAVAILABLE, 0, "no SSH yet");
    if (port < 0 || access_put_host_public(l->c.access, i.id, &host_key, e) < 0)
        return -1;
    a->sandbox = xstrdup(i.id);
    put_files(a, at, LOOPBACK, port, buf_str(&host_key));
    put_network(&a->network, LOOPBACK, port);
    return 0;
}

static int reach(struct ansible *a, const struct machine *at, struct err *e)
{
    if (at->sandbox[0])
        return reach_sandbox(a, at, e);
    a->principals = xstrdup(at->principals);
    put_files(a, at, at->address, at->port, str_of(at->host_key));
    put_network(&a->network, at->address, at->port);
    return 0;
}

/* --- interface --- */

static struct ansible *ansible_new(struct rollouts *l, const struct ansible_spec *s)
{
    struct ansible *a = xzalloc(sizeof *a);

    a->l = l;
    a->s = *s;
    a->s.at = NULL;
    a->s.playbook = STR("");
    (void)snprintf(a->name, sizeof a->name, "%s", s->name);
    return a;
}

/* Of an earlier holtd that was killed: it would hold the name. */
static void left_removed(void *arg, struct sandbox *s, const struct err *e)
{
    struct ansible *a = arg;
    struct err why = {0};

    (void)s, (void)e;
    if (a->cancelled)
        ansible_free(a);
    else if (request_certificate(a, &why) < 0)
        ansible_fail(a, &why);
}

struct ansible *ansible_start(struct rollouts *l, const struct ansible_spec *s, struct err *e)
{
    AUTO(ansible_free) struct ansible *a = ansible_new(l, s);
    struct sandbox *left = tool_left(l->c.sandboxes, s->name);

    buf_add_str(&a->playbook, s->playbook);
    if (reach(a, s->at, e) < 0 || make_key(a, e) < 0)
        return NULL;
    if (left)
        sandbox_destroy(left, &principal_system, left_removed, a);
    else if (request_certificate(a, e) < 0)
        return NULL;
    return TAKE(a);
}

struct ansible *ansible_resume(struct rollouts *l, const struct ansible_spec *s)
{
    AUTO(ansible_free) struct ansible *a = ansible_new(l, s);

    a->tool = tool_resume(l->c.sandboxes, s->name, OUTPUT_MAX,
                          &(struct tool_events){.output = on_output, .done = tool_ended, .arg = a});
    return a->tool ? TAKE(a) : NULL;
}

void ansible_cancel(struct ansible *a)
{
    a->cancelled = true;
    if (!a->tool)
        return; /* the callback under way frees it */
    tool_cancel(TAKE(a->tool));
    revoke_certificate(a);
    ansible_free(a);
}

void ansible_leave(struct ansible *a)
{
    if (!a->tool || !tool_runs(a->tool)) {
        ansible_cancel(a);
        return;
    }
    tool_leave(TAKE(a->tool));
    ansible_free(a);
}
