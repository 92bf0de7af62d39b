#include "store_suite.h"

#include "base/buf.h"

#include <assert.h>
#include <sqlite3.h>
#include <stdio.h>
#include <unistd.h>

static char directory[] = "/tmp/holt-store-XXXXXX";
static char path[64], url[80];

static void wipe(void)
{
    static const char *const ends[] = {"", "-wal", "-shm", ".lock"};

    for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
        char name[80];

        (void)snprintf(name, sizeof name, "%s%s", path, ends[i]);
        (void)unlink(name);
    }
}

static void run_sql(const char *script)
{
    sqlite3 *h;
    int rc = sqlite3_open(path, &h);

    if (rc == SQLITE_OK)
        rc = sqlite3_exec(h, script, NULL, NULL, NULL);
    if (rc != SQLITE_OK)
        (void)fprintf(stderr, "%s: %s\n", script, sqlite3_errmsg(h));
    assert(rc == SQLITE_OK);
    (void)sqlite3_close(h);
}

int main(void)
{
    struct store_place p = {.url = url, .wipe = wipe, .run_sql = run_sql};
    int failed;

    if (!mkdtemp(directory))
        return 1;
    (void)snprintf(path, sizeof path, "%s/holt.db", directory);
    (void)snprintf(url, sizeof url, "sqlite:%s", path);
    failed = store_suite(&p);
    wipe();
    (void)rmdir(directory);
    return failed;
}
