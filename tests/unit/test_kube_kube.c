#include "kube/kube.h"

#include "base/clock.h"
#include "kube/exec.h"
#include "kube/watch.h"
#include "kube_server.h"
#include "proto/ws.h"

#include <signal.h>
#include <stdlib.h>

#define OK(json) "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n" json
#define FAIL(line, more, json) "HTTP/1.1 " line "\r\n" more "connection: close\r\n\r\n" json
#define STATUS(code, reason, message)                                                              \
    "{\"kind\":\"Status\",\"status\":\"Failure\",\"code\":" #code ",\"reason\":\"" reason          \
    "\",\"message\":\"" message "\"}"

struct world {
    uv_loop_t loop;
    struct kube *kube;
    struct kube_server server;
    int done, status, exit;
    struct err e;
    char name[64];
    struct buf seen; /* of watches: "+a~b-c" */
    struct buf out;
    struct kube_watch *watch;
    struct kube_exec *exec;
    size_t until; /* the watch is freed at this length of seen */
    int synced, sick, well;
    bool ended_in;
};

static void world_start(struct world *w, const struct kube_step *steps, size_t n,
                        const char *token_file)
{
    struct kube_config c = {.server = NULL};
    struct err e;

    *w = (struct world){.exit = -2};
    assert_int_equal(uv_loop_init(&w->loop), 0);
    kube_server_start(&w->server, steps, n);
    c.server = xasprintf("http://127.0.0.1:%d", w->server.port);
    c.token = token_file ? NULL : xstrdup("t0");
    c.token_file = token_file ? xstrdup(token_file) : NULL;
    assert_int_equal(kube_new(&w->loop, &c,
                              &(struct kube_limits){.retry_ms = 2, .deadline_ms = 8000}, &w->kube,
                              &e),
                     0);
    kube_config_done(&c);
}

static void world_end(struct world *w)
{
    w->kube = kube_free(w->kube);
    (void)uv_run(&w->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&w->loop), 0);
    kube_server_end(&w->server);
    buf_done(&w->seen);
    buf_done(&w->out);
}

static void until(struct world *w, const int *what, int value)
{
    int64_t by = clock_mono_ms() + 10000;

    while (*what < value && clock_mono_ms() < by)
        (void)uv_run(&w->loop, UV_RUN_ONCE);
    assert_true(*what >= value);
}

static void called(void *arg, int status, const json_t *reply, const struct err *e)
{
    struct world *w = arg;
    const char *name = json_string_value(json_object_get(reply, "name"));

    w->done++;
    w->status = status;
    w->e = *e;
    (void)snprintf(w->name, sizeof w->name, "%s", name ? name : "");
}

static void ask(struct world *w, const char *method, const char *body)
{
    struct err e;

    assert_non_null(kube_call(
        w->kube,
        &(struct kube_request){.method = method, .target = "/api/v1/pods", .body = str_of(body)},
        called, w, &e));
    until(w, &w->done, 1);
}

/* ---- calls ---- */

static void a_call_is_answered(void **state)
{
    static const struct kube_step steps[] = {
        {.wants = "authorization: Bearer t0\r\n", .reply = OK("{\"name\":\"a\"}")}};
    struct world w;

    (void)state;
    world_start(&w, steps, ARRAY_LEN(steps), NULL);
    ask(&w, "GET", NULL);
    assert_int_equal(w.e.code, ERR_NONE);
    assert_string_equal(w.name, "a");
    world_end(&w);
}

static void a_busy_server_is_asked_again(void **state)
{
    static const struct kube_step steps[] = {
        {.reply = FAIL("429 Too Many Requests", "retry-after: 1\r\n",
                       STATUS(429, "TooManyRequests", "slow down"))},
        {.reply = FAIL("503 Service Unavailable", "", "")},
        {.wants = "\r\n\r\n{\"x\":1}", .reply = OK("{\"name\":\"b\"}")}};
    struct world w;
    int64_t began = clock_mono_ms();

    (void)state;
    world_start(&w, steps, ARRAY_LEN(steps), NULL);
    ask(&w, "POST", "{\"x\":1}"); /* neither reply means that it was done */
    assert_string_equal(w.name, "b");
    assert_true(clock_mono_ms() - began >= 1000);
    world_end(&w);
}

static void a_lost_connection_repeats_only_what_is_harmless(void **state)
{
    static const struct kube_step cut_get[] = {{.reply = NULL}, {.reply = OK("{\"name\":\"c\"}")}};
    static const struct kube_step cut_post[] = {{.reply = NULL}};
    struct world w;

    (void)state;
    world_start(&w, cut_get, ARRAY_LEN(cut_get), NULL);
    ask(&w, "GET", NULL);
    assert_string_equal(w.name, "c");
    world_end(&w);
    world_start(&w, cut_post, ARRAY_LEN(cut_post), NULL);
    ask(&w, "POST", "{}");
    assert_int_equal(w.e.code, ERR_UNAVAILABLE);
    world_end(&w);
}

static void an_expired_token_is_read_again(void **state)
{
    static const struct kube_step steps[] = {
        {.wants = "Bearer old\r\n",
         .reply = FAIL("401 Unauthorized", "", STATUS(401, "Unauthorized", "Unauthorized"))},
        {.wants = "Bearer new\r\n", .reply = OK("{\"name\":\"d\"}")},
        {.wants = "Bearer new\r\n",
         .reply = FAIL("401 Unauthorized", "", STATUS(401, "Unauthorized", "Unauthorized"))},
        {.wants = "Bearer new\r\n",
         .reply = FAIL("401 Unauthorized", "", STATUS(401, "Unauthorized", "Unauthorized"))}};
    char path[] = "/tmp/holt-token-XXXXXX";
    AUTO(fd_close) int fd = mkstemp(path);
    struct kube_auth auth;
    struct world w;

    (void)state;
    assert_int_equal(fd_write_all(fd, "old\n", 4), 0);
    world_start(&w, steps, ARRAY_LEN(steps), path);
    kube_authorise(w.kube, &auth); /* it is fresh: the file is not read for every call */
    assert_int_equal(file_replace(path, 0600, STR("new\n")), 0);
    ask(&w, "GET", NULL);
    assert_string_equal(w.name, "d");
    w.done = 0;
    ask(&w, "GET", NULL); /* not for ever */
    assert_int_equal(w.e.code, ERR_UNAUTHENTICATED);
    assert_int_equal(w.status, 401);
    world_end(&w);
    (void)unlink(path);
}

static void conflicts_and_refusals_are_told(void **state)
{
    static const struct kube_step steps[] = {
        {.wants = "PATCH /api/v1/pods/x?fieldManager=holt HTTP",
         .reply = FAIL("409 Conflict", "", STATUS(409, "Conflict", "conflict with \\\"other\\\""))},
        {.wants = "content-type: application/apply-patch+yaml", .reply = OK("{\"name\":\"e\"}")},
        {.wants = "\"preconditions\":{\"uid\":\"u-1\"}",
         .reply = FAIL("403 Forbidden", "", STATUS(403, "Forbidden", "exceeded quota: q"))}};
    struct world w;
    struct err e;

    (void)state;
    world_start(&w, steps, ARRAY_LEN(steps), NULL);
    assert_non_null(kube_apply(w.kube, "/api/v1/pods/x", STR("{}"), "holt", false, called, &w, &e));
    until(&w, &w.done, 1);
    assert_int_equal(w.e.code, ERR_CONFLICT);
    assert_non_null(strstr(w.e.msg, "conflict with \"other\""));
    assert_non_null(kube_apply(w.kube, "/api/v1/pods/x", STR("{}"), "holt", true, called, &w, &e));
    until(&w, &w.done, 2);
    assert_string_equal(w.name, "e");
    assert_non_null(kube_delete(w.kube, "/api/v1/pods/x", "u-1", 0, called, &w, &e));
    until(&w, &w.done, 3);
    assert_int_equal(w.e.code, ERR_FORBIDDEN);
    assert_non_null(strstr(w.e.hint, "ResourceQuota"));
    world_end(&w);
}

static void an_endless_reply_is_cut(void **state)
{
    static const struct kube_step steps[] = {{.reply = OK("{\"a\":\""), .endless = 64 << 20}};
    struct world w;

    (void)state;
    world_start(&w, steps, ARRAY_LEN(steps), NULL);
    ask(&w, "GET", NULL);
    assert_int_equal(w.e.code, ERR_TOO_LARGE);
    world_end(&w);
}

static void the_rate_is_held(void **state)
{
    static const struct kube_step steps[] = {
        {.reply = OK("{}")}, {.reply = OK("{}")}, {.reply = OK("{}")}, {.reply = OK("{}")}};
    struct kube_config c = {0};
    struct kube *slow = NULL;
    struct world w;
    struct err e;
    int64_t began = clock_mono_ms();

    (void)state;
    world_start(&w, steps, ARRAY_LEN(steps), NULL);
    c.server = xasprintf("http://127.0.0.1:%d", w.server.port);
    assert_int_equal(
        kube_new(&w.loop, &c, &(struct kube_limits){.per_second = 5, .burst = 2}, &slow, &e), 0);
    for (int i = 0; i < 4; i++)
        assert_non_null(kube_call(slow, &(struct kube_request){.method = "GET", .target = "/x"},
                                  called, &w, &e));
    until(&w, &w.done, 4);
    assert_true(clock_mono_ms() - began >= 350); /* two at once, then one in 200 ms */
    kube_free(slow);
    kube_config_done(&c);
    world_end(&w);
}

static void freeing_ends_every_call(void **state)
{
    static const struct kube_step steps[] = {{.reply = "HTTP/1.1 200 OK\r\n", .hold = true}};
    struct world w;
    struct err e;

    (void)state;
    world_start(&w, steps, ARRAY_LEN(steps), NULL);
    for (int i = 0; i < 3; i++) {
        (void)uv_run(&w.loop, UV_RUN_NOWAIT);
        if (i < 1)
            assert_non_null(kube_call(
                w.kube, &(struct kube_request){.method = "GET", .target = "/x"}, called, &w, &e));
    }
    assert_int_equal(w.done, 0);
    world_end(&w);
    assert_int_equal(w.done, 1);
    assert_int_equal(w.e.code, ERR_CANCELLED);
}

/* ---- watches ---- */

#define POD(name, version)                                                                         \
    "{\"metadata\":{\"name\":\"" name "\",\"namespace\":\"n\",\"resourceVersion\":\"" version "\"" \
    "}}"
#define EVENT(type, object) "{\"type\":\"" type "\",\"object\":" object "}\n"
#define LIST(version, items)                                                                       \
    OK("{\"metadata\":{\"resourceVersion\":\"" version "\"},\"items\":[" items "]}")

static void saw(void *arg, enum kube_change change, const json_t *object)
{
    struct world *w = arg;
    const char *name =
        json_string_value(json_object_get(json_object_get(object, "metadata"), "name"));

    buf_printf(&w->seen, "%c%s", "+~-"[change], name);
    if (w->until > 0 && buf_len(&w->seen) >= w->until)
        w->watch = kube_watch_free(w->watch);
}

static void saw_all(void *arg)
{
    ((struct world *)arg)->synced++;
}

static void saw_health(void *arg, const struct err *e)
{
    struct world *w = arg;

    if (e->code == ERR_NONE)
        w->well++;
    else
        w->sick++;
    w->e = *e;
}

static void watch_until(struct world *w, const struct kube_step *steps, size_t n,
                        const char *expected)
{
    static const struct kube_watch_ops ops = {saw, saw_all, saw_health};
    int64_t by = clock_mono_ms() + 10000;

    world_start(w, steps, n, NULL);
    w->until = strlen(expected);
    w->watch = kube_watch_new(w->kube, "/api/v1/pods", "holt.dev/installation=i1", &ops, w);
    while (w->watch && clock_mono_ms() < by)
        (void)uv_run(&w->loop, UV_RUN_ONCE);
    if (buf_len(&w->seen) == 0)
        buf_add_c(&w->seen, "");
    assert_string_equal(buf_cstr(&w->seen), expected);
    assert_null(w->watch);
}

static void a_watch_follows_a_list(void **state)
{
    static const struct kube_step steps[] = {
        {.wants = "labelSelector=holt.dev%2Finstallation%3Di1",
         .reply =
             OK("{\"metadata\":{\"resourceVersion\":\"5\",\"continue\":\"p 2\"},\"items\":[" POD(
                 "a", "3") "]}")},
        {.wants = "continue=p%202", .reply = LIST("5", POD("b", "4"))},
        {.wants = "watch=1&allowWatchBookmarks=true&timeoutSeconds=240&resourceVersion=5&",
         .reply = OK(EVENT("MODIFIED", POD("a", "6")) EVENT("BOOKMARK", POD("", "9")))},
        {.wants = "resourceVersion=9&",
         .reply = OK(EVENT("DELETED", POD("b", "10")) EVENT("ADDED", POD("c", "11")))}};
    struct world w;

    (void)state;
    watch_until(&w, steps, ARRAY_LEN(steps), "+a+b~a-b+c");
    assert_int_equal(w.synced, 1);
    assert_int_equal(w.sick, 0);
    world_end(&w);
}

static void too_old_a_watch_begins_with_a_list(void **state)
{
    static const struct kube_step steps[] = {
        {.lacks = "watch=1", .reply = LIST("5", POD("a", "3") "," POD("b", "4"))},
        {.wants = "watch=1",
         .reply = OK(EVENT("ERROR", STATUS(410, "Expired", "too old resource version")))},
        {.lacks = "watch=1", .reply = LIST("20", POD("b", "4"))}, /* a went unseen */
        {.wants = "resourceVersion=20&",
         .reply = FAIL("410 Gone", "", STATUS(410, "Gone", "gone"))},
        {.lacks = "watch=1", .reply = LIST("30", POD("b", "4") "," POD("d", "29"))},
    };
    struct world w;

    (void)state;
    watch_until(&w, steps, ARRAY_LEN(steps), "+a+b~b-a~b+d");
    world_end(&w);
}

static void a_watch_cut_in_an_object_continues(void **state)
{
    static const struct kube_step steps[] = {
        {.reply = LIST("5", "")},
        {.wants = "resourceVersion=5&",
         .reply = OK(EVENT("ADDED", POD("a", "6")) "{\"type\":\"ADDED\",\"object\":{\"metada")},
        {.wants = "resourceVersion=6&", .reply = NULL}, /* cut before the head */
        {.wants = "resourceVersion=6&", .reply = OK(EVENT("ADDED", POD("b", "7")))}};
    struct world w;

    (void)state;
    watch_until(&w, steps, ARRAY_LEN(steps), "+a+b");
    assert_int_equal(w.sick, 1); /* one connection gave no reply */
    world_end(&w);
}

static void an_endless_event_is_cut(void **state)
{
    static const struct kube_step steps[] = {
        {.reply = LIST("5", "")},
        {.wants = "watch=1", .reply = OK("{\"type\":\""), .endless = 64 << 20},
        {.lacks = "watch=1", .reply = LIST("8", POD("a", "8"))}};
    struct world w;

    (void)state;
    watch_until(&w, steps, ARRAY_LEN(steps), "+a");
    assert_int_equal(w.e.code, ERR_TOO_LARGE);
    world_end(&w);
}

/* ---- exec ---- */

static void exec_opened(struct kube_exec *x)
{
    struct world *w = kube_exec_arg(x);

    assert_int_equal(kube_exec_write(x, STR("in")), 0);
    w->ended_in = kube_exec_write_end(x);
}

static void exec_out(struct kube_exec *x, struct str bytes)
{
    buf_add_str(&((struct world *)kube_exec_arg(x))->out, bytes);
}

static void exec_err(struct kube_exec *x, struct str bytes)
{
    struct world *w = kube_exec_arg(x);

    buf_printf(&w->out, "[" STR_FMT "]", STR_ARG(bytes));
}

static void exec_closed(struct kube_exec *x, int exit, const struct err *e)
{
    struct world *w = kube_exec_arg(x);

    w->exit = exit;
    w->e = *e;
    w->done++;
}

static void run_exec(struct world *w, const struct kube_step *steps, size_t n)
{
    static const struct kube_exec_ops ops = {exec_opened, exec_out, exec_err, NULL, exec_closed};
    struct err e;

    world_start(w, steps, n, NULL);
    assert_int_equal(kube_exec_start(w->kube,
                                     &(struct kube_exec_request){
                                         .space = "n",
                                         .pod = "p",
                                         .container = "main",
                                         .argv = (const char *const[]){"sh", "-c", "a b&c", NULL},
                                         .in = true,
                                         .ops = &ops,
                                         .arg = w},
                                     &w->exec, &e),
                     0);
    until(w, &w->done, 1);
}

static void frame(struct buf *to, char channel, const char *text)
{
    AUTO(buf_done) struct buf b = {0};

    buf_add_char(&b, channel);
    buf_add_c(&b, text);
    ws_write(to, WS_OP_BINARY, buf_str(&b), NULL);
}

#define ASKS                                                                                       \
    "/api/v1/namespaces/n/pods/p/exec?container=main&stdin=true&stdout=true&stderr=true"           \
    "&tty=false&command=sh&command=-c&command=a%20b%26c HTTP/1.1"

static void a_program_tells_its_exit_status(void **state)
{
    AUTO(buf_done) struct buf frames = {0};
    struct kube_step step = {.wants = ASKS, .accepts = "v5.channel.k8s.io", .reads = 17};
    struct world w;

    (void)state;
    frame(&frames, 1, "");
    frame(&frames, 1, "hello");
    frame(&frames, 2, "oops");
    frame(&frames, 9, "unknown");
    frame(&frames, 3,
          "{\"status\":\"Failure\",\"reason\":\"NonZeroExitCode\",\"details\":{\"causes\":[{"
          "\"reason\":\"ExitCode\",\"message\":\"7\"}]}}");
    ws_write_close(&frames, WS_NORMAL, STR(""), NULL);
    step.frames = buf_str(&frames);
    run_exec(&w, &step, 1);
    assert_int_equal(w.exit, 7);
    assert_string_equal(buf_cstr(&w.out), "hello[oops]");
    assert_true(w.ended_in);
    world_end(&w);
}

static void an_older_server_cannot_end_the_input(void **state)
{
    AUTO(buf_done) struct buf frames = {0};
    struct kube_step step = {.accepts = "v4.channel.k8s.io", .reads = 9};
    struct world w;

    (void)state;
    frame(&frames, 3, "{\"metadata\":{},\"status\":\"Success\"}");
    ws_write_close(&frames, WS_NORMAL, STR(""), NULL);
    step.frames = buf_str(&frames);
    run_exec(&w, &step, 1);
    assert_int_equal(w.exit, 0);
    assert_false(w.ended_in);
    world_end(&w);
}

static void a_half_closed_exec_has_no_outcome(void **state)
{
    AUTO(buf_done) struct buf frames = {0}, polite = {0};
    struct kube_step step = {.accepts = "v5.channel.k8s.io"};
    struct world w;

    (void)state;
    frame(&frames, 1, "half");
    step.frames = buf_str(&frames);
    run_exec(&w, &step, 1); /* cut */
    assert_int_equal(w.exit, -1);
    assert_int_equal(w.e.code, ERR_UNAVAILABLE);
    world_end(&w);
    ws_write_close(&polite, WS_NORMAL, STR(""), NULL);
    step.frames = buf_str(&polite);
    run_exec(&w, &step, 1); /* a close frame, but no status */
    assert_int_equal(w.exit, -1);
    assert_int_equal(w.e.code, ERR_UNAVAILABLE);
    world_end(&w);
}

static void a_refused_exec_says_why(void **state)
{
    static const struct kube_step steps[] = {
        {.reply = FAIL("404 Not Found", "", STATUS(404, "NotFound", "pods \\\"p\\\" not found"))}};
    static const struct kube_step other[] = {{.accepts = "v1.channel.k8s.io"}};
    struct world w;

    (void)state;
    run_exec(&w, steps, 1);
    assert_int_equal(w.e.code, ERR_NOT_FOUND);
    assert_non_null(strstr(w.e.msg, "pods \"p\" not found"));
    world_end(&w);
    run_exec(&w, other, 1); /* one that was not offered */
    assert_int_equal(w.exit, -1);
    assert_non_null(strstr(w.e.msg, "subprotocol"));
    world_end(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_is_answered),
        cmocka_unit_test(a_busy_server_is_asked_again),
        cmocka_unit_test(a_lost_connection_repeats_only_what_is_harmless),
        cmocka_unit_test(an_expired_token_is_read_again),
        cmocka_unit_test(conflicts_and_refusals_are_told),
        cmocka_unit_test(an_endless_reply_is_cut),
        cmocka_unit_test(the_rate_is_held),
        cmocka_unit_test(freeing_ends_every_call),
        cmocka_unit_test(a_watch_follows_a_list),
        cmocka_unit_test(too_old_a_watch_begins_with_a_list),
        cmocka_unit_test(a_watch_cut_in_an_object_continues),
        cmocka_unit_test(an_endless_event_is_cut),
        cmocka_unit_test(a_program_tells_its_exit_status),
        cmocka_unit_test(an_older_server_cannot_end_the_input),
        cmocka_unit_test(a_half_closed_exec_has_no_outcome),
        cmocka_unit_test(a_refused_exec_says_why),
    };

    (void)signal(SIGPIPE, SIG_IGN); /* as in holtd: servers of the tests hang up */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
