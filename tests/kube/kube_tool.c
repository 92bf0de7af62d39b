/* kube_tool: our client of API servers on a command line, for tests against a real cluster. */

/* Usage: kube_tool KUBECONFIG call METHOD TARGET [BODY]
 *        kube_tool KUBECONFIG apply TARGET BODY MANAGER [force]
 *        kube_tool KUBECONFIG delete TARGET UID
 *        kube_tool KUBECONFIG watch PATH SELECTOR COUNT   (one line per change)
 *        kube_tool KUBECONFIG exec NAMESPACE POD CONTAINER ARGV…   (its input is ours)
 * Prints the reply; of a failure "CODE: text" to standard error, and exits with 1. */
#include "base/fd.h"
#include "base/mem.h"
#include "kube/exec.h"
#include "kube/watch.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define INPUT_MAX (64 << 20)
#define UNKNOWN 254

static struct kube *kube;
static struct kube_watch *watch;
static int result, left;
static struct buf input;

static void complain(const struct err *e)
{
    (void)fprintf(stderr, "%s: %s\n", err_table[e->code].name, e->msg);
    result = 1;
}

static void called(void *arg, int status, const json_t *reply, const struct err *e)
{
    (void)arg;
    (void)status;
    if (e->code != ERR_NONE)
        complain(e);
    else
        (void)json_dumpf(reply, stdout, JSON_COMPACT);
    kube = kube_free(kube);
}

static const char *text_at(const json_t *o, const char *a, const char *b)
{
    const char *s = json_string_value(json_object_get(json_object_get(o, a), b));

    return s ? s : "-";
}

static void changed(void *arg, enum kube_change change, const json_t *o)
{
    static const char *const names[] = {"added", "modified", "deleted", "", ""};

    (void)arg;
    (void)printf("%s %s %s %s\n", names[change], text_at(o, "metadata", "name"),
                 text_at(o, "status", "phase"), text_at(o, "metadata", "resourceVersion"));
    (void)fflush(stdout);
    if (--left == 0)
        watch = kube_watch_free(watch);
}

static void listed(void *arg)
{
    (void)arg;
    (void)puts("synced");
    (void)fflush(stdout);
}

static void health(void *arg, const struct err *e)
{
    (void)arg;
    (void)printf("health %s\n", e->code == ERR_NONE ? "well" : err_table[e->code].name);
    (void)fflush(stdout);
}

static void exec_feed(struct kube_exec *x)
{
    while (buf_len(&input) > 0) {
        size_t n = size_min(buf_len(&input), 65536);
        int full = kube_exec_write(x, str_make(buf_data(&input), n));

        buf_take(&input, n);
        if (full)
            return;
    }
    if (!kube_exec_write_end(x))
        (void)fprintf(stderr, "this server cannot end the input\n");
}

static void exec_out(struct kube_exec *x, struct str bytes)
{
    (void)x;
    if (fd_write_all(1, bytes.p, bytes.n) < 0)
        result = 1;
}

static void exec_err(struct kube_exec *x, struct str bytes)
{
    (void)x;
    (void)!fd_write_all(2, bytes.p, bytes.n);
}

static void exec_closed(struct kube_exec *x, int exit, const struct err *e)
{
    (void)x;
    if (exit < 0)
        complain(e);
    result = exit < 0 ? UNKNOWN : exit;
    kube = kube_free(kube);
}

static int begin(char **a, int n, struct err *e)
{
    static const struct kube_watch_ops watch_ops = {changed, listed, health};
    static const struct kube_exec_ops exec_ops = {exec_feed, exec_out, exec_err, exec_feed,
                                                  exec_closed};
    struct kube_exec *x;

    if (n >= 3 && strcmp(a[0], "call") == 0)
        return kube_call(kube,
                         &(struct kube_request){
                             .method = a[1], .target = a[2], .body = str_of(n > 3 ? a[3] : NULL)},
                         called, NULL, e)
                   ? 0
                   : -1;
    if (n >= 4 && strcmp(a[0], "apply") == 0)
        return kube_apply(kube, a[1], str_of(a[2]), a[3], n > 4, called, NULL, e) ? 0 : -1;
    if (n == 3 && strcmp(a[0], "delete") == 0)
        return kube_delete(kube, a[1], a[2], 0, called, NULL, e) ? 0 : -1;
    if (n == 4 && strcmp(a[0], "watch") == 0) {
        left = (int)strtol(a[3], NULL, 10);
        watch = kube_watch_new(kube, a[1], a[2], &watch_ops, NULL);
        return 0;
    }
    if (n < 5 || strcmp(a[0], "exec") != 0)
        return err_set(e, ERR_INVALID, 0, "see the top of kube_tool.c");
    if (fd_read_all(0, INPUT_MAX, &input) < 0)
        return err_set(e, ERR_INVALID, 0, "read the input");
    return kube_exec_start(kube,
                           &(struct kube_exec_request){.space = a[1],
                                                       .pod = a[2],
                                                       .container = a[3],
                                                       .argv = (const char *const *)(a + 4),
                                                       .in = true,
                                                       .ops = &exec_ops},
                           &x, e);
}

/* A watch has no end of its own: the loop turns until it is freed. */
static void turn(uv_loop_t *loop)
{
    while (watch)
        (void)uv_run(loop, UV_RUN_ONCE);
    (void)uv_run(loop, kube ? UV_RUN_NOWAIT : UV_RUN_DEFAULT);
    while (kube && !left && uv_loop_alive(loop))
        (void)uv_run(loop, UV_RUN_ONCE);
    kube = kube_free(kube);
    (void)uv_run(loop, UV_RUN_DEFAULT);
}

int main(int argc, char **argv)
{
    AUTO(kube_config_done) struct kube_config c = {0};
    uv_loop_t loop;
    struct err e = {0};

    if (argc < 3 || uv_loop_init(&loop) < 0)
        return 2;
    if (kube_config_read(argv[1], NULL, &c, &e) < 0 || kube_new(&loop, &c, NULL, &kube, &e) < 0 ||
        begin(argv + 2, argc - 2, &e) < 0)
        complain(&e);
    else
        turn(&loop);
    kube = kube_free(kube);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    buf_done(&input);
    return uv_loop_close(&loop) == 0 ? result : 3;
}
