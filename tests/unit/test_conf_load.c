#include "conf/conf.h"

#include "base/buf.h"
#include "base/fd.h"
#include "base/mem.h"
#include "conf/dialects/sbx/settings.h"
#include "conf/setting.h"
#include "proto/json.h"
#include "unit.h"

#include <unistd.h>

static char dir[] = "/tmp/holt_conf_XXXXXX";
static char yaml[64], envfile[64];

static int setup(void **state)
{
    (void)state;
    conf_set_runtimes((const char *const[]){"plain", "other", NULL});
    assert_non_null(mkdtemp(dir));
    (void)snprintf(yaml, sizeof yaml, "%s/h.yaml", dir);
    (void)snprintf(envfile, sizeof envfile, "%s/h.env", dir);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    (void)unlink(yaml);
    (void)unlink(envfile);
    return rmdir(dir);
}

static void write_file(const char *path, const char *text)
{
    assert_int_equal(file_replace(path, 0600, str_of(text)), 0);
}

#define ARGS(...) ((char *[]){(char *)(uintptr_t)"holtd", __VA_ARGS__ __VA_OPT__(, ) NULL})
#define ENV(...) ((char *[]){__VA_ARGS__ __VA_OPT__(, ) NULL})
#define T(s) ((char *)(uintptr_t)(s)) /* argv and environ are not const */

static struct conf_sources sources(char **argv, char **environ)
{
    struct conf_sources from = {.argv = argv, .environ = environ};

    while (argv[from.argc])
        from.argc++;
    return from;
}

static struct config *loaded(char **argv, char **environ)
{
    struct conf_sources from = sources(argv, environ);
    struct config *c = NULL;
    char *text = NULL;
    struct err e = {0};

    if (conf_load(&from, &c, &text, &e) != 0)
        fail_msg("%s", e.msg);
    return c;
}

static void refused(char **argv, char **environ, const char *message, const char *hint)
{
    struct conf_sources from = sources(argv, environ);
    struct config *c = NULL;
    char *text = NULL;
    struct err e = {0};
    const char *at;

    assert_int_equal(conf_load(&from, &c, &text, &e), -1);
    at = strncmp(e.msg, dir, strlen(dir)) == 0 ? e.msg + strlen(dir) + 1 : e.msg;
    assert_string_equal(at, message);
    assert_string_equal(e.hint, hint);
}

static void file_refused(const char *text, const char *message, const char *hint)
{
    write_file(yaml, text);
    refused(ARGS(T("--config"), yaml), ENV(), message, hint);
}

static const char *source(const struct config *c, const char *key)
{
    return c->sources[setting_row(setting_find(str_of(key)))];
}

static void defaults_are_sane(void **state)
{
    AUTO(config_free) struct config *c = loaded(ARGS(), NULL);

    (void)state;
    assert_int_equal(c->listen.n, 1);
    assert_string_equal(c->listen.v[0], "127.0.0.1:8122");
    assert_false(c->listen_optional[0]);
    assert_string_equal(c->seed_identity, "operator");
    assert_string_equal(c->db, "");
    assert_int_equal(c->auth, CONF_AUTH_TOKEN);
    assert_int_equal(c->log_level, LOG_INFO);
    assert_int_equal(c->log_format, LOG_LOGFMT);
    assert_true(c->metrics);
    assert_int_equal(c->header_max, 65536);
    assert_int_equal(c->body_max, 16 << 20);
    assert_int_equal(c->idle_ms, 75000);
    assert_int_equal(c->events_keep_ms, 0);
    assert_int_equal(c->login_failures, 10);
    assert_int_equal(c->warnings.n, 0);
    assert_int_equal(c->cors_origins.n, 0);
    assert_string_equal(source(c, "listen"), "default");
}

static void the_state_directory_depends_on_the_host(void **state)
{
    struct config *c;

    (void)state;
    assert_int_equal(setenv("STATE_DIRECTORY", "/run/a:/run/b", 1), 0);
    c = loaded(ARGS(), NULL);
    assert_string_equal(c->state, "/run/a");
    c = config_free(c);
    assert_int_equal(unsetenv("STATE_DIRECTORY"), 0);
    c = loaded(ARGS(T("--state=/x")), NULL);
    assert_string_equal(c->state, "/x");
    assert_null(config_free(c));
}

static void a_flag_beats_the_environment_which_beats_the_file(void **state)
{
    struct config *c;

    (void)state;
    write_file(yaml, "body_max: 1m\nheader_max: 2k\nidle_ms: 5s\nlisten: [127.0.0.1:1, '[::1]:2']\n"
                     "host_names: a.example\n");
    write_file(envfile, "# comment\n\nHOLT_HEADER_MAX=3k\nexport HOLT_WRITE_MS='7s'\r\n"
                        "HOLT_IDLE_MS=\"6s\"\n");
    c = loaded(ARGS(T("--config"), yaml, T("--env-file"), envfile, T("--body-max"), T("4m")),
               ENV(T("HOLT_BODY_MAX=3m"), T("HOLT_IDLE_MS=8s"), T("HOME=/x"), T("PATH=/bin")));
    assert_int_equal(c->body_max, 4 << 20);
    assert_int_equal(c->header_max, 3 << 10);
    assert_int_equal(c->idle_ms, 8000); /* the real environment wins over --env-file */
    assert_int_equal(c->write_ms, 7000);
    assert_int_equal(c->listen.n, 2);
    assert_string_equal(c->listen.v[1], "[::1]:2");
    assert_int_equal(c->host_names.n, 1);
    assert_string_equal(source(c, "body_max"), "flag --body-max");
    assert_string_equal(source(c, "idle_ms"), "variable HOLT_IDLE_MS");
    assert_non_null(strstr(source(c, "header_max"), "h.env:3"));
    assert_non_null(strstr(source(c, "host_names"), "h.yaml:5"));
    assert_null(config_free(c));
    c = loaded(ARGS(T("--config"), yaml, T("--listen=127.0.0.1:3"), T("--listen"), T("unix:/s"),
                    T("--seed-ports")),
               ENV(T("HOLT_LISTEN=127.0.0.1:9")));
    assert_int_equal(c->listen.n, 2);
    assert_string_equal(c->listen.v[0], "127.0.0.1:3");
    assert_string_equal(c->listen.v[1], "unix:/s");
    assert_true(c->seed_ports);
    assert_null(config_free(c));
    c = loaded(ARGS(), ENV(T("HOLT_CONFIG="), T("HOLT_TOKEN=x"),
                           T("HOLT_LISTEN=127.0.0.1:1,127.0."
                             "0.1:2")));
    assert_int_equal(c->listen.n, 2);
    assert_null(config_free(c));
}

static void listen_addr_opens_three_ports(void **state)
{
    struct config *c = loaded(ARGS(), ENV(T("LISTEN_ADDR=127.0.0.1:8120"), T("GRPC_PORT=50051")));

    (void)state;
    assert_int_equal(c->listen.n, 5);
    assert_string_equal(c->listen.v[4], "[::1]:50051");
    assert_string_equal(c->listen.v[0], "127.0.0.1:8120");
    assert_string_equal(c->listen.v[2], "127.0.0.1:8122");
    assert_string_equal(c->listen.v[3], "127.0.0.1:50051");
    assert_true(c->listen_optional[0] && c->listen_optional[3]);
    assert_string_equal(source(c, "listen"), "variable LISTEN_ADDR and variable GRPC_PORT");
    assert_null(config_free(c));
    c = loaded(ARGS(), ENV(T("GRPC_PORT=50051"), T("AGENTIC_MGMT_UDS=/run/x.sock")));
    assert_int_equal(c->listen.n, 4);
    assert_string_equal(c->listen.v[0], "127.0.0.1:8122");
    assert_false(c->listen_optional[0]);
    assert_string_equal(c->listen.v[1], "unix:/run/x.sock");
    assert_null(config_free(c));
    c = loaded(ARGS(T("--listen"), T("127.0.0.1:1")), ENV(T("GRPC_PORT=50051")));
    assert_int_equal(c->listen.n, 3);
    assert_string_equal(c->listen.v[0], "127.0.0.1:1");
    assert_string_equal(c->listen.v[1], "127.0.0.1:50051");
    assert_true(!c->listen_optional[0] && c->listen_optional[1] && c->listen_optional[2]);
    assert_null(config_free(c));
    c = loaded(ARGS(T("--listen"), T("127.0.0.1:1")), ENV(T("LISTEN_ADDR=0.0.0.0:8120")));
    assert_int_equal(c->listen.n, 1);
    assert_false(c->listen_optional[0]);
    assert_null(config_free(c));
    refused(ARGS(), ENV(T("LISTEN_ADDR=127.0.0.1:65534")),
            "variable LISTEN_ADDR: port '65534' is not a number from 1 to 65533", "");
    refused(ARGS(), ENV(T("LISTEN_ADDR=8120")), "variable LISTEN_ADDR: '8120' is not 'host:port'",
            "");
}

static void alias_level(const char *variable, enum log_level level)
{
    AUTO(config_free) struct config *c = loaded(ARGS(), ENV(T(variable)));

    assert_int_equal(c->log_level, level);
}

static void names_of_other_systems_are_understood(void **state)
{
    struct config *c;

    (void)state;
    alias_level("RUST_LOG=debug", LOG_DEBUG);
    alias_level("RUST_LOG=TRACE", LOG_DEBUG);
    alias_level("RUST_LOG=foo=debug,warn", LOG_WARN);
    alias_level("RUST_LOG=info,foo=debug", LOG_INFO);
    alias_level("RUST_LOG=foo=debug", LOG_INFO);
    alias_level("RUST_LOG=off", LOG_ERROR);
    alias_level("LOG_LEVEL=warning", LOG_WARN);
    refused(
        ARGS(), ENV(T("RUST_LOG=loud")),
        "variable RUST_LOG: 'loud' is not a log level; it must be off, error, warn, info, debug or "
        "trace",
        "");
    c = loaded(ARGS(), ENV(T("LOG_FORMAT=json"), T("METRICS_ENABLED=0"),
                           T("DATABASE_URL=postgres://u:p@h/d"), T("API_SHUTDOWN_TIMEOUT_SEC=20"),
                           T("HOLT_LOG_LEVEL=error"), T("RUST_LOG=debug")));
    assert_int_equal(c->log_format, LOG_JSON);
    assert_false(c->metrics);
    assert_string_equal(c->db, "postgres://u:p@h/d");
    assert_int_equal(c->shutdown_ms, 20000);
    assert_int_equal(c->log_level, LOG_ERROR);
    assert_null(config_free(c));
    write_file(yaml, "log_level: error\nlogging:\n  level: debug\n");
    c = loaded(ARGS(T("--config"), yaml), NULL);
    assert_int_equal(c->log_level, LOG_ERROR); /* our own key is stronger, whatever the order */
    assert_null(config_free(c));
    write_file(yaml, "api:\n  addr: :8080\n  shutdown_timeout: 5s\nlogging: {level: warn, format: "
                     "text}\ndatabase:\n  url: sqlite:/x\n");
    c = loaded(ARGS(T("--config"), yaml), NULL);
    assert_int_equal(c->listen.n, 2);
    assert_string_equal(c->listen.v[1], "0.0.0.0:8080");
    assert_int_equal(c->log_level, LOG_WARN);
    assert_int_equal(c->shutdown_ms, 5000);
    assert_string_equal(c->db, "sqlite:/x");
    assert_null(config_free(c));
}

static void a_database_in_parts_is_one_url(void **state)
{
    static const struct {
        const char *section, *url;
    } rows[] = {
        {"host: db, port: 5432, name: fluid, user: f, password: 'a@b:c/d'",
         "postgres://f:a%40b%3Ac%2Fd@db:5432/fluid"},
        {"host: 127.0.0.1, name: x, user: u", "postgres://u@127.0.0.1/x"},
        {"host: h, sslmode: require, name: x", "postgres://h/x?sslmode=require"},
        {"host: h, name: x, url: 'postgresql://u@other/y'", "postgresql://u@other/y"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO(mem_free) char *text = xasprintf("database: {%s}\n", rows[i].section);
        AUTO(config_free) struct config *c = NULL;

        write_file(yaml, text);
        c = loaded(ARGS(T("--config"), yaml), NULL);
        assert_string_equal(c->db, rows[i].url);
        assert_int_equal(c->warnings.n, 0);
    }
    write_file(yaml, "database: {host: h, name: [x]}\n");
    refused(ARGS(T("--config"), yaml), NULL,
            "h.yaml:1: 'database.name' must be a string or a whole number", "");
}

static void variables_for_sandboxes_keep_their_commas(void **state)
{
    struct config *c;

    (void)state;
    write_file(yaml, "sbx_env: ['ONE=1,2', TWO=2]\n");
    write_file(envfile, "SANDBOX_ENV_NO_PROXY=a,b\n");
    c = loaded(ARGS(T("--config"), yaml, T("--env-file"), envfile),
               ENV(T("SANDBOX_ENV_NO_PROXY=c, d")));
    assert_int_equal(sbx_settings(c)->env.n, 4);
    assert_string_equal(sbx_settings(c)->env.v[0], "ONE=1,2");
    assert_string_equal(sbx_settings(c)->env.v[2], "NO_PROXY=a,b");
    assert_string_equal(sbx_settings(c)->env.v[3], "NO_PROXY=c, d"); /* the last counts */
    assert_null(config_free(c));
}

/* Go's: what has no unit would be milliseconds here. */
static void durations_of_sbx_have_a_unit(void **state)
{
    static const struct {
        const char *text;
        int64_t ms;
    } good[] = {{"0", 0},        {"0s", 0},          {"-1s", 0},
                {"+90s", 90000}, {"1h30m", 5400000}, {"1.5h", 5400000}};
    static const char *const bad[] = {"15", "-15", "15000", "-x", "x", "-", "+", "15q"};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        AUTO(mem_free) char *env = xasprintf("SANDBOX_IDLE_TTL=%s", good[i].text);
        struct config *c = loaded(ARGS(), ENV(env));

        assert_int_equal(sbx_settings(c)->idle_ttl_ms, good[i].ms);
        assert_null(config_free(c));
    }
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        AUTO(mem_free) char *env = xasprintf("SANDBOX_EXEC_TIMEOUT=%s", bad[i]);
        AUTO(mem_free)
        char *says = xasprintf(
            "variable SANDBOX_EXEC_TIMEOUT: '%s' is not a duration like '30s', '15m' or '1h30m'",
            bad[i]);

        refused(ARGS(), ENV(env), says, "");
    }
    file_refused("idle_ttl: 900\n",
                 "h.yaml:1: '900' is not a duration like '30s', '15m' or '1h30m'", "");
}

/* At the start, by name, and not each create. */
static void limits_of_sbx_are_what_a_sandbox_can_have(void **state)
{
    struct config *c;

    (void)state;
    c = loaded(ARGS(), ENV(T("SANDBOX_CPU_LIMIT=1m"), T("SANDBOX_MEM_LIMIT=4Mi")));
    assert_int_equal(sbx_settings(c)->cpu_millis, 10); /* up to what can be counted */
    assert_int_equal(sbx_settings(c)->memory_bytes, 4 << 20);
    assert_null(config_free(c));
    c = loaded(ARGS(), ENV(T("SANDBOX_CPU_LIMIT=0"), T("SANDBOX_MEM_LIMIT=0")));
    assert_true(sbx_settings(c)->cpu_millis == 0 && sbx_settings(c)->memory_bytes == 0);
    assert_null(config_free(c));
    refused(ARGS(), ENV(T("SANDBOX_MEM_LIMIT=64")),
            "variable SANDBOX_MEM_LIMIT: a sandbox's memory must be from 4Mi to 16Ti, or 0", "");
    refused(ARGS(), ENV(T("SANDBOX_MEM_LIMIT=1Pi")),
            "variable SANDBOX_MEM_LIMIT: a sandbox's memory must be from 4Mi to 16Ti, or 0", "");
    refused(ARGS(), ENV(T("SANDBOX_MEM_LIMIT=1Ei")),
            "variable SANDBOX_MEM_LIMIT: '1Ei' is too large", "");
    refused(
        ARGS(), ENV(T("SANDBOX_DISALLOWED_HOSTS=a.example, no host")),
        "variable SANDBOX_DISALLOWED_HOSTS: setting 'sbx_disallowed_hosts': ' no host' is not a "
        "host, address, network or URL",
        "");
    c = loaded(ARGS(), ENV(T("SANDBOX_DISALLOWED_HOSTS=a.example, .b.example,https://c.example/x,"
                             "10.0.0.0/8,,d.example:99")));
    assert_int_equal(sbx_settings(c)->disallowed_hosts.n, 6);
    assert_null(config_free(c));
}

static void what_has_no_effect_warns(void **state)
{
    struct config *c;

    (void)state;
    write_file(yaml, "libvirt:\n  socket: x\n\n\nwarm_control_namespace: x\n"
                     "warm_pool_size: 2\n");
    write_file(envfile, "SANDBOX_WARM_CONTROL_NAMESPACE=x\nSANDBOX_WARM_POOL_AUTOSIZE=yes\n");
    c = loaded(ARGS(T("--config"), yaml, T("--env-file"), envfile),
               ENV(T("LOG_FILE_ROTATION=daily"), T("image=lower case is nobody's")));
    assert_int_equal(c->warnings.n, 4);
    assert_non_null(
        strstr(c->warnings.v[0], "h.yaml:2: 'libvirt.socket' is understood but has no"));
    assert_non_null(strstr(c->warnings.v[1], "h.yaml:5: 'warm_control_namespace'"));
    assert_non_null(strstr(c->warnings.v[2], "environment: 'LOG_FILE_ROTATION'"));
    assert_non_null(strstr(c->warnings.v[3], "h.env:1: 'SANDBOX_WARM_CONTROL_NAMESPACE'"));
    assert_true(c->pool_size == 2 && c->pool_autosize);
    assert_null(config_free(c));
}

static void hosts_of_machines_are_mappings_or_texts(void **state)
{
    struct config *c;
    struct conf_host h;
    struct err e = {0};

    (void)state;
    write_file(yaml, "hosts:\n"
                     "  - name: rack1\n    address: 10.0.0.5\n    ssh_user: root\n    port: 2222\n"
                     "    memory: 64g\n    cpus: 16\n    keyfile: /etc/holt/key\n"
                     "  - {name: here, uri: 'qemu:///system', network: lab}\n"
                     "  - dash.example.org\n");
    c = loaded(ARGS(T("--config"), yaml), ENV(T("LIBVIRT_NETWORK=guests")));
    assert_int_equal(c->hosts.n, 2);
    assert_int_equal(conf_host_parse(c->hosts.v[0], &h, &e), 0);
    assert_string_equal(h.uri, "qemu+ssh://root@10.0.0.5:2222/system?keyfile=/etc/holt/key");
    assert_true(h.memory_bytes == 64LL << 30 && h.cpus == 16 && h.machines == 0 && !h.network);
    conf_host_done(&h);
    assert_int_equal(conf_host_parse(c->hosts.v[1], &h, &e), 0);
    assert_string_equal(h.name, "here");
    assert_string_equal(h.network, "lab");
    conf_host_done(&h);
    assert_string_equal(c->vm_network, "guests");
    assert_int_equal(c->host_names.n, 1); /* what the setting meant before */
    assert_string_equal(c->host_names.v[0], "dash.example.org");
    assert_int_equal(c->warnings.n, 1);
    assert_non_null(strstr(c->warnings.v[0], "'dash.example.org' in 'hosts' is taken"));
    assert_null(config_free(c));
    file_refused("hosts:\n  - name: x\n",
                 "h.yaml:2: setting 'hosts': a host needs 'name', and 'uri' or 'address'", "");
    file_refused(
        "hosts:\n  - {name: x, uri: 'qemu+ssh://h/system?no_verify=1'}\n",
        "h.yaml:2: setting 'hosts': 'qemu+ssh://h/system?no_verify=1': 'no_verify=' is not "
        "allowed",
        "");
    file_refused(
        "hosts:\n  - {name: x, address: h, memory: [1]}\n",
        "h.yaml:2: setting 'hosts': 'memory' of a host must be a text without blanks, or a "
        "number",
        "");
}

static void what_is_wrong_in_a_file_is_named_with_its_line(void **state)
{
    (void)state;
    file_refused("metrics: true\nlisen: x\n", "h.yaml:2: there is no setting 'lisen'",
                 "did you mean 'listen'?");
    file_refused("LISTEN_ADDR: x:1\n", "h.yaml:1: there is no setting 'LISTEN_ADDR'",
                 "holtd --help lists them all");
    file_refused("logging:\n  levl: x\n", "h.yaml:2: there is no setting 'logging.levl'",
                 "holtd --help lists them all");
    file_refused(
        "body_max: 12q\n",
        "h.yaml:1: setting 'body_max' is \"12q\"; it must be a size like '64k', '16m' or a "
        "number of bytes, from 1k to 1t",
        "");
    file_refused("header_count_max: 5000\n",
                 "h.yaml:1: setting 'header_count_max' is 5000; it must be from 8 to 4096", "");
    file_refused("\nlog_level: loud\n",
                 "h.yaml:2: setting 'log_level' is \"loud\"; it must be one of error, warn, info, "
                 "debug",
                 "");
    file_refused("metrics: [1]\n",
                 "h.yaml:1: setting 'metrics' is a list; it must be true or false", "");
    file_refused("idle_ms: 1.5\n",
                 "h.yaml:1: setting 'idle_ms' is a number with a fraction; it must be a duration "
                 "like '30s', '15m' or a number of milliseconds, from 1s to 1d",
                 "");
    file_refused("listen:\n  - 127.0.0.1:1\n  - nowhere\n",
                 "h.yaml:3: setting 'listen': 'nowhere' is not an address; it must be 'host:port', "
                 "'[v6]:port' or 'unix:/PATH', with 'tls://' before it for TLS only",
                 "");
    file_refused("db: mysql://x\n",
                 "h.yaml:1: setting 'db': it must be 'sqlite:PATH' or 'postgres://…'", "");
    file_refused(
        "seed_identity: admin\n",
        "h.yaml:1: setting 'seed_identity' is \"admin\"; it must be one of none, observer, "
        "operator",
        "");
    file_refused("cors_origins: example\n",
                 "h.yaml:1: setting 'cors_origins': 'example' is not an origin; it must be like "
                 "'https://dash.example.org'",
                 "");
}

static void a_broken_file_is_named(void **state)
{
    char message[200];

    (void)state;
    write_file(yaml, "a: [\n");
    (void)snprintf(message, sizeof message,
                   "settings file '%s': line 2, column 1: did not find expected node content",
                   yaml);
    refused(ARGS(T("--config"), yaml), NULL, message, "");
    write_file(yaml, "- a\n");
    (void)snprintf(message, sizeof message,
                   "settings file '%s' must be a mapping of keys to values", yaml);
    refused(ARGS(T("--config"), yaml), NULL, message, "");
    refused(ARGS(T("--config=/no/such.yaml")), NULL,
            "read settings file '/no/such.yaml': No such file or directory", "");
    refused(ARGS(T("--env-file=/no/such.env")), NULL,
            "read environment file '/no/such.env': No such file or directory", "");
    write_file(envfile, "OK=1\nnot a line\n");
    refused(ARGS(T("--env-file"), envfile), NULL,
            "h.env:2: 'not a line' is not of the form "
            "NAME=VALUE",
            "");
    write_file(envfile, "A='x\n");
    refused(ARGS(T("--env-file"), envfile), NULL,
            "h.env:1: the quotes around the value do not match", "");
    write_file(envfile, "HOLT_BOGUS=1\n");
    refused(ARGS(T("--env-file"), envfile), NULL, "h.env:1: there is no setting 'HOLT_BOGUS'",
            "holtd --help lists them all");
    write_file(yaml, "# nothing\n");
    assert_null(config_free(loaded(ARGS(T("--config"), yaml), NULL)));
}

static void wrong_variables_and_flags_are_named(void **state)
{
    (void)state;
    refused(ARGS(), ENV(T("HOLT_LISTN=x")), "environment: there is no setting 'HOLT_LISTN'",
            "did you mean 'HOLT_LISTEN'?");
    refused(ARGS(), ENV(T("HOLT_METRICS=maybe")),
            "variable HOLT_METRICS: setting 'metrics' is \"maybe\"; it must be true or false", "");
    refused(ARGS(T("--lisen"), T("x")), NULL, "command line: there is no flag '--lisen'",
            "did you mean '--listen'?");
    refused(ARGS(T("--listen")), NULL, "flag --listen needs a value", "");
    refused(ARGS(T("--help=1")), NULL, "flag --help takes no value", "");
    refused(ARGS(T("stray")), NULL, "'stray' is not a flag", "holtd --help lists the flags");
    refused(ARGS(T("--seed-ports=maybe")), NULL,
            "flag --seed-ports: setting 'seed_ports' is \"maybe\"; it must be true or false", "");
    refused(ARGS(T("--tls-cert=/c")), NULL, "set both 'tls_cert' and 'tls_key', or neither", "");
    refused(ARGS(T("--listen=tls://127.0.0.1:1")), NULL,
            "'listen' has 'tls://127.0.0.1:1', but 'tls_cert' is not set", "");
    refused(ARGS(T("--auth"), T("off"), T("--listen"), T("0.0.0.0:1")), NULL,
            "'auth' is off, but 'listen' has '0.0.0.0:1', which other machines can reach",
            "listen on 127.0.0.1, or leave 'auth' at 'token'");
}

static void a_list_keeps_its_bound(void **state)
{
    AUTO(buf_done) struct buf b = {0};

    (void)state;
    buf_add_c(&b, "listen:\n");
    for (int i = 1; i <= 65; i++)
        buf_printf(&b, "- 127.0.0.1:%d\n", i);
    file_refused(buf_cstr(&b),
                 "h.yaml:66: setting 'listen' has 65 entries; it must have at most 64", "");
}

static char *asked(char **argv)
{
    struct conf_sources from = sources(argv, NULL);
    struct config *c = NULL;
    char *text = NULL;
    struct err e = {0};

    assert_int_equal(conf_load(&from, &c, &text, &e), 1);
    assert_null(c);
    return text;
}

static void questions_are_answered(void **state)
{
    AUTO(mem_free) char *help = asked(ARGS(T("-h"), T("--body-max=wrong")));
    AUTO(mem_free) char *version = asked(ARGS(T("--version")));
    AUTO(mem_free) char *api = asked(ARGS(T("--print-openapi")));
    AUTO(mem_free) char *doc = asked(ARGS(T("--print-settings-doc")));

    (void)state;
    assert_non_null(strstr(help, "  --log-level VALUE\n"));
    assert_int_equal(strncmp(version, "holtd ", 6), 0);
    assert_int_equal(api[0], '{');
    assert_non_null(strstr(doc, "\n## listen\n"));
}

static void printed_settings_can_be_read_again(void **state)
{
    AUTO(mem_free) char *once = NULL, *twice = NULL;

    (void)state;
    once = asked(ARGS(T("--print-settings"), T("--body-max=2m"), T("--host-names=a,b"),
                      T("--db=postgres://u:p4ssw0rd@h/d")));
    assert_non_null(strstr(once, "body_max: 2097152 # flag --body-max\n"));
    assert_non_null(strstr(once, "host_names: [\"a\",\"b\"] # flag --host-names\n"));
    assert_null(strstr(once, "p4ssw0rd"));
    assert_non_null(strstr(once, "# db is set and not shown # flag --db\n"));
    write_file(yaml, once);
    twice = asked(ARGS(T("--print-settings"), T("--config"), yaml));
    assert_non_null(strstr(twice, "body_max: 2097152 # "));
    assert_non_null(strstr(twice, "host_names: [\"a\",\"b\"] # "));
}

static void the_api_gets_values_and_sources(void **state)
{
    AUTO(config_free) struct config *c = loaded(ARGS(T("--db=postgres://u:hidden@h/d")), NULL);
    AUTO(json_decref) json_t *tree = NULL;
    AUTO(buf_done) struct buf b = {0};
    struct err e = {0};
    const json_t *first;

    (void)state;
    conf_print_json(c, &b);
    assert_null(strstr(buf_cstr(&b), "hidden"));
    assert_int_equal(json_read(buf_str(&b), &tree, &e), 0);
    assert_int_equal(json_array_size(json_object_get(tree, "settings")), setting_count());
    first = json_array_get(json_object_get(tree, "settings"), 0);
    assert_string_equal(json_string_value(json_object_get(first, "key")), "listen");
    assert_true(json_is_array(json_object_get(first, "value")));
    assert_string_equal(json_string_value(json_object_get(first, "source")), "default");
}

static void a_reload_changes_what_may_change(void **state)
{
    struct conf_sources from = sources(ARGS(T("--config"), yaml), NULL);
    struct config *c;
    struct err e = {0};

    (void)state;
    write_file(yaml, "body_max: 1m\nlisten: 127.0.0.1:1\nhost_names: [a]\nseed_identity: none\n");
    c = loaded(from.argv, NULL);
    write_file(yaml, "body_max: 2m\nlisten: 127.0.0.1:2\nhost_names: [b, c]\nlog_level: debug\n");
    assert_int_equal(conf_reload(c, &from, &e), 0);
    assert_int_equal(c->body_max, 2 << 20);
    assert_int_equal(c->host_names.n, 2);
    assert_int_equal(c->log_level, LOG_DEBUG);
    assert_string_equal(c->seed_identity, "operator");
    assert_string_equal(c->listen.v[0], "127.0.0.1:1");
    assert_int_equal(c->warnings.n, 1);
    assert_non_null(strstr(c->warnings.v[0],
                           "h.yaml:2: setting 'listen' has changed; it takes effect at the next"));
    write_file(yaml, "body_max: 3m\nbogus: 1\n");
    assert_int_equal(conf_reload(c, &from, &e), -1);
    assert_int_equal(c->body_max, 2 << 20);
    assert_null(config_free(c));
}

static void loopback_is_told_by_the_form(void **state)
{
    (void)state;
    assert_true(conf_is_loopback("127.0.0.1:1"));
    assert_true(conf_is_loopback("tls://[::1]:1"));
    assert_true(conf_is_loopback("unix:/x"));
    assert_true(conf_is_loopback("localhost:1"));
    assert_false(conf_is_loopback("0.0.0.0:1"));
    assert_false(conf_is_loopback("[::]:1"));
    assert_false(conf_is_loopback("example.org:1"));
    assert_false(conf_is_loopback("127.evil.example:1"));
    for (size_t i = 0; conf_seed_listen[i]; i++)
        assert_true(conf_is_loopback(conf_seed_listen[i]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_are_sane),
        cmocka_unit_test(the_state_directory_depends_on_the_host),
        cmocka_unit_test(a_flag_beats_the_environment_which_beats_the_file),
        cmocka_unit_test(listen_addr_opens_three_ports),
        cmocka_unit_test(names_of_other_systems_are_understood),
        cmocka_unit_test(a_database_in_parts_is_one_url),
        cmocka_unit_test(variables_for_sandboxes_keep_their_commas),
        cmocka_unit_test(durations_of_sbx_have_a_unit),
        cmocka_unit_test(limits_of_sbx_are_what_a_sandbox_can_have),
        cmocka_unit_test(what_has_no_effect_warns),
        cmocka_unit_test(hosts_of_machines_are_mappings_or_texts),
        cmocka_unit_test(what_is_wrong_in_a_file_is_named_with_its_line),
        cmocka_unit_test(a_broken_file_is_named),
        cmocka_unit_test(wrong_variables_and_flags_are_named),
        cmocka_unit_test(a_list_keeps_its_bound),
        cmocka_unit_test(questions_are_answered),
        cmocka_unit_test(printed_settings_can_be_read_again),
        cmocka_unit_test(the_api_gets_values_and_sources),
        cmocka_unit_test(a_reload_changes_what_may_change),
        cmocka_unit_test(loopback_is_told_by_the_form),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
