/* A log with an epoch, folded rows and an anchor, judged by a verifier that shares no line with
 * holt.  Usage: verify_log VERIFIER (a Python program that takes the database's path) */
#include "base/log.h"
#include "base/mem.h"
#include "core/event/event.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static uv_loop_t loop;

static int say(struct store_tx *tx, void *arg, struct err *e)
{
    (void)e;
    for (int i = 0; i < 20; i++)
        tx_event(tx,
                 &(struct event_spec){.type = "thing.made",
                                      .object = arg,
                                      .actor = "token/tk_1",
                                      .data = STR("{\"name\":\"caf\xc3\xa9 \\u0000\"}")},
                 NULL);
    return 0;
}

static void done(void *arg, const struct err *e)
{
    *(bool *)arg = true;
    if (e->code != ERR_NONE)
        abort();
}

static void fill(const char *url, int64_t keep)
{
    struct store_config c = {.loop = &loop, .url = url};
    struct event_spec refused = {.type = "x.refused", .object = "op/x", .actor = "anonymous"};
    struct events *log;
    struct store *s;
    struct err e;
    bool came = false;

    if (store_open(&c, &s, &e) < 0 || events_open(s, &log, &e) < 0 ||
        store_now(s, say, (void *)(uintptr_t)"thing/1", &e) < 0)
        abort();
    for (int i = 0; i < 5; i++)
        events_audit(log, &refused);
    events_retain(log, 0, keep, done, &came);
    while (!came)
        (void)uv_run(&loop, UV_RUN_ONCE);
    (void)events_close(log);
    store_close(s);
    (void)uv_run(&loop, UV_RUN_NOWAIT);
}

static void run_sql(const char *path, const char *sql)
{
    sqlite3 *h;

    if (sqlite3_open(path, &h) != SQLITE_OK || sqlite3_exec(h, sql, NULL, NULL, NULL) != SQLITE_OK)
        abort();
    (void)sqlite3_close(h);
}

static int judge(const char *verifier, const char *path)
{
    pid_t pid = fork();
    int status;

    if (pid == 0) {
        (void)execlp("python3", "python3", verifier, path, (char *)NULL);
        _exit(127);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid)
        abort();
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

static void wipe(const char *dir)
{
    static const char *const ends[] = {"", "-wal", "-shm", ".lock"};

    for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
        AUTO(mem_free) char *name = xasprintf("%s/holt.db%s", dir, ends[i]);

        (void)unlink(name);
    }
    (void)rmdir(dir);
}

int main(int argc, char **argv)
{
    char dir[] = "/tmp/holt-verify-XXXXXX";
    AUTO(mem_free) char *path = NULL, *url = NULL;
    int whole, altered;

    if (argc != 2 || !mkdtemp(dir))
        return 1;
    path = xasprintf("%s/holt.db", dir);
    url = xasprintf("sqlite:%s", path);
    log_setup(LOG_ERROR, LOG_LOGFMT);
    (void)uv_loop_init(&loop);
    fill(url, 0);
    run_sql(path, "UPDATE chain SET clean = 0");
    fill(url, 40);
    whole = judge(argv[1], path);
    run_sql(path,
            "UPDATE events SET actor = 'token/tk_2' WHERE seq = (SELECT MAX(seq) FROM events)");
    altered = judge(argv[1], path);
    wipe(dir);
    (void)uv_loop_close(&loop);
    (void)fprintf(stderr, "whole log: exit %d; altered log: exit %d\n", whole, altered);
    return whole == 0 && altered == 1 ? 0 : 1;
}
