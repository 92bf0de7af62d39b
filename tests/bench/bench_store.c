/* Durable event appends with 32 clients, each waiting for its own, against bare SQLite doing the
 * same group commits.  Usage: bench_store (both, and their ratio), bench_store FILE.db (only the
 * store) or tests/tools/postgres.py bench_store postgres (only the store, on a server of its own)
 */
#include "base/log.h"
#include "base/mem.h"
#include "core/event/event.h"
#include "floor_sqlite.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define CLIENTS 32
#define SECONDS 2.0
#define ROUNDS 3

static uv_loop_t loop;
static struct store *store;
static uint64_t end_ns;
static int64_t done_count;

static int put(struct store_tx *tx, void *arg, struct err *e)
{
    (void)arg;
    (void)e;
    tx_event(tx,
             &(struct event_spec){.type = "bench.put",
                                  .object = "bench/1",
                                  .actor = "system",
                                  .data = STR("{\"value\":\"0123456789abcdef0123456789abcdef\"}")},
             NULL);
    return 0;
}

static void put_done(void *arg, const struct err *e)
{
    if (e->code != ERR_NONE) {
        (void)fprintf(stderr, "%s\n", e->msg);
        exit(1);
    }
    done_count++;
    if (uv_hrtime() < end_ns)
        store_write(store, STORE_DURABLE, put, put_done, arg);
}

static void must(int r, const struct err *e)
{
    if (r >= 0)
        return;
    (void)fprintf(stderr, "%s\n", e->msg);
    exit(1);
}

static double measure(const char *url)
{
    struct store_config c = {.loop = &loop, .url = url};
    struct events *events;
    struct err e = {0};
    uint64_t begin;

    must(store_open(&c, &store, &e), &e);
    must(events_open(store, &events, &e), &e);
    begin = uv_hrtime();
    end_ns = begin + (uint64_t)(SECONDS * 1e9);
    done_count = 0;
    for (int i = 0; i < CLIENTS; i++)
        store_write(store, STORE_DURABLE, put, put_done, NULL);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    end_ns = uv_hrtime();
    (void)events_close(events);
    store_close(store);
    (void)uv_run(&loop, UV_RUN_NOWAIT);
    return (double)done_count * 1e9 / (double)(end_ns - begin);
}

static void wipe(const char *path)
{
    static const char *const ends[] = {"", "-wal", "-shm", ".lock"};

    for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
        AUTO(mem_free) char *name = xasprintf("%s%s", path, ends[i]);

        (void)unlink(name);
    }
}

static int compare(void)
{
    char dir[] = "/var/tmp/holt-bench-XXXXXX";
    AUTO(mem_free) char *path = NULL, *url = NULL;
    double holt = 0, bare = 0;

    if (!mkdtemp(dir))
        return 1;
    path = xasprintf("%s/holt.db", dir);
    url = xasprintf("sqlite:%s", path);
    for (int i = 0; i < ROUNDS; i++) {
        holt += measure(url) / ROUNDS;
        wipe(path);
        bare += floor_sqlite(path, CLIENTS, SECONDS) / ROUNDS;
        wipe(path);
    }
    (void)rmdir(dir);
    (void)printf("durable event append, %d clients: %.0f/s; bare SQLite in groups of %d: %.0f/s; "
                 "ratio %.2f (aim >= 0.5)\n",
                 CLIENTS, holt, CLIENTS, bare, holt / bare);
    return 0;
}

int main(int argc, char **argv)
{
    bool postgres = argc > 1 && strcmp(argv[1], "postgres") == 0;
    const char *server = postgres ? getenv("HOLT_TEST_POSTGRES") : NULL;
    AUTO(mem_free) char *url = argc > 1 ? xasprintf("sqlite:%s", argv[1]) : NULL;

    log_setup(LOG_ERROR, LOG_LOGFMT);
    (void)uv_loop_init(&loop);
    if (!url)
        return compare();
    if (postgres && !server)
        return 77;
    (void)printf("durable event append, %d clients: %.0f appends/s\n", CLIENTS,
                 measure(server ? server : url));
    return 0;
}
