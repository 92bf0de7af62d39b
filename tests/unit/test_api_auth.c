#include "api/auth.h"

#include "base/clock.h"
#include "base/mem.h"
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* identity is replaced by one that knows a token, a session and a counter. */
static struct token good = {.id = "tk_good", .role = ROLE_OBSERVER};
static struct token session = {.id = "tk_session", .role = ROLE_ADMIN, .session = true};
static char failed_peer[AUTH_PEER];
static int failures;
static bool throttled;

const struct token *identity_check(struct identity *i, struct str text)
{
    (void)i;
    return str_eq_secret(text, STR("holt_good")) ? &good : NULL;
}

const struct token *identity_check_cookie(struct identity *i, struct str cookie)
{
    (void)i;
    return str_eq_c(cookie, "holts_good") ? &session : NULL;
}

bool identity_throttled(struct identity *i, const char *peer, int64_t *ret_retry_ms)
{
    (void)i, (void)peer;
    *ret_retry_ms = 2500;
    return throttled;
}

void identity_failed(struct identity *i, const char *peer)
{
    (void)i;
    failures++;
    (void)snprintf(failed_peer, sizeof failed_peer, "%s", peer);
}

static char *hosts[] = {(char[]){"holt.example"}, (char[]){"lan:9000"}};
static char *origins[] = {(char[]){"https://dash.example"}};
static struct config conf = {
    .host_names = {hosts, 2},
    .cors_origins = {origins, 1},
    .seed_identity = (char[]){"operator"},
};
static const struct auth auth = {.conf = &conf};

struct ask { /* one request, with what matters set */
    struct http_header headers[6];
    struct http_req req;
    struct peer peer;
    struct listener_info listener;
    struct auth_view v;
};

static struct ask *make(struct ask *a, const char *method, const char *authority)
{
    *a = (struct ask){
        .req = {.method = str_of(method),
                .scheme = STR("http"),
                .authority = str_of(authority),
                .headers = a->headers},
        .peer = {.kind = PEER_TCP, .address = "127.0.0.1:4000", .loopback = true},
        .listener = {.address = (char *)(uintptr_t)"127.0.0.1:8122",
                     .port = 8122,
                     .loopback = true},
    };
    a->v = (struct auth_view){.req = &a->req, .peer = &a->peer, .listener = &a->listener};
    return a;
}

static void header(struct ask *a, const char *name, const char *value)
{
    a->headers[a->req.header_count++] = (struct http_header){str_of(name), str_of(value)};
}

static int setup(void **state)
{
    (void)state;
    conf.auth = CONF_AUTH_TOKEN;
    failures = 0;
    throttled = false;
    return 0;
}

/* --- Host --- */

static void only_our_names_are_hosts(void **state)
{
    static const struct {
        const char *host, *listener;
        bool fine;
    } rows[] = {
        {"127.0.0.1:8122", "127.0.0.1:8122", true},
        {"localhost:8122", "127.0.0.1:8122", true},
        {"LOCALHOST", "127.0.0.1:8122", true},
        {"[::1]:8122", "127.0.0.1:8122", true},
        {"holt.example", "127.0.0.1:8122", true},
        {"Holt.Example:443", "127.0.0.1:8122", true},
        {"lan:9000", "127.0.0.1:8122", true},
        {"lan:9001", "127.0.0.1:8122", false},
        {"evil.example", "127.0.0.1:8122", false},
        {"127.0.0.1.evil.example", "127.0.0.1:8122", false},
        {"localhost.evil.example", "127.0.0.1:8122", false},
        {"evil.localhost", "127.0.0.1:8122", false},
        {"[::1]evil.example", "127.0.0.1:8122", false},
        {"[::1]evil.example", "[::]:8122", false},
        {"", "127.0.0.1:8122", false},
        {"192.168.1.5:8122", "127.0.0.1:8122", false},
        {"192.168.1.5:8122", "192.168.1.5:8122", true},
        {"192.168.1.6:8122", "192.168.1.5:8122", false},
        {"192.168.1.5:8122", "tls://192.168.1.5:8122", true},
        {"192.168.1.5:8122", "0.0.0.0:8122", true},
        {"[fe80::1]:8122", "[::]:8122", true},
        {"evil.example", "0.0.0.0:8122", false},
        {"evil.example", "[::]:8122", false},
    };
    struct ask a;
    struct err e;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        make(&a, "GET", rows[i].host);
        a.listener.address = (char *)(uintptr_t)rows[i].listener;
        e = (struct err){0};
        if ((auth_check_host(&auth, &a.v, &e) == 0) != rows[i].fine)
            fail_msg("Host '%s' at '%s'", rows[i].host, rows[i].listener);
        if (!rows[i].fine) {
            assert_int_equal(e.code, ERR_FORBIDDEN);
            assert_non_null(strstr(e.hint, "host_names"));
        }
    }
}

static void a_unix_socket_has_no_host(void **state)
{
    struct ask a;
    struct err e = {0};

    (void)state;
    make(&a, "GET", "anything.example");
    a.peer.kind = PEER_UNIX;
    assert_int_equal(auth_check_host(&auth, &a.v, &e), 0);
}

/* --- Origin --- */

static void foreign_pages_are_refused(void **state)
{
    static const struct {
        const char *method, *origin, *site;
        bool fine;
    } rows[] = {
        {"POST", NULL, NULL, true},
        {"POST", "http://localhost:8122", NULL, true},
        {"POST", "https://localhost:8122", NULL, false},
        {"POST", "http://localhost:9999", NULL, false},
        {"POST", "http://localhost:81220", NULL, false},
        {"POST", "http://localhost:812", NULL, false},
        {"POST", "https://dash.example", NULL, true},
        {"POST", "https://dash.example.evil.example", NULL, false},
        {"POST", "https://evil.example", NULL, false},
        {"POST", "null", NULL, false},
        {"POST", "", NULL, false},
        {"POST", NULL, "cross-site", false},
        {"POST", NULL, "same-origin", true},
        {"GET", NULL, "cross-site", true}, /* a link on another page */
        {"DELETE", "https://evil.example", NULL, false},
        {"GET", "https://evil.example", NULL, false},
        {"GET", "http://localhost:8122", NULL, true},
    };
    struct ask a;
    struct err e;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        make(&a, rows[i].method, "localhost:8122");
        if (rows[i].origin)
            header(&a, "origin", rows[i].origin);
        if (rows[i].site)
            header(&a, "sec-fetch-site", rows[i].site);
        e = (struct err){0};
        if ((auth_check_origin(&auth, &a.v, &e) == 0) != rows[i].fine)
            fail_msg("row %zu", i);
    }
}

/* --- credentials --- */

static int authenticate(struct ask *a, struct principal *p, enum auth_how *how, struct err *e)
{
    int64_t retry_ms = 0;

    *e = (struct err){0};
    return auth_authenticate(&auth, &a->v, p, how, &retry_ms, e);
}

static void credentials_say_who(void **state)
{
    static const struct {
        const char *name, *value;
        int result;
        enum auth_how how;
        enum role role;
        const char *actor;
    } rows[] = {
        {"x-nothing", "", 0, AUTH_NOBODY, ROLE_NONE, "anonymous"},
        {"authorization", "Bearer holt_good", 0, AUTH_BEARER, ROLE_OBSERVER, "token/tk_good"},
        {"authorization", "bearer   holt_good ", 0, AUTH_BEARER, ROLE_OBSERVER, "token/tk_good"},
        {"authorization", "Bearer holt_bad", -1, AUTH_BEARER, ROLE_NONE, "anonymous"},
        {"authorization", "Bearer", -1, AUTH_BEARER, ROLE_NONE, "anonymous"},
        {"authorization", "Basic holt_good", -1, AUTH_BEARER, ROLE_NONE, "anonymous"},
        {"authorization", "", -1, AUTH_BEARER, ROLE_NONE, "anonymous"},
        {"cookie", "holt_session=holts_good", 0, AUTH_COOKIE, ROLE_ADMIN, "token/tk_session"},
        {"cookie", "a=b; holt_session=holts_good; c", 0, AUTH_COOKIE, ROLE_ADMIN,
         "token/tk_session"},
        {"cookie", "holt_session=old", 0, AUTH_NOBODY, ROLE_NONE, "anonymous"},
        {"cookie", "xholt_session=holts_good", 0, AUTH_NOBODY, ROLE_NONE, "anonymous"},
        {"cookie", "holt_session=holt_good", 0, AUTH_NOBODY, ROLE_NONE, "anonymous"},
    };
    struct ask a;
    struct principal p;
    enum auth_how how;
    struct err e;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        make(&a, "GET", "localhost");
        header(&a, rows[i].name, rows[i].value);
        assert_int_equal(authenticate(&a, &p, &how, &e), rows[i].result);
        if (rows[i].result < 0)
            assert_int_equal(e.code, ERR_UNAUTHENTICATED);
        assert_int_equal(how, rows[i].how);
        assert_int_equal(p.role, rows[i].role);
        assert_string_equal(p.actor, rows[i].actor);
    }
    assert_int_equal(failures, 4); /* a stale cookie is not an attempt */
    assert_string_equal(failed_peer, "127.0.0.1");
}

static void a_wrong_bearer_is_not_saved_by_a_cookie(void **state)
{
    struct ask a;
    struct principal p;
    enum auth_how how;
    struct err e;

    (void)state;
    make(&a, "GET", "localhost");
    header(&a, "authorization", "Bearer holt_bad");
    header(&a, "cookie", "holt_session=holts_good");
    assert_int_equal(authenticate(&a, &p, &how, &e), -1);
}

static void a_throttled_peer_waits_but_a_good_token_passes(void **state)
{
    struct ask a;
    struct principal p;
    enum auth_how how;
    int64_t retry_ms = 0;
    struct err e = {0};

    (void)state;
    throttled = true;
    make(&a, "GET", "localhost");
    header(&a, "authorization", "Bearer holt_bad");
    assert_int_equal(auth_authenticate(&auth, &a.v, &p, &how, &retry_ms, &e), -1);
    assert_int_equal(e.code, ERR_LIMIT);
    assert_int_equal(retry_ms, 2500);
    assert_int_equal(failures, 0);
    make(&a, "GET", "localhost");
    header(&a, "authorization", "Bearer holt_good");
    assert_int_equal(authenticate(&a, &p, &how, &e), 0);
}

static void a_token_in_the_url_is_refused(void **state)
{
    static const char *const queries[] = {"token=holt_good", "a=1&access_token=x", "TOKEN"};
    struct ask a;
    struct principal p;
    enum auth_how how;
    struct err e;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(queries); i++) {
        make(&a, "GET", "localhost");
        header(&a, "authorization", "Bearer holt_good");
        a.req.query = str_of(queries[i]);
        assert_int_equal(authenticate(&a, &p, &how, &e), -1);
        assert_int_equal(e.code, ERR_INVALID);
        assert_null(strstr(e.msg, "holt_good"));
        assert_non_null(strstr(e.hint, "Authorization"));
    }
    make(&a, "GET", "localhost");
    a.req.query = STR("tokens=1&mytoken=2");
    assert_int_equal(authenticate(&a, &p, &how, &e), 0);
}

static void a_relay_is_its_sandbox_whatever_it_carries(void **state)
{
    struct ask a;
    struct principal p;
    enum auth_how how;
    struct err e;

    (void)state;
    conf.auth = CONF_AUTH_OFF;
    make(&a, "GET", "anything.example");
    a.req.query = STR("token=holt_good");
    a.peer = (struct peer){.kind = PEER_INSIDE, .address = "sandbox/sb_a", .loopback = true};
    a.listener = (struct listener_info){
        .address = (char *)(uintptr_t)"relay", .role = LISTEN_RELAY, .loopback = true};
    header(&a, "authorization", "Bearer holt_good");
    header(&a, "cookie", "holt_session=holts_good");
    assert_int_equal(auth_check_host(&auth, &a.v, &e), 0);
    assert_int_equal(authenticate(&a, &p, &how, &e), 0);
    assert_int_equal(how, AUTH_INSIDE);
    assert_int_equal(p.role, ROLE_AGENT);
    assert_string_equal(p.actor, "sandbox/sb_a");
    assert_null(p.token);
    assert_int_equal(failures, 0);
}

static void a_cookie_counts_for_its_own_origin(void **state)
{
    static const struct {
        const char *site, *origin;
        bool counts;
    } rows[] = {
        {NULL, NULL, true},          {"same-origin", NULL, true},
        {"none", NULL, true},        {"same-site", NULL, false}, /* another port of this host */
        {"cross-site", NULL, false}, {"same-site", "https://dash.example", true},
    };
    struct ask a;
    struct principal p;
    enum auth_how how;
    struct err e;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        make(&a, "GET", "localhost");
        header(&a, "cookie", "holt_session=holts_tossed; holt_session=holts_good");
        if (rows[i].site)
            header(&a, "sec-fetch-site", rows[i].site);
        if (rows[i].origin)
            header(&a, "origin", rows[i].origin);
        assert_int_equal(authenticate(&a, &p, &how, &e), 0);
        assert_int_equal(how, rows[i].counts ? AUTH_COOKIE : AUTH_NOBODY);
    }
}

static void a_preview_is_for_its_own_pages(void **state)
{
    static const struct {
        const char *method, *origin, *site, *mode, *dest;
        bool fine;
    } rows[] = {
        {"GET", NULL, NULL, NULL, NULL, true},
        {"GET", NULL, "none", "navigate", "document", true},
        {"GET", NULL, "cross-site", "navigate", "document", true}, /* a link */
        {"GET", NULL, "same-site", "navigate", "iframe", false},
        {"GET", NULL, "cross-site", "no-cors", "image", false},
        {"GET", NULL, "same-site", "no-cors", "script", false},
        {"POST", NULL, "cross-site", "navigate", "document", false},
        {"POST", "http://80-sb-a.localhost:8123", "same-origin", "cors", "empty", true},
        {"GET", "http://80-sb-a.localhost:8123", NULL, "websocket", NULL, true},
        {"POST", "http://81-sb-a.localhost:8123", "same-site", "navigate", "document", false},
        {"GET", "http://80-sb-a.localhost:8122", NULL, NULL, NULL, false},
        {"GET", "https://80-sb-a.localhost:8123", NULL, NULL, NULL, false},
        {"POST", "null", NULL, NULL, NULL, false},
    };
    struct ask a;
    struct err e;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        make(&a, rows[i].method, "80-sb-a.localhost:8123");
        if (rows[i].origin)
            header(&a, "origin", rows[i].origin);
        if (rows[i].site)
            header(&a, "sec-fetch-site", rows[i].site);
        if (rows[i].mode)
            header(&a, "sec-fetch-mode", rows[i].mode);
        if (rows[i].dest)
            header(&a, "sec-fetch-dest", rows[i].dest);
        if ((auth_check_page(&a.v, &e) == 0) != rows[i].fine)
            fail_msg("row %zu", i);
    }
}

static void a_seed_port_has_an_identity_but_never_admin(void **state)
{
    static const struct {
        const char *setting;
        enum role role;
    } rows[] = {
        {"operator", ROLE_OPERATOR}, {"observer", ROLE_OBSERVER}, {"none", ROLE_NONE},
        {"admin", ROLE_OPERATOR},    {"agent", ROLE_OPERATOR},
    };
    char *setting = conf.seed_identity;
    struct ask a;
    struct principal p;
    enum auth_how how;
    struct err e;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        conf.seed_identity = (char *)(uintptr_t)rows[i].setting;
        make(&a, "GET", "localhost");
        a.listener.role = LISTEN_SEED;
        assert_int_equal(authenticate(&a, &p, &how, &e), 0);
        assert_int_equal(p.role, rows[i].role);
        assert_int_equal(how, rows[i].role == ROLE_NONE ? AUTH_NOBODY : AUTH_IMPLIED);
        header(&a, "authorization", "Bearer holt_bad"); /* wrong is wrong there too */
        assert_int_equal(authenticate(&a, &p, &how, &e), -1);
    }
    conf.seed_identity = setting;
    make(&a, "GET", "localhost");
    a.listener.role = LISTEN_SEED;
    a.peer.loopback = false;
    assert_int_equal(authenticate(&a, &p, &how, &e), 0);
    assert_int_equal(p.role, ROLE_NONE);
}

static void auth_off_is_admin_on_loopback_only(void **state)
{
    struct ask a;
    struct principal p;
    enum auth_how how;
    struct err e;

    (void)state;
    conf.auth = CONF_AUTH_OFF;
    make(&a, "GET", "localhost");
    header(&a, "authorization", "Bearer holt_bad");
    assert_int_equal(authenticate(&a, &p, &how, &e), 0);
    assert_int_equal(p.role, ROLE_ADMIN);
    assert_int_equal(how, AUTH_IMPLIED);
    a.listener.loopback = false;
    assert_int_equal(authenticate(&a, &p, &how, &e), -1);
    make(&a, "GET", "localhost");
    a.listener.loopback = false;
    assert_int_equal(authenticate(&a, &p, &how, &e), 0);
    assert_int_equal(p.role, ROLE_NONE);
}

static void peers_are_counted_by_address(void **state)
{
    static const struct {
        struct peer peer;
        const char *name;
    } rows[] = {
        {{.kind = PEER_TCP, .address = "127.0.0.1:4000"}, "127.0.0.1"},
        {{.kind = PEER_TCP, .address = "[2001:db8:1:2:3:4:5:6]:4000"}, "2001:db8:1:2::"},
        {{.kind = PEER_TCP, .address = "[::1]:4000"}, "::"},
        {{.kind = PEER_UNIX, .address = "unix", .uid = 1000}, "uid 1000"},
        {{.kind = PEER_INSIDE, .address = "sandbox/sb_a"}, "sandbox/sb_a"},
    };
    char name[AUTH_PEER];

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        assert_string_equal(auth_peer_name(&rows[i].peer, name), rows[i].name);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(only_our_names_are_hosts, setup),
        cmocka_unit_test_setup(a_unix_socket_has_no_host, setup),
        cmocka_unit_test_setup(foreign_pages_are_refused, setup),
        cmocka_unit_test_setup(credentials_say_who, setup),
        cmocka_unit_test_setup(a_wrong_bearer_is_not_saved_by_a_cookie, setup),
        cmocka_unit_test_setup(a_throttled_peer_waits_but_a_good_token_passes, setup),
        cmocka_unit_test_setup(a_token_in_the_url_is_refused, setup),
        cmocka_unit_test_setup(a_relay_is_its_sandbox_whatever_it_carries, setup),
        cmocka_unit_test_setup(a_cookie_counts_for_its_own_origin, setup),
        cmocka_unit_test_setup(a_preview_is_for_its_own_pages, setup),
        cmocka_unit_test_setup(a_seed_port_has_an_identity_but_never_admin, setup),
        cmocka_unit_test_setup(auth_off_is_admin_on_loopback_only, setup),
        cmocka_unit_test_setup(peers_are_counted_by_address, setup),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
