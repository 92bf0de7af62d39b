#include "kube/config.h"

#include "base/fd.h"
#include "base/mem.h"
#include "unit.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char dir[64];

static void put(const char *name, const char *text)
{
    AUTO(mem_free) char *path = xasprintf("%s/%s", dir, name);

    assert_int_equal(file_replace(path, 0600, str_of(text)), 0);
}

static int read_config(const char *files, const char *context, struct kube_config *c, struct err *e)
{
    AUTO(buf_done) struct buf all = {0};
    struct str rest = str_of(files);

    while (rest.n > 0) {
        struct str one = str_cut(rest, ':', &rest);

        buf_printf(&all, "%s%s/" STR_FMT, buf_len(&all) ? ":" : "", dir, STR_ARG(one));
    }
    return kube_config_read(buf_cstr(&all), context, c, e);
}

#define CLUSTERS                                                                                   \
    "clusters:\n"                                                                                  \
    "- name: c1\n"                                                                                 \
    "  cluster:\n"                                                                                 \
    "    server: https://one.test:6443\n"                                                          \
    "    certificate-authority-data: Y2E=\n"                                                       \
    "    tls-server-name: kubernetes\n"                                                            \
    "- name: c2\n"                                                                                 \
    "  cluster:\n"                                                                                 \
    "    server: https://two.test\n"                                                               \
    "    certificate-authority: ca.pem\n"                                                          \
    "    insecure-skip-tls-verify: true\n"
#define CONTEXTS                                                                                   \
    "current-context: a\n"                                                                         \
    "contexts:\n"                                                                                  \
    "- name: a\n"                                                                                  \
    "  context: {cluster: c1, user: u1, namespace: work}\n"                                        \
    "- name: b\n"                                                                                  \
    "  context: {cluster: c2, user: u2}\n"                                                         \
    "- name: plugin\n"                                                                             \
    "  context: {cluster: c1, user: u3}\n"                                                         \
    "- name: half\n"                                                                               \
    "  context: {cluster: c1, user: u4}\n"
#define USERS                                                                                      \
    "users:\n"                                                                                     \
    "- name: u1\n"                                                                                 \
    "  user: {token: secret1}\n"                                                                   \
    "- name: u2\n"                                                                                 \
    "  user: {tokenFile: sub/token, as: someone}\n"                                                \
    "- name: u3\n"                                                                                 \
    "  user:\n"                                                                                    \
    "    exec: {apiVersion: client.authentication.k8s.io/v1, command: aws}\n"                      \
    "- name: u4\n"                                                                                 \
    "  user: {client-certificate-data: Y2E=}\n"

static void contexts_are_resolved(void **state)
{
    AUTO(kube_config_done) struct kube_config a = {0}, b = {0};
    AUTO(mem_free) char *token = xasprintf("%s/sub/token", dir);
    struct err e;

    (void)state;
    put("config", CLUSTERS CONTEXTS USERS);
    put("ca.pem", "pem of two");
    assert_int_equal(read_config("config", NULL, &a, &e), 0);
    assert_string_equal(a.server, "https://one.test:6443");
    assert_string_equal(a.space, "work");
    assert_string_equal(a.token, "secret1");
    assert_string_equal(a.tls_name, "kubernetes");
    assert_string_equal(buf_cstr(&a.ca), "ca");
    assert_false(a.unverified);

    assert_int_equal(read_config("config", "b", &b, &e), 0);
    assert_string_equal(buf_cstr(&b.ca), "pem of two"); /* beside the file */
    assert_string_equal(b.token_file, token);
    assert_string_equal(b.space, "default");
    assert_string_equal(b.as, "someone");
    assert_true(b.unverified);
}

static void the_first_of_several_files_wins(void **state)
{
    AUTO(kube_config_done) struct kube_config c = {0};
    struct err e;

    (void)state;
    put("users", "users:\n- name: u1\n  user: {token: other}\n");
    put("config", CLUSTERS CONTEXTS USERS);
    assert_int_equal(read_config("missing:users:config", NULL, &c, &e), 0);
    assert_string_equal(c.token, "other");
}

static void refused(const char *context, const char *what, enum err_code code)
{
    AUTO(kube_config_done) struct kube_config c = {0};
    struct err e = {0};

    assert_int_equal(read_config("config", context, &c, &e), -1);
    assert_int_equal(e.code, code);
    assert_non_null(strstr(e.msg, what));
    assert_null(strstr(e.msg, "secret1"));
}

static void faults_name_the_entry(void **state)
{
    AUTO(kube_config_done) struct kube_config c = {0};
    struct err e = {0};

    (void)state;
    put("config", CLUSTERS CONTEXTS USERS);
    refused("none", "no context 'none'", ERR_INVALID);
    refused("plugin", "the program aws", ERR_UNSUPPORTED);
    refused("half", "belong together", ERR_INVALID);
    put("config", "current-context: a\ncontexts: [{name: a, context: {cluster: x, user: u}}]\n");
    refused(NULL, "no cluster 'x'", ERR_INVALID);
    put("config", "- just\n- a list\n");
    refused(NULL, "names no context", ERR_INVALID);
    put("config", "a: [\n");
    refused(NULL, "line 2", ERR_INVALID);
    assert_int_equal(read_config("nowhere", NULL, &c, &e), -1);
    assert_int_equal(e.code, ERR_NOT_FOUND);
    assert_non_null(strstr(e.hint, "~/.kube/config"));
}

static void a_pod_has_its_account(void **state)
{
    AUTO(kube_config_done) struct kube_config c = {0}, none = {0};
    AUTO(mem_free)
    char *at = xasprintf("%s/var/run/secrets/kubernetes.io/serviceaccount", dir);
    struct err e = {0};

    (void)state;
    (void)unsetenv("KUBERNETES_SERVICE_HOST");
    assert_int_equal(kube_config_in_cluster(dir, &none, &e), -1);
    assert_int_equal(e.code, ERR_UNSUPPORTED);
    assert_int_equal(dir_make_all(at, 0700), 0);
    put("var/run/secrets/kubernetes.io/serviceaccount/ca.crt", "authority");
    put("var/run/secrets/kubernetes.io/serviceaccount/namespace", "holt");
    (void)setenv("KUBERNETES_SERVICE_HOST", "fd00::1", 1);
    (void)setenv("KUBERNETES_SERVICE_PORT", "443", 1);
    assert_int_equal(kube_config_in_cluster(dir, &c, &e), 0);
    assert_string_equal(c.server, "https://[fd00::1]:443");
    assert_string_equal(c.space, "holt");
    assert_string_equal(buf_cstr(&c.ca), "authority");
    assert_true(str_ends(str_of(c.token_file), STR("/serviceaccount/token")));
}

static int make_dir(void **state)
{
    (void)state;
    (void)snprintf(dir, sizeof dir, "/tmp/holt-kube-XXXXXX");
    return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
    static const char *const names[] = {"config",
                                        "ca.pem",
                                        "users",
                                        "var/run/secrets/kubernetes.io/serviceaccount/ca.crt",
                                        "var/run/secrets/kubernetes.io/serviceaccount/namespace",
                                        "var/run/secrets/kubernetes.io/serviceaccount",
                                        "var/run/secrets/kubernetes.io",
                                        "var/run/secrets",
                                        "var/run",
                                        "var",
                                        ""};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        AUTO(mem_free) char *path = xasprintf("%s/%s", dir, names[i]);

        if (unlink(path) < 0)
            (void)rmdir(path);
    }
    return access(dir, F_OK) < 0 ? 0 : -1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(contexts_are_resolved),
        cmocka_unit_test(the_first_of_several_files_wins),
        cmocka_unit_test(faults_name_the_entry),
        cmocka_unit_test(a_pod_has_its_account),
    };

    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
