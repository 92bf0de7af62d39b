/* settings: the table of settings, with defaults and checks. */
#include "conf/conf.h"
#include "conf/setting.h"

#include "base/mem.h"
#include "ops/approval.h"
#include "ops/sandbox.h"
#include "proto/ip.h"
#include "proto/policy.h"
#include "wire/oci.h"

#include <unistd.h>

static const char *const auth_modes[] = {"token", "off", NULL};
static const char *const log_levels[] = {"error", "warn", "info", "debug", NULL};
static const char *const log_formats[] = {"logfmt", "json", NULL};
static const char *const syscall_kinds[] = {"narrow", "wide", NULL};
static const char *const wide_users[] = {"never", "people", "agents", NULL};
static const char *const first_contacts[] = {"never", "seed", "always", NULL};
static const char *const vm_accels[] = {"auto", "kvm", "tcg", NULL};
static const char *runtimes[17]; /* conf_set_runtimes; NULL at the end */
static const char *const seed_identities[] = {"none", "observer", "operator", NULL};

/* systemd's StateDirectory= wins: systemd made that directory for us (systemd.exec(5)). */
char *conf_default_state(void)
{
    const char *given = getenv("STATE_DIRECTORY"), *xdg = getenv("XDG_STATE_HOME");
    const char *home = getenv("HOME");

    if (given && given[0] == '/')
        return xstrndup(given, strcspn(given, ":"));
    if (geteuid() == 0)
        return xstrdup("/var/lib/holt");
    if (xdg && xdg[0] == '/')
        return xasprintf("%s/holt", xdg);
    return xasprintf("%s/.local/state/holt", home && home[0] == '/' ? home : "/tmp");
}

static const struct setting_alias publish_url_alias[] = {{"GITOPS_REPO_URL"}, {NULL}};
static const struct setting_alias publish_branch_alias[] = {{"GITOPS_BRANCH"}, {NULL}};
static const struct setting_alias publish_author_alias[] = {{"GIT_AUTHOR_NAME"}, {NULL}};
static const struct setting_alias publish_email_alias[] = {{"GIT_AUTHOR_EMAIL"}, {NULL}};

static int check_db(const char *value, struct err *e)
{
    static const char *const schemes[] = {"sqlite:", "postgres://", "postgresql://"};

    if (value[0] == '\0')
        return 0;
    for (size_t i = 0; i < ARRAY_LEN(schemes); i++)
        if (strncmp(value, schemes[i], strlen(schemes[i])) == 0 && value[strlen(schemes[i])])
            return 0;
    return err_set(e, ERR_INVALID, 0, "it must be 'sqlite:PATH' or 'postgres://…'");
}

static int check_node(const char *value, struct err *e)
{
    if (value[strspn(value, "abcdefghijklmnopqrstuvwxyz0123456789_-")] == '\0')
        return 0;
    return err_set(e, ERR_INVALID, 0, "it may hold a-z, 0-9, '_' and '-' only");
}

static int check_origin(const char *value, struct err *e)
{
    if (strncmp(value, "http://", 7) == 0 || strncmp(value, "https://", 8) == 0)
        return 0;
    return err_set(e, ERR_INVALID, 0,
                   "'%.100s' is not an origin; it must be like 'https://dash.example.org'", value);
}

static int check_approval_kind(const char *value, struct err *e)
{
    for (size_t i = 0; op_approval_kinds[i]; i++)
        if (strcmp(value, op_approval_kinds[i]) == 0)
            return 0;
    return err_set(e, ERR_INVALID, 0, "'%.100s' is no kind of question (holt approval ls --help)",
                   value);
}

/* A token's way over an open network would be anybody's. */
static int check_issuer(const char *value, struct err *e)
{
    static const char *const local[] = {"http://127.0.0.1", "http://localhost", "http://[::1]"};

    if (value[0] == '\0' || strncmp(value, "https://", 8) == 0)
        return 0;
    for (size_t i = 0; i < ARRAY_LEN(local); i++) {
        size_t n = strlen(local[i]);

        if (strncmp(value, local[i], n) == 0 && strchr(":/", value[n]))
            return 0;
    }
    return err_set(e, ERR_INVALID, 0, "it must be https, or http on loopback");
}

static int check_http_url(const char *value, struct err *e)
{
    if (value[0] == '\0' || strncmp(value, "http://", 7) == 0 || strncmp(value, "https://", 8) == 0)
        return 0;
    return err_set(e, ERR_INVALID, 0, "it must begin with http:// or https://");
}

/* A field that is sent as it is: no text of it may begin another. */
static int check_header(const char *value, struct err *e)
{
    size_t name = strspn(value, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_");

    if (name == 0 || value[name] != '=')
        return err_set(e, ERR_INVALID, 0, "it must be NAME=VALUE");
    for (const char *p = value + name; *p; p++)
        if ((unsigned char)*p < 0x20 || *p == 0x7f)
            return err_set(e, ERR_INVALID, 0, "its value has a control character");
    return 0;
}

static int check_remote(const char *value, struct err *e)
{
    const char *host = strstr(value, "://");

    if (value[0] == '\0')
        return 0;
    if ((strncmp(value, "https://", 8) != 0 && strncmp(value, "http://", 7) != 0) || !host[3] ||
        strchr("/:@", host[3]) || strpbrk(value, "@ \t\n"))
        return err_set(e, ERR_INVALID, 0, "it must be https://HOST/PATH, without a user");
    return 0;
}

static int check_branch(const char *value, struct err *e)
{
    if (value[0] == '-' || strstr(value, "..") ||
        strspn(value, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._/-") !=
            strlen(value))
        return err_set(e, ERR_INVALID, 0, "it must be a branch of letters, digits and ._/-");
    return 0;
}

static int check_oidc_role(const char *value, struct err *e)
{
    const char *role = strchr(value, '=');

    if (role && role != value &&
        (strcmp(role, "=observer") == 0 || strcmp(role, "=operator") == 0 ||
         strcmp(role, "=admin") == 0))
        return 0;
    return err_set(e, ERR_INVALID, 0,
                   "'%.100s' is not VALUE=observer, VALUE=operator or VALUE=admin", value);
}

bool conf_port_range(const char *text, int *ret_first, int *ret_last)
{
    struct str last, first = str_cut(str_of(text), '-', &last);
    int64_t from = 0, to = 0;
    bool off = strcmp(text, "off") == 0, any = text[0] == '\0';

    if (!off && !any &&
        (str_parse_i64(first, &from) < 0 || str_parse_i64(last, &to) < 0 || from < 1 || to < from ||
         to > 65535))
        return false;
    *ret_first = off ? -1 : (int)from;
    *ret_last = off ? -1 : (int)to;
    return true;
}

static int check_ports(const char *value, struct err *e)
{
    int first, last;

    return conf_port_range(value, &first, &last)
               ? 0
               : err_set(e, ERR_INVALID, 0, "it must be 'FIRST-LAST', 'off' or empty");
}

/* A browser connects to it. */
static int check_preview_address(const char *value, struct err *e)
{
    if (address_check(value, e) < 0)
        return -1;
    return strstr(value, "unix:") ? err_set(e, ERR_INVALID, 0, "it must be 'host:port'") : 0;
}

static int check_internal(const char *value, struct err *e)
{
    struct str net, host = str_cut(str_of(value), '=', &net);

    if (policy_is_internal(host, net))
        return 0;
    return err_set(e, ERR_INVALID, 0,
                   "'%.100s' must be HOST=NETWORK, like 'packages.example.org=10.2.0.0/16'", value);
}

static int check_image_alias(const char *value, struct err *e)
{
    const char *equals = strchr(value, '=');

    if (equals && equals != value && equals[1] && !strchr(equals + 1, '='))
        return 0;
    return err_set(e, ERR_INVALID, 0, "'%.100s' must be NAME=IMAGE", value);
}

static int check_build_env(const char *value, struct err *e)
{
    const char *equals = strchr(value, '=');

    if (equals && equals != value)
        return 0;
    return err_set(e, ERR_INVALID, 0, "'%.100s' must be NAME=VALUE", value);
}

static int check_host_mount(const char *value, struct err *e)
{
    if (value[0] == '/' && !strstr(value, "/../") && !strstr(value, "//"))
        return 0;
    return err_set(e, ERR_INVALID, 0,
                   "'%.100s' must be an absolute path, with ':ro' after it for read-only mounts",
                   value);
}

static int check_raw_bridge(const char *value, struct err *e)
{
    struct str net, name = str_cut(str_of(value), ',', &net);
    struct ip_net parsed;
    struct err why;

    if (value[0] == '\0' || (name.n > 0 && name.n < 16 && str_index(net, '/') > 0 &&
                             str_index(net, ':') < 0 && ip_net_parse(net, &parsed, &why) == 0))
        return 0;
    return err_set(e, ERR_INVALID, 0, "it must be like 'br0,10.88.0.0/16'");
}

static int check_proxy_host(const char *value, struct err *e)
{
    struct host h;
    struct err why;

    if (value[0] == '\0' || host_parse(str_of(value), &h, &why) == 0)
        return 0;
    return err_set(e, ERR_INVALID, 0, "'%.100s' is neither an address nor a host name", value);
}

int setting_check_path(const char *value, struct err *e)
{
    if (value[0] == '\0' || (value[0] == '/' && !strstr(value, "/../") && !strstr(value, "//")))
        return 0;
    return err_set(e, ERR_INVALID, 0, "'%.100s' must be an absolute path", value);
}

void conf_set_runtimes(const char *const *names)
{
    size_t n = 0;

    for (; names[n]; n++) {
        assert(n + 1 < ARRAY_LEN(runtimes));
        runtimes[n] = names[n];
    }
    assert(n > 0);
    runtimes[n] = NULL;
}

/* Also those of the setting oci_runtimes. */
int conf_check_runtime(const struct config *c, struct err *e)
{
    AUTO(buf_done) struct buf names = {0};
    bool is = strcmp(c->runtime, CONF_RUNTIME_AUTO) == 0;

    for (size_t i = 0; runtimes[i]; i++) {
        is = is || strcmp(c->runtime, runtimes[i]) == 0;
        buf_printf(&names, "%s, ", runtimes[i]);
    }
    for (size_t i = 0; i < c->oci_runtimes.n; i++) {
        struct str more, name = str_cut(str_of(c->oci_runtimes.v[i]), '=', &more);

        name = str_cut(name, ',', &more);
        is = is || str_eq_c(name, c->runtime);
        buf_printf(&names, STR_FMT ", ", STR_ARG(name));
    }
    if (is)
        return 0;
    buf_printf(&names, "%s", CONF_RUNTIME_AUTO);
    return err_set(e, ERR_INVALID, 0, "setting 'runtime' is '%.32s'; it must be one of: " STR_FMT,
                   c->runtime, STR_ARG(buf_str(&names)));
}

static char *first_runtime(void)
{
    return xstrdup(runtimes[0]);
}

#define KIB 1024
#define MIB (1024 * 1024)
#define SECOND 1000
#define HOUR (3600 * SECOND)
#define ROW(member, kind, ...)                                                                     \
    .f = {.name = #member, .type = kind, .offset = offsetof(struct config, member), __VA_ARGS__}

/* clang-format off */
static const struct setting own_rows[] = {
    {ROW(listen, OP_LIST, .preset = "127.0.0.1:8122", .min = 1, .max = 64,
         .text = "Addresses to listen on: 'host:port', '[v6]:port' or 'unix:/PATH'. Each accepts every protocol; "
                 "with 'tls://' before it, only TLS. The default is loopback: no other machine can connect."),
     .alias = listen_alias, .check = address_check},
    {ROW(preview_listen, OP_LIST, .preset = "127.0.0.1:8123,[::1]:8123", .max = 64,
         .text = "Addresses for previews: servers inside sandboxes, in a browser. Each sandbox and port has its own "
                 "origin, http://PORT-ID.localhost; the API is not served there. A busy address is skipped; if all "
                 "are busy, any free port is used. Empty: no previews."),
     .check = check_preview_address},
    {ROW(seed_ports, OP_BOOL, .preset = "false",
         .text = "Also listen on the ports that clients of the other systems expect: 8080, 8120, 8121, 8122, 50051 "
                 "and 5173, on loopback. A busy port is skipped. Loopback addresses in variables of those systems "
                 "(GRPC_PORT) are added.")},
    {ROW(seed_identity, OP_CHOICE, .preset = "operator", .choices = seed_identities,
         .text = "Role of requests without a token on the seed ports, whose clients send none. It cannot be admin; "
                 "'none' refuses such requests."),
     .as_text = true, .reload = true},
    {ROW(state, OP_STR, .min = 1, .max = 1024,
         .text = "Directory for all files that holt keeps. Default: systemd's StateDirectory=, /var/lib/holt for "
                 "root, else $XDG_STATE_HOME/holt or ~/.local/state/holt."),
     .preset = conf_default_state},
    {ROW(user, OP_STR, .preset = "", .max = 64,
         .text = "User of holtd if it is started as root, by name or number. The state directory is given to that "
                 "user. Empty: 'holt' if that user exists, else 999990. 'root': stay root.")},
    {ROW(egress_user, OP_STR, .preset = "", .max = 64,
         .text = "User of holt-egress if holtd is started as root. Empty: 'holt-egress' if that user exists, else "
                 "999991.")},
    {ROW(db, OP_STR, .preset = "", .max = 2048, .secret = true,
         .text = "The database: 'sqlite:PATH' or 'postgres://…'. Empty: holt.db in the state directory. Never "
                 "shown, because it may hold a password."),
     .alias = db_alias, .check = check_db},
    {ROW(node, OP_STR, .preset = "", .max = 40,
         .text = "Name of this holtd if several share one PostgreSQL database. Each has its own schema, holt_NODE. "
                 "Empty: a name that is kept in the state directory."),
     .check = check_node},
    {ROW(auth, OP_CHOICE, .preset = "token", .choices = auth_modes,
         .text = "Whether requests need a token. With 'off' every client is admin; it is accepted on loopback only.")},
    {ROW(log_level, OP_CHOICE, .preset = "info", .choices = log_levels,
         .text = "Least severe messages to log."),
     .alias = log_level_alias, .reload = true},
    {ROW(log_format, OP_CHOICE, .preset = "logfmt", .choices = log_formats,
         .text = "Format of log lines: 'key=value' or JSON."),
     .alias = log_format_alias, .reload = true},
    {ROW(tls_cert, OP_STR, .preset = "", .max = 1024,
         .text = "PEM file with the certificate chain; empty: no TLS. SIGHUP reads it again.")},
    {ROW(tls_key, OP_STR, .preset = "", .max = 1024,
         .text = "PEM file with the certificate's key.")},
    {ROW(cors_origins, OP_LIST, .preset = "", .max = 256,
         .text = "Web origins whose pages may call the API from a browser; none by default."),
     .check = check_origin, .reload = true},
    {ROW(seed_origins, OP_LIST, .preset = "http://localhost:5173-5183,http://127.0.0.1:5173-5183", .max = 256,
         .text = "Web origins whose pages may call the API on the seed ports, without cookies: dashboards of the "
                 "other systems. Ports may be a range."),
     .check = check_origin, .reload = true},
    {ROW(host_names, OP_LIST, .preset = "", .max = 256,
         .text = "Names that a request's Host header may have, besides addresses and localhost. Others are refused, "
                 "which stops DNS rebinding."),
     .reload = true},
    {ROW(metrics, OP_BOOL, .preset = "true",
         .text = "Serve /metrics."),
     .alias = metrics_alias, .reload = true},
    {ROW(otlp_endpoint, OP_STR, .preset = "", .max = 500, .example = "http://127.0.0.1:4318",
         .text = "Collector of traces (OpenTelemetry, OTLP over HTTP): spans are sent to /v1/traces there. Empty: none are made."),
     .alias = (const struct setting_alias[]){{"OTEL_EXPORTER_OTLP_ENDPOINT"}, {NULL}}, .check = check_http_url},
    {ROW(otlp_headers, OP_LIST, .preset = "", .max = 16, .secret = true,
         .text = "Fields for that collector, as NAME=VALUE."),
     .alias = (const struct setting_alias[]){{"OTEL_EXPORTER_OTLP_HEADERS"}, {NULL}}, .check = check_header},
    {ROW(otlp_service, OP_STR, .preset = "holt", .min = 1, .max = 100, .text = "Name of this service in traces."),
     .alias = (const struct setting_alias[]){{"OTEL_SERVICE_NAME"}, {NULL}}},
    {ROW(otlp_ratio, OP_INT, .preset = "100", .min = 0, .max = 100,
         .text = "Percent of the requests without a trace of their own that begin one. Those with one do as their caller says."),
     .reload = true},
    {ROW(ready_needs_agents, OP_BOOL, .preset = "false",
         .text = "Whether /readyz is 503 while no sandbox runs. By default it is not: an installation without "
                 "sandboxes works too."),
     .reload = true},

    {ROW(header_max, OP_SIZE, .preset = "64k", .min = 1 * KIB, .max = 1 * MIB,
         .text = "Maximum size of a request head. Cookies and tokens need some KiB; more is an attack or a mistake."),
     .reload = true},
    {ROW(header_count_max, OP_INT, .preset = "128", .min = 8, .max = 4096,
         .text = "Maximum number of fields in a request head. Browsers send about 20."),
     .reload = true},
    {ROW(body_max, OP_SIZE, .preset = "16m", .min = 1 * KIB, .max = 1LL << 40,
         .text = "Maximum size of a request body in memory, input of a command included, and of each output "
                 "stream in the reply of a command. Streamed uploads have other limits."),
     .reload = true},
    {ROW(connections_max, OP_INT, .preset = "16384", .min = 8, .max = 1000000,
         .text = "Maximum number of open connections. Each costs a file descriptor and some KiB."),
     .reload = true},
    {ROW(connections_per_peer, OP_INT, .preset = "4096", .min = 1, .max = 1000000,
         .text = "Maximum number of connections from one address. The default is high, because all clients on "
                 "loopback share one address."),
     .reload = true},
    {ROW(pending_max, OP_SIZE, .preset = "256m", .min = 1 * MIB, .max = 1LL << 40,
         .text = "Maximum memory for requests of clients that have not authenticated yet, and the same again for "
                 "requests from inside sandboxes. When it is full, clients get an error and may retry."),
     .reload = true},
    {ROW(pending_per_peer, OP_SIZE, .preset = "32m", .min = 64 * KIB, .max = 1LL << 40,
         .text = "The part of it for one address (with IPv6, one /64), and for the relay of one sandbox."),
     .reload = true},
    {ROW(requests_per_conn, OP_INT, .preset = "128", .min = 1, .max = 10000,
         .text = "Maximum number of concurrent requests on one connection: pipelined requests or HTTP/2 streams."),
     .reload = true},
    {ROW(idle_ms, OP_DURATION, .preset = "75s", .min = 1 * SECOND, .max = 24LL * HOUR,
         .text = "An idle connection is closed after this. The default is longer than the 60s for which proxies "
                 "keep theirs."),
     .reload = true},
    {ROW(header_ms, OP_DURATION, .preset = "10s", .min = 100, .max = 1LL * HOUR,
         .text = "A request head must arrive within this time, so that slow clients cannot hold connections."),
     .reload = true},
    {ROW(body_idle_ms, OP_DURATION, .preset = "30s", .min = 100, .max = 1LL * HOUR,
         .text = "A client may pause this long while it sends a request body. The whole body may take any time."),
     .reload = true},
    {ROW(write_ms, OP_DURATION, .preset = "30s", .min = 100, .max = 1LL * HOUR,
         .text = "A client that reads nothing of its reply for this long is disconnected. A reader of server-sent "
                 "events first gets a comment with the reason, and the same time again. The time does not count "
                 "while the client waits for its reply."),
     .reload = true},
    {ROW(ws_message_max, OP_SIZE, .preset = "16m", .min = 1 * KIB, .max = 1LL << 30,
         .text = "Maximum size of a WebSocket message, all fragments together."),
     .reload = true},
    {ROW(grpc_message_max, OP_SIZE, .preset = "16m", .min = 1 * KIB, .max = 1LL << 30,
         .text = "Maximum size of a gRPC message. gRPC's own default is 4 MiB, but files need more."),
     .reload = true},
    {ROW(shutdown_ms, OP_DURATION, .preset = "10s", .max = 1LL * HOUR,
         .text = "Time that requests have to finish after SIGTERM."),
     .alias = shutdown_alias, .reload = true},

    {ROW(events_keep_ms, OP_DURATION, .preset = "0", .max = 36500LL * 24 * HOUR,
         .text = "Events older than this are removed; 0: never. The audit chain stays "
                 "verifiable."),
     .reload = true},
    {ROW(events_keep_count, OP_INT, .preset = "0", .max = 1LL << 53,
         .text = "Maximum number of events. The oldest are removed; 0: never."),
     .reload = true},
    {ROW(audit_fold_ms, OP_DURATION, .preset = "10s", .max = 24LL * HOUR,
         .text = "Equal audit rows within this time become one row with a count, so that a flood of refusals does "
                 "not fill the disk."),
     .reload = true},
    {ROW(login_failures, OP_INT, .preset = "10", .min = 1, .max = 1000000,
         .text = "Failed logins that one address may make within login_window_ms before it must wait."),
     .reload = true},
    {ROW(login_window_ms, OP_DURATION, .preset = "60s", .min = 1 * SECOND, .max = 24LL * HOUR,
         .text = "The time over which failed logins are counted."),
     .reload = true},
    {ROW(tokens_max, OP_INT, .preset = "100000", .min = 1, .max = 10000000,
         .text = "Maximum number of valid tokens, including those of sessions."),
     .reload = true},
    {ROW(store_writes, OP_INT, .preset = "10000", .min = 1, .max = 1000000,
         .text = "Maximum number of writes that wait for the database. When it is reached, clients get an error and "
                 "may retry.")},
    {ROW(store_reads, OP_INT, .preset = "1000", .min = 1, .max = 1000000,
         .text = "Maximum number of reads that wait for the database.")},

    {ROW(runtime, OP_STR, .max = 32, .pattern = OP_PATTERN_NAME,
         .text = "Runtime of a sandbox that names none: native, runc, crun, runsc, vm, one of "
                 "'oci_runtimes', or 'auto', the strongest that works on this host: "
                 "docs/runtimes.md. 'fake' isolates nothing and is for tests; holtd warns of it at "
                 "its start."),
     .preset = first_runtime},
    {ROW(oci_runtimes, OP_LIST, .preset = "", .max = OCI_MORE_MAX,
         .text = "Further container runtimes, 'NAME=/PATH/OF/PROGRAM [FLAG]...', called as runc is "
                 "with the flags before 'run'; 'NAME,own-kernel=...' where commands are no "
                 "processes of the host. holt-spawn takes up a change at its next start."),
     .check = oci_check},
    {ROW(host_mounts, OP_LIST, .preset = "", .max = 256,
         .text = "Directories of the host that sandboxes may mount, with all directories below them; with ':ro' "
                 "after it, read-only. None by default. A change takes effect when holt-spawn starts again."),
     .check = check_host_mount, .reload = true},
    {ROW(nesting, OP_BOOL, .preset = "false",
         .text = "Whether sandboxes may be created with 'nesting': they can then create namespaces and mounts, and "
                 "reach more of the kernel. See docs/runtime.md.")},
    {ROW(syscalls, OP_CHOICE, .preset = "narrow", .choices = syscall_kinds,
         .text = "System calls of sandboxes that do not request them: 'narrow' allows those that common programs "
                 "need, 'wide' all but the dangerous ones. See docs/runtime.md. A change takes effect when "
                 "holt-spawn starts again.")},
    {ROW(wide_syscalls, OP_CHOICE, .preset = "people", .choices = wide_users,
         .text = "Clients that may create sandboxes with 'syscalls: wide': never (none), people (all but agents) or "
                 "agents (all).")},
    {ROW(default_pids, OP_INT, .preset = "4096", .max = 4194304,
         .text = "Limit of processes and threads of a sandbox that requests none; 0: no limit. With cgroup v1 it "
                 "counts per user inside. A change takes effect when holt-spawn starts again.")},
    {ROW(require_limits, OP_BOOL, .preset = "false",
         .text = "Refuse sandboxes with a limit that this host cannot enforce. Otherwise 'unenforced' and "
                 "'warnings' in the reply name the limit."),
     .reload = true},
    {ROW(pool_size, OP_INT, .preset = "4", .max = 256,
         .text = "Number of spare sandboxes, which make create and run faster. Each takes about 0.5 MiB and is "
                 "replaced in the background. 0: none."), .reload = true},
    {ROW(pool_autosize, OP_BOOL, .preset = "false",
         .text = "Keep as many spare sandboxes as were created in the last 60 seconds, between pool_min and "
                 "pool_max, instead of pool_size."), .reload = true},
    {ROW(pool_min, OP_INT, .preset = "0", .max = 256, .text = "Minimum number of spare sandboxes, with "
                                                              "pool_autosize."), .reload = true},
    {ROW(pool_max, OP_INT, .preset = "0", .max = 256,
         .text = "Maximum number of spare sandboxes, with pool_autosize; 0: 10, or pool_min if that is more."), .reload = true},
    {ROW(sandboxes_max, OP_INT, .preset = "4096", .min = 1, .max = 1000000,
         .text = "Maximum number of sandboxes.")},
    {ROW(agentshare, OP_STR, .preset = "", .max = 4096,
         .text = "Directory of the files that people and agents exchange (docs/tasks.md): global, inbox, outbox, tasks. "
                 "Default: 'agentshare' in the state directory."),
     .check = setting_check_path, .dir = SETTING_DIR_TENANTS},
    {ROW(loadouts_dir, OP_STR, .preset = "", .max = 4096,
         .text = "Directory with loadouts of your own (docs/loadouts.md): profiles, layers and providers, read at start-up. One with the path "
                 "of a loadout of holt replaces it. Default: none."),
     .check = setting_check_path},
    {ROW(loadout_image, OP_STR, .preset = "host", .min = 1, .max = 255,
         .text = "Image that loadouts are built on, if a request names none."),
     .reload = true},
    {ROW(build_hosts, OP_LIST, .preset = "", .max = 256,
         .text = "Hosts that the steps of builds and loadouts reach, as in an allowlist: those of their package sources. '*': every host "
                 "that is open. Default: none."),
     .reload = true},
    {ROW(build_env, OP_LIST, .preset = "", .max = 128,
         .text = "Environment of the steps of builds and loadouts, 'NAME=VALUE': package sources like PIP_INDEX_URL, NPM_CONFIG_REGISTRY, "
                 "APT_SOURCES, NODE_ARCHIVE."),
     .check = check_build_env, .reload = true},
    {ROW(build_step_ms, OP_DURATION, .preset = "30m", .min = 1000, .max = 24LL * HOUR,
         .text = "Maximum time of one step of a build."),
     .reload = true},
    {ROW(build_cache_max, OP_INT, .preset = "200", .min = 1, .max = 100000,
         .text = "Maximum number of steps of builds that are kept to be used again; the oldest go first."),
     .reload = true},
    {ROW(builds_running, OP_INT, .preset = "2", .min = 1, .max = 64,
         .text = "Maximum number of builds that run at a time; the others wait."),
     .reload = true},
    {ROW(tasks_running, OP_INT, .preset = "8", .max = 100000,
         .text = "Maximum number of tasks that run at a time; the others wait in the queue. 0: no limit."), .reload = true},
    {ROW(tasks_per_user, OP_INT, .preset = "4", .max = 100000,
         .text = "Maximum number of tasks of one user that run at a time; 0: no limit."), .reload = true},
    {ROW(tasks_max, OP_INT, .preset = "10000", .max = 1000000,
         .text = "Maximum number of tasks that are kept, including ended ones; 0: no limit."), .reload = true},
    {ROW(tasks_keep_ms, OP_DURATION, .preset = "30d", .max = 10LL * 366 * 24 * 3600 * 1000,
         .text = "How long an ended task is kept with its log and its artifacts; 0: for ever."), .reload = true},
    {ROW(remote_heartbeat_ms, OP_DURATION, .preset = "90s", .min = 1000, .max = 24LL * HOUR,
         .text = "How long an agent on another machine (holt-agent) may be silent before its link is cut; two thirds "
                 "of it, and it is stale. Without a link for three times as long, at least 5 minutes, it is removed."),
     .reload = true},
    {ROW(remote_first_contact, OP_CHOICE, .preset = "seed", .choices = first_contacts,
         .text = "Where an agent whose id is unknown may connect with a secret of its own, which is then kept: never, "
                 "on seed ports (from this machine only), or always."),
     .reload = true},
    {ROW(remote_secrets, OP_STR, .preset = "", .max = 4096,
         .text = "Directory of agent-hashes.json, the hashes of the secrets of agents on other machines; read again on "
                 "SIGHUP. Default: 'secrets' in the state directory."),
     .check = setting_check_path},
    {ROW(publish_url, OP_STR, .preset = "", .max = 1000, .example = "https://git.example.com/ops/playbooks.git",
         .text = "Git remote that playbooks are published to (docs/playbooks.md): https, or http. Empty: none."),
     .check = check_remote, .alias = publish_url_alias, .reload = true},
    {ROW(publish_branch, OP_STR, .preset = "main", .min = 1, .max = 200,
         .text = "Branch of publish_url that the branches of publications begin from."), .check = check_branch,
     .alias = publish_branch_alias, .reload = true},
    {ROW(publish_user, OP_STR, .preset = "git", .min = 1, .max = 200, .text = "User name at publish_url."), .reload = true},
    {ROW(publish_secret, OP_STR, .preset = "", .max = 255,
         .text = "Name of the secret (docs/secrets.md) that is the password at publish_url. Empty: no password."), .reload = true},
    {ROW(publish_author, OP_STR, .preset = "holt", .min = 1, .max = 200, .text = "Author of publications."),
     .alias = publish_author_alias, .reload = true},
    {ROW(publish_email, OP_STR, .preset = "holt@localhost", .min = 1, .max = 200, .text = "Address of that author."),
     .alias = publish_email_alias, .reload = true},
    {ROW(crash_count, OP_INT, .preset = "5", .max = 16,
         .text = "A sandbox whose init has ended by itself so often within crash_window_ms, the last time within "
                 "crash_uptime_ms of its start, is in a crash loop and is not started any more (docs/crashes.md); 0: never."), .reload = true},
    {ROW(crash_window_ms, OP_DURATION, .preset = "10m", .min = 1000, .max = 30LL * 24 * HOUR,
         .text = "The time in which crashes are counted."), .reload = true},
    {ROW(crash_uptime_ms, OP_DURATION, .preset = "60s", .min = 1, .max = 30LL * 24 * HOUR,
         .text = "One that ran longer than this before its last crash is in no crash loop."), .reload = true},
    {ROW(crash_rebuilds, OP_INT, .preset = "0", .max = 100,
         .text = "How often a sandbox in a crash loop is rebuilt: its files are removed, and it starts as it was created; "
                 "then it stays failed. 0: it waits for a person."), .reload = true},
    {ROW(crash_cooldown_ms, OP_DURATION, .preset = "30m", .min = 1000, .max = 30LL * 24 * HOUR,
         .text = "The time from a crash loop to the rebuild."), .reload = true},
    {ROW(crash_healthy_ms, OP_DURATION, .preset = "5m", .min = 1000, .max = 30LL * 24 * HOUR,
         .text = "One that has run for this long is healthy: earlier crashes and rebuilds do not count any more."), .reload = true},
    {ROW(agent_memory, OP_SIZE, .preset = "1g", .max = 1LL << 50,
         .text = "Memory limit of an agent's sandbox that requests none; 0: agent_memory_max."), .reload = true},
    {ROW(agent_memory_max, OP_SIZE, .preset = "8g", .max = 1LL << 50,
         .text = "Maximum memory limit of an agent's sandbox, and of its volumes in memory; 0: no limit."), .reload = true},
    {ROW(agent_cpu, OP_INT, .preset = "2000", .max = 1000000,
         .text = "CPU limit of an agent's sandbox that requests none, in thousandths of one core; 0: agent_cpu_max."), .reload = true},
    {ROW(agent_cpu_max, OP_INT, .preset = "8000", .max = 1000000,
         .text = "Maximum CPU limit of an agent's sandbox, in thousandths of one core; 0: no limit."), .reload = true},
    {ROW(agent_pids, OP_INT, .preset = "1024", .max = 4194304,
         .text = "Process limit of an agent's sandbox that requests none; 0: agent_pids_max."), .reload = true},
    {ROW(agent_pids_max, OP_INT, .preset = "8192", .max = 4194304,
         .text = "Maximum process limit of an agent's sandbox; 0: no limit."), .reload = true},
    {ROW(agent_disk, OP_SIZE, .preset = "8g", .max = 1LL << 50,
         .text = "Disk limit of an agent's sandbox that requests none; 0: agent_disk_max."), .reload = true},
    {ROW(agent_disk_max, OP_SIZE, .preset = "32g", .max = 1LL << 50,
         .text = "Maximum disk limit of an agent's sandbox, and of each of its own mounts; 0: no limit."), .reload = true},
    {ROW(agent_sandboxes, OP_INT, .preset = "32", .max = 1000000,
         .text = "Maximum number of sandboxes of one agent, including stopped ones; 0: no limit."), .reload = true},
    {ROW(agent_commands, OP_INT, .preset = "256", .max = 1000000,
         .text = "Maximum number of commands that one agent runs at a time, in all its sandboxes; 0: no limit."), .reload = true},
    {ROW(agent_volumes, OP_INT, .preset = "32", .max = 1000000,
         .text = "Maximum number of volumes of one agent; 0: no limit."), .reload = true},
    {ROW(agent_output, OP_SIZE, .preset = "1g", .max = 1LL << 50,
         .text = "Maximum disk space of the host for the output of one agent's commands, in all its sandboxes, and "
                 "of the commands that one person's sandboxes start through their relays. When it is full, the "
                 "oldest ended commands are removed, then the oldest output of running ones; 0: no limit."), .reload = true},
    {ROW(owner_sandboxes, OP_INT, .preset = "3072", .max = 1000000,
         .text = "Maximum number of sandboxes of one person, so that nobody uses up sandboxes_max; 0: no limit."), .reload = true},
    {ROW(owner_volumes, OP_INT, .preset = "3072", .max = 1000000,
         .text = "Maximum number of volumes of one person; 0: no limit."), .reload = true},
    {ROW(owner_running, OP_INT, .preset = "0", .max = 1000000,
         .text = "Quota: the most running sandboxes of one owner (a person's token or an agent); 0: no limit."), .reload = true},
    {ROW(owner_cpu, OP_INT, .preset = "0", .max = 1000000000,
         .text = "Quota: the most CPU limits of one owner's running sandboxes together, in thousandths of a core; 0: no limit. With it, every create needs that limit."), .reload = true},
    {ROW(owner_memory, OP_SIZE, .preset = "0", .max = 1LL << 60,
         .text = "Quota: the most memory limits of one owner's running sandboxes together; 0: no limit. With it, every create needs that limit."), .reload = true},
    {ROW(owner_disk, OP_SIZE, .preset = "0", .max = 1LL << 60,
         .text = "Quota: the most disk limits of one owner's sandboxes together; 0: no limit. With it, every create needs that limit."), .reload = true},
    {ROW(owner_tasks, OP_INT, .preset = "0", .max = 1000000,
         .text = "Quota: the most tasks of one owner that have not ended; 0: no limit."), .reload = true},
    {ROW(tenant_sandboxes, OP_INT, .preset = "0", .max = 1000000,
         .text = "Quota: the most sandboxes of one tenant; 0: no limit."), .reload = true},
    {ROW(tenant_running, OP_INT, .preset = "0", .max = 1000000,
         .text = "Quota: the most running sandboxes of one tenant; 0: no limit."), .reload = true},
    {ROW(tenant_cpu, OP_INT, .preset = "0", .max = 1000000000,
         .text = "Quota: the most CPU limits of one tenant's running sandboxes together, in thousandths of a core; 0: no limit. With it, every create needs that limit."), .reload = true},
    {ROW(tenant_memory, OP_SIZE, .preset = "0", .max = 1LL << 60,
         .text = "Quota: the most memory limits of one tenant's running sandboxes together; 0: no limit. With it, every create needs that limit."), .reload = true},
    {ROW(tenant_disk, OP_SIZE, .preset = "0", .max = 1LL << 60,
         .text = "Quota: the most disk limits of one tenant's sandboxes together; 0: no limit. With it, every create needs that limit."), .reload = true},
    {ROW(tenant_tasks, OP_INT, .preset = "0", .max = 1000000,
         .text = "Quota: the most tasks of one tenant that have not ended; 0: no limit."), .reload = true},
    {ROW(total_running, OP_INT, .preset = "0", .max = 1000000,
         .text = "Quota: the most running sandboxes; 0: no limit."), .reload = true},
    {ROW(total_cpu, OP_INT, .preset = "0", .max = 1000000000,
         .text = "Quota: the most CPU limits of all running sandboxes together, in thousandths of a core; 0: no limit. With it, every create needs that limit."), .reload = true},
    {ROW(total_memory, OP_SIZE, .preset = "0", .max = 1LL << 60,
         .text = "Quota: the most memory limits of all running sandboxes together; 0: no limit. With it, every create needs that limit."), .reload = true},
    {ROW(total_disk, OP_SIZE, .preset = "0", .max = 1LL << 60,
         .text = "Quota: the most disk limits of all sandboxes together; 0: no limit. With it, every create needs that limit."), .reload = true},
    {ROW(volumes_max, OP_INT, .preset = "4096", .min = 1, .max = 1000000,
         .text = "Maximum number of volumes."), .reload = true},
    {ROW(secrets_max, OP_INT, .preset = "4096", .min = 1, .max = 1000000,
         .text = "Maximum number of secrets."), .reload = true},
    {ROW(execs_max, OP_INT, .preset = "256", .min = 1, .max = 512,
         .text = "Maximum number of commands kept for one sandbox, including ended ones. The oldest ended ones are "
                 "removed.")},
    {ROW(output_keep_ms, OP_DURATION, .preset = "0", .max = 315360000000, .example = "30d",
         .text = "How long ended commands are kept, with their output and the recordings made from it; 0: as long as "
                 "their sandbox.")},
    {ROW(command_time_ms, OP_DURATION, .preset = "24h", .max = 31536000000,
         .text = "How long a command may run whose request does not say; 0: without a limit. See docs/policies.md.")},
    {ROW(session_time_ms, OP_DURATION, .preset = "30d", .max = 31536000000,
         .text = "The same for sessions: terminals with a name; 0: without a limit.")},
    {ROW(agent_policy, OP_STR, .preset = "", .max = 63,
         .text = "The policy of all sandboxes that agents make and of all commands they start, besides others; it "
                 "must exist. Empty: none.")},
    {ROW(output_bytes, OP_SIZE, .preset = "64m", .min = 64 * KIB, .max = 1LL << 40,
         .text = "Bytes of a command's output to keep, if its request does not say. The oldest output is dropped.")},
    {ROW(relay_output_bytes, OP_SIZE, .preset = "1m", .min = 64 * KIB, .max = 1LL << 40,
         .text = "The same for commands that a sandbox starts through its relay, because their logs are on the "
                 "host's disk. All of them together take at most the disk limit of the sandbox, if it has one.")},
    {ROW(disk_reserve, OP_SIZE, .preset = "256m", .min = 0, .max = 1LL << 50,
         .text = "Space to keep free on the filesystem of the state directory, so that holtd can always write its "
                 "own records. With less, creates, images, uploads to disks and output logs wait or are refused. At "
                 "most a quarter of the filesystem; 0: nothing.")},
    {ROW(seed_image, OP_STR, .preset = "", .max = 512,
         .text = "Image of sandboxes that clients of the other systems create without naming one. Empty: the default "
                 "of that system, which image_aliases maps to 'host'."),
     .reload = true},
    {ROW(image_aliases, OP_LIST, .preset = "ubuntu:22.04=host,sandbox-base:dev=host,agentbox-sandbox:latest=host,ubuntu-base=host", .max = 256,
         .text = "Other names for images, 'NAME=IMAGE', for clients of other systems that name theirs. An image that "
                 "really has the name is preferred. The reply names the image that was used."),
     .check = check_image_alias, .reload = true},
    {ROW(image_registry, OP_STR, .preset = "docker.io", .min = 1, .max = 255,
         .text = "Registry of image references without one."), .reload = true},
    {ROW(image_insecure, OP_BOOL, .preset = "false",
         .text = "Use registries without TLS. By default that is done on loopback only."), .reload = true},
    {ROW(image_bytes_max, OP_SIZE, .preset = "32g", .min = 1 * MIB, .max = 1LL << 44,
         .text = "Maximum size of an image archive, and of the content of one layer.")},
    {ROW(image_files_max, OP_INT, .preset = "2000000", .min = 100, .max = 100000000,
         .text = "Maximum number of files in one layer.")},
    {ROW(image_ms, OP_DURATION, .preset = "1h", .min = 1 * SECOND, .max = 24LL * HOUR,
         .text = "Maximum time for unpacking one layer.")},
    {ROW(images_max, OP_INT, .preset = "1000", .min = 1, .max = 100000,
         .text = "Maximum number of images.")},
    {ROW(snapshots_max, OP_INT, .preset = "128", .min = 1, .max = 100000,
         .text = "Maximum number of snapshots of one sandbox, without automatic ones."),
     .reload = true},
    {ROW(diff_ignore, OP_LIST,
         .preset = "/run,/tmp,/var/tmp,/var/cache,/var/log,/var/lib/apt/lists,/root/.cache,/home/*/.cache",
         .max = 256, .example = "/tmp,/var/log,/home/*/.cache",
         .text = "Trees whose differences are not shown, unless a request asks for all: absolute paths, '*' for a part "
                 "of one name."),
     .reload = true},
    {ROW(diffs_max, OP_INT, .preset = "4", .min = 1, .max = 64,
         .text = "Maximum number of comparisons of files at the same time, each in a sandbox of its own."),
     .reload = true},
    {ROW(agent_heartbeat_ms, OP_DURATION, .preset = "30s", .min = 100, .max = 24LL * HOUR,
         .text = "A registered agent without a heartbeat for this long counts as offline."),
     .reload = true},
    {ROW(agent_cycle, OP_INT, .preset = "6", .min = 1, .max = 1000000,
         .text = "Number of heartbeats within which an agent must make a checkpoint."),
     .reload = true},
    {ROW(agent_missed, OP_INT, .preset = "3", .min = 1, .max = 1000000,
         .text = "An agent without a checkpoint for this many cycles counts as stalled."),
     .reload = true},
    {ROW(agent_tasks, OP_INT, .preset = "0", .max = 1000000,
         .text = "Maximum number of open tasks, on all boards, of an agent that registers without a limit; 0: the "
                 "limits of the boards only."),
     .reload = true},
    {ROW(task_grace_ms, OP_DURATION, .preset = "60s", .max = 24LL * HOUR,
         .text = "Tasks of an agent that is offline or revoked for longer than this return to 'ready'."),
     .reload = true},
    {ROW(message_rate, OP_INT, .preset = "60", .max = 1000000,
         .text = "Messages that one sender may send per minute; 0: no limit."),
     .reload = true},
    {ROW(message_bytes, OP_SIZE, .preset = "64k", .min = 1, .max = 1048576,
         .text = "Maximum size of one message."),
     .reload = true},
    {ROW(inbox_max, OP_INT, .preset = "10000", .min = 1, .max = 1000000,
         .text = "Maximum number of messages in one inbox. If it is full, the oldest acknowledged message is "
                 "removed."),
     .reload = true},
    {ROW(team_max, OP_INT, .preset = "10000", .min = 1, .max = 1000000,
         .text = "Maximum number of agents, of projects, of inboxes, and of tasks and files of one project."),
     .reload = true},
    {ROW(proposals_max, OP_INT, .preset = "1000", .min = 1, .max = 1000000,
         .text = "Maximum number of pending proposals of one agent."),
     .reload = true},
    {ROW(questions_max, OP_INT, .preset = "100", .min = 1, .max = 100000,
         .text = "Undecided questions to people of one asker."),
     .reload = true},
    {ROW(prompts, OP_BOOL, .preset = "true",
         .text = "Watch the terminals of sessions: one that waits at a prompt becomes an approval of kind 'prompt'."),
     .reload = true},
    {ROW(approval_two_people, OP_LIST, .preset = "", .max = 16, .example = "destructive,irreversible",
         .text = "Kinds of questions that two people must say yes to: proposal, egress, ask, destructive, sensitive, irreversible, prompt."),
     .check = check_approval_kind, .reload = true},
    {ROW(webhook_hosts, OP_LIST, .preset = "", .max = 100, .example = "chat.example.org",
         .text = "Hosts, or host:port, that webhooks may be sent to. Default: none, so there are no webhooks."),
     .reload = true},
    {ROW(file_bytes, OP_SIZE, .preset = "10m", .min = 1, .max = 1LL << 30,
         .text = "Maximum size of one file of a project."),
     .reload = true},
    {ROW(file_versions, OP_INT, .preset = "100", .min = 1, .max = 100000,
         .text = "Number of versions to keep of one file of a project. The oldest are removed."),
     .reload = true},
    {ROW(project_bytes, OP_SIZE, .preset = "1g", .min = 1, .max = 1LL << 44,
         .text = "Maximum size of all files of a project, in all versions."),
     .reload = true},

    {ROW(bindir, OP_STR, .preset = "", .max = 1024,
         .text = "Directory of holt-spawn, holt-init and holt-egress. Empty: the directory of holtd.")},
    {ROW(intercept, OP_BOOL, .preset = "true",
         .text = "Whether holt-egress may intercept TLS to hosts for which a sandbox has a secret, or a rule with "
                 "methods or a path. Sandboxes with a network then trust the authority of this installation (ca.crt "
                 "in the state directory).")},
    {ROW(egress_dns, OP_STR, .preset = "", .max = 1024,
         .text = "Name servers for the hosts that sandboxes may reach: 'ADDRESS[:PORT]', separated by commas. Empty: "
                 "those of the system. Read when holt-egress starts.")},
    {ROW(egress_internal, OP_LIST, .preset = "", .max = 320,
         .text = "Names that may resolve to private and other special addresses, 'HOST=NETWORK': for example a "
                 "mirror in the company's network ('packages.example.org=10.2.0.0/16', "
                 "'*.corp.example=10.0.0.0/8'). Rules of a sandbox that deny them still apply. A change applies to "
                 "networks that are set after it, and to all after a restart."),
     .check = check_internal},
    {ROW(egress_ca_file, OP_STR, .preset = "", .max = 1024,
         .text = "PEM file of authorities that holt-egress trusts, besides the system's, for hosts whose TLS it "
                 "intercepts. Read when holt-egress starts.")},
    {ROW(egress_ask_ms, OP_DURATION, .preset = "5m", .min = 1000, .max = 3600000,
         .text = "How long a person has to decide when a sandbox asks for a host. After that the host is refused."),
     .reload = true},
    {ROW(raw_bridge, OP_STR, .preset = "", .max = 40,
         .text = "Bridge for sandboxes with a raw network, and its network: 'NAME,ADDRESS/BITS'. The operator sets "
                 "up the bridge; its first address is the gateway and the name server. Empty: raw networks are "
                 "refused. Needs root."),
     .check = check_raw_bridge},
    {ROW(hosts, OP_LIST, .preset = "", .max = 32,
         .text = "Hosts of virtual machines, 'NAME=URI KEY=VALUE...' or 'NAME=ADDRESS KEY=VALUE...': docs/vm.md. In "
                 "the file also mappings with name, uri or address, user, port, keyfile, network, pool_dir, "
                 "ssh_config, memory, cpus, machines. Empty: one host, 'local', by 'vm_uri'. Plain names are taken "
                 "as 'host_names', with a warning."),
     .check = conf_host_check},
    {ROW(vm_uri, OP_STR, .preset = "qemu:///system", .min = 1, .max = 255,
         .text = "Libvirt's URI of the host for virtual machines, if 'hosts' is empty."),
     .alias = (const struct setting_alias[]){{"LIBVIRT_URI"}, {"libvirt.uri"}, {NULL}}, .check = conf_check_uri},
    {ROW(vm_network, OP_STR, .preset = "default", .min = 1, .max = 63,
         .text = "Libvirt's network for virtual machines with a raw network, where a host does not name its own."),
     .alias = (const struct setting_alias[]){{"LIBVIRT_NETWORK"}, {"libvirt.network"}, {NULL}}},
    {ROW(vm_pool_dir, OP_STR, .preset = "/var/lib/libvirt/holt", .min = 2, .max = 255,
         .text = "Directory on that host for the disks of virtual machines: libvirt's storage pool 'holt'.")},
    {ROW(vm_accel, OP_CHOICE, .choices = vm_accels, .preset = "auto",
         .text = "How virtual machines run: 'kvm', 'tcg' (emulation, several times slower), or 'auto': KVM if the "
                 "first machine starts with it.")},
    {ROW(oidc_issuer, OP_STR, .preset = "", .max = 500, .example = "https://login.example.org",
         .text = "Issuer of OpenID Connect that logs people in, as it calls itself. Empty: none."), .check = check_issuer, .reload = true},
    {ROW(oidc_client_id, OP_STR, .preset = "", .max = 255, .text = "Name of holt at that issuer."), .reload = true},
    {ROW(oidc_client_secret, OP_STR, .preset = "", .max = 1024, .secret = true,
         .text = "Secret of holt at that issuer. Empty: a public client, protected by PKCE alone."), .reload = true},
    {ROW(oidc_redirect, OP_STR, .preset = "", .max = 500, .example = "https://holt.example.org/holt/v1/login/oidc/callback",
         .text = "Address of the way back, as the issuer knows it. Empty: that of the browser's request."), .reload = true},
    {ROW(oidc_scopes, OP_STR, .preset = "openid profile email", .min = 6, .max = 500, .text = "Scopes to ask for; 'openid' is needed."), .reload = true},
    {ROW(oidc_person_claim, OP_STR, .preset = "preferred_username", .min = 1, .max = 100,
         .text = "Claim that names the person. It must be one that people cannot change themselves."), .reload = true},
    {ROW(oidc_role_claim, OP_STR, .preset = "groups", .min = 1, .max = 100, .text = "Claim that decides the role: a text or a list of texts."), .reload = true},
    {ROW(oidc_roles, OP_LIST, .preset = "", .max = 100, .example = "holt-admins=admin",
         .text = "Roles of people, as VALUE=ROLE: the first whose value the role claim has. '*' is any value. Others may not log in."),
     .check = check_oidc_role, .reload = true},
    {ROW(ssh_ports, OP_STR, .preset = "", .max = 16,
         .text = "Ports on 127.0.0.1 for SSH into sandboxes, one for each that was asked for: FIRST-LAST. Empty: any "
                 "free port. 'off': none."), .check = check_ports, .reload = true},
    {ROW(proxy_host, OP_STR, .preset = "", .max = 255,
         .text = "Address on which the egress proxy also listens on TCP, for clients with credentials; a name: all "
                 "addresses. Empty: only sandboxes can connect to it."), .check = check_proxy_host},
    {ROW(proxy_port, OP_INT, .preset = "15004", .min = 1, .max = 65535,
         .text = "Port of that address.")},
    {ROW(signing_key, OP_STR, .preset = "", .max = 1024, .secret = true,
         .text = "Key that signs those credentials (JWT, HS256; 'session_id' is the sandbox's id). Empty: a new "
                 "random key at each start of holtd.")},
};
/* clang-format on */

/* --- all rows: ours, then those of each group --- */

static struct {
    struct setting *rows; /* built once, at the first look */
    size_t count;
} all;

static size_t alias_count(const struct setting_alias *a)
{
    size_t n = 0;

    for (; a && a->name; a++)
        n++;
    return n;
}

/* The row gets these names too. */
static void add_aliases(struct setting *s, const struct setting_alias *more)
{
    size_t had = alias_count(s->alias), n = alias_count(more);
    struct setting_alias *list = xzalloc((had + n + 1) * sizeof *list);

    if (had > 0)
        memcpy(list, s->alias, had * sizeof *list);
    memcpy(list + had, more, n * sizeof *list);
    if (s->alias_is_heap)
        mem_free((void *)(uintptr_t)s->alias);
    s->alias = list;
    s->alias_is_heap = true;
}

static void add_group(const struct setting_group *g, size_t index)
{
    for (size_t i = 0; i < g->count; i++) {
        all.rows[all.count] = g->rows[i];
        all.rows[all.count++].group = index + 1;
    }
    for (const struct setting_names *n = g->names; n && n->key; n++) {
        const struct setting *s = setting_find(str_of(n->key));

        assert(s);
        add_aliases(&all.rows[setting_row(s)], n->alias);
    }
}

static void build(void)
{
    size_t n = ARRAY_LEN(own_rows);

    for (size_t i = 0; setting_groups[i]; i++)
        n += setting_groups[i]->count;
    all.rows = xzalloc(n * sizeof *all.rows);
    memcpy(all.rows, own_rows, sizeof own_rows);
    all.count = ARRAY_LEN(own_rows);
    for (size_t i = 0; setting_groups[i]; i++) {
        assert(i < CONF_GROUPS_MAX);
        add_group(setting_groups[i], i);
    }
}

const struct setting *setting_at(size_t i)
{
    if (!all.rows)
        build();
    return &all.rows[i];
}

size_t setting_count(void)
{
    if (!all.rows)
        build();
    return all.count;
}

size_t setting_row(const struct setting *s)
{
    return (size_t)(s - setting_at(0));
}

void *setting_member(const struct config *c, const struct setting *s)
{
    char *base = s->group > 0 ? c->groups[s->group - 1] : (char *)(uintptr_t)c;

    return base + s->f.offset;
}

const void *conf_group(const struct config *c, const struct setting_group *g)
{
    size_t i = 0;

    while (setting_groups[i] != g)
        i++;
    return c->groups[i];
}

size_t conf_dirs(const struct config *c, struct conf_dir *to, size_t room)
{
    size_t n = 0;

    for (size_t i = 0; i < setting_count() && n < room; i++) {
        const struct setting *s = setting_at(i);
        char *path = s->dir ? *(char **)setting_member(c, s) : NULL;

        if (path && path[0])
            to[n++] = (struct conf_dir){s->f.name, path, s->dir == SETTING_DIR_SHARED};
    }
    return n;
}

const struct setting *setting_find(struct str key)
{
    for (size_t i = 0; i < setting_count(); i++)
        if (str_eq_c(key, setting_at(i)->f.name))
            return setting_at(i);
    return NULL;
}

bool setting_alias_is(const struct setting_alias *a, struct str name, struct str *ret_rest)
{
    struct str known = str_of(a->name);
    bool open = known.p[known.n - 1] == '*';

    known.n -= open;
    *ret_rest = open && str_starts(name, known) ? str_skip(name, known.n) : (struct str){0};
    return open ? ret_rest->n > 0 : str_eq(name, known);
}

const struct setting *setting_find_alias(struct str name, const struct setting_alias **ret)
{
    for (size_t i = 0; i < setting_count(); i++) {
        for (const struct setting_alias *a = setting_at(i)->alias; a && a->name; a++) {
            if (setting_alias_is(a, name, &(struct str){0})) {
                *ret = a;
                return setting_at(i);
            }
        }
    }
    return NULL;
}

static void add_mapped(struct buf *to, const char *key, char dash, bool upper)
{
    for (; *key; key++) {
        char c = *key == '_' ? dash : *key;

        buf_add_char(to, upper && c >= 'a' && c <= 'z' ? (char)(c - 32) : c);
    }
}

void setting_variable(const struct setting *s, struct buf *to)
{
    buf_add_c(to, "HOLT_");
    add_mapped(to, s->f.name, '_', true);
}

void setting_flag(const struct setting *s, struct buf *to)
{
    buf_add_c(to, "--");
    add_mapped(to, s->f.name, '-', false);
}
