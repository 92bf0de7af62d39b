#include "cut_vfs.h"

#include "base/fd.h"
#include "base/list.h"
#include "base/mem.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <unistd.h>
#include <uv.h>

#define SECTOR 512

struct bytes {
    char *p;
    size_t n;
};

struct pending { /* written or truncated, not yet synced */
    struct list link;
    bool truncate;
    size_t at, n; /* of a truncation: n is the new size */
    char *data;
};

struct shadow { /* one file, whatever the number of its handles */
    struct list link;
    char *path;
    struct bytes durable;
    struct list pending;
};

struct cut_file {
    sqlite3_file base;
    struct shadow *shadow; /* NULL: a file that needs none */
    sqlite3_file *real;
};

static sqlite3_vfs *below;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct list shadows;
static int64_t left; /* operations until the cut */
static enum cut_mode cut_mode;
static uint64_t seed, cut_ns;

static uint64_t next_random(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed;
}

static void resize(struct bytes *b, size_t n)
{
    b->p = xrealloc(b->p, n + 1);
    if (n > b->n)
        memset(b->p + b->n, 0, n - b->n);
    b->n = n;
}

static void apply(struct bytes *b, const struct pending *op, bool torn)
{
    if (op->truncate) {
        if (op->n < b->n)
            resize(b, op->n);
        return;
    }
    if (op->at + op->n > b->n)
        resize(b, op->at + op->n);
    for (size_t i = 0; i < op->n; i += SECTOR)
        if (!torn || next_random() % 2)
            memcpy(b->p + op->at + i, op->data + i, size_min(SECTOR, op->n - i));
}

static void drop_pending(struct shadow *s)
{
    struct list *l;

    while ((l = list_pop(&s->pending)) != NULL) {
        struct pending *op = LIST_ENTRY(l, struct pending, link);

        free(op->data);
        free(op);
    }
}

static void cut_locked(void)
{
    if (cut_ns != 0)
        return;
    cut_ns = uv_hrtime();
    LIST_EACH (&shadows, l) {
        struct shadow *s = LIST_ENTRY(l, struct shadow, link);

        LIST_EACH (&s->pending, o)
            if (cut_mode == CUT_DROP_SOME && next_random() % 2)
                apply(&s->durable, LIST_ENTRY(o, struct pending, link), next_random() % 4 == 0);
        drop_pending(s);
    }
}

/* Counts one operation; true when there is no power (any more). */
static bool no_power(void)
{
    if (cut_ns == 0 && left > 0 && --left == 0)
        cut_locked();
    return cut_ns != 0;
}

/* --- methods of a file --- */

static struct cut_file *file_of(sqlite3_file *f)
{
    return (struct cut_file *)f;
}
#define REAL(f) (file_of(f)->real)
#define METHOD(f) (file_of(f)->real->pMethods)

static int cut_close(sqlite3_file *f)
{
    int rc = METHOD(f)->xClose(REAL(f));

    free(REAL(f));
    return rc;
}

static int cut_read(sqlite3_file *f, void *to, int n, sqlite3_int64 at)
{
    return METHOD(f)->xRead(REAL(f), to, n, at);
}

static void note(struct shadow *s, bool truncate, const void *p, size_t n, size_t at)
{
    struct pending *op = xzalloc(sizeof *op);

    op->truncate = truncate;
    op->n = n;
    op->at = at;
    if (!truncate)
        op->data = xmemdup(p, n);
    list_push(&s->pending, &op->link);
}

static int cut_write(sqlite3_file *f, const void *p, int n, sqlite3_int64 at)
{
    int rc = SQLITE_IOERR_WRITE;

    pthread_mutex_lock(&lock);
    if (!no_power()) {
        if (file_of(f)->shadow)
            note(file_of(f)->shadow, false, p, (size_t)n, (size_t)at);
        rc = METHOD(f)->xWrite(REAL(f), p, n, at);
    }
    pthread_mutex_unlock(&lock);
    return rc;
}

static int cut_truncate(sqlite3_file *f, sqlite3_int64 size)
{
    int rc = SQLITE_IOERR_TRUNCATE;

    pthread_mutex_lock(&lock);
    if (!no_power()) {
        if (file_of(f)->shadow)
            note(file_of(f)->shadow, true, NULL, (size_t)size, 0);
        rc = METHOD(f)->xTruncate(REAL(f), size);
    }
    pthread_mutex_unlock(&lock);
    return rc;
}

static int cut_sync(sqlite3_file *f, int flags)
{
    struct shadow *s = file_of(f)->shadow;
    bool dark;

    (void)flags;
    pthread_mutex_lock(&lock);
    dark = no_power();
    if (!dark && s) {
        LIST_EACH (&s->pending, o)
            apply(&s->durable, LIST_ENTRY(o, struct pending, link), false);
        drop_pending(s);
    }
    pthread_mutex_unlock(&lock);
    return dark ? SQLITE_IOERR_FSYNC : SQLITE_OK;
}

static int cut_size(sqlite3_file *f, sqlite3_int64 *ret)
{
    return METHOD(f)->xFileSize(REAL(f), ret);
}

static int cut_lock(sqlite3_file *f, int level)
{
    return METHOD(f)->xLock(REAL(f), level);
}

static int cut_unlock(sqlite3_file *f, int level)
{
    return METHOD(f)->xUnlock(REAL(f), level);
}

static int cut_reserved(sqlite3_file *f, int *ret)
{
    return METHOD(f)->xCheckReservedLock(REAL(f), ret);
}

static int cut_control(sqlite3_file *f, int op, void *arg)
{
    return METHOD(f)->xFileControl(REAL(f), op, arg);
}

static int cut_sector(sqlite3_file *f)
{
    return METHOD(f)->xSectorSize(REAL(f));
}

static int cut_traits(sqlite3_file *f)
{
    return METHOD(f)->xDeviceCharacteristics(REAL(f));
}

static int cut_shm_map(sqlite3_file *f, int region, int size, int extend, void volatile **ret)
{
    return METHOD(f)->xShmMap(REAL(f), region, size, extend, ret);
}

static int cut_shm_lock(sqlite3_file *f, int at, int n, int flags)
{
    return METHOD(f)->xShmLock(REAL(f), at, n, flags);
}

static void cut_shm_barrier(sqlite3_file *f)
{
    METHOD(f)->xShmBarrier(REAL(f));
}

static int cut_shm_unmap(sqlite3_file *f, int remove)
{
    return METHOD(f)->xShmUnmap(REAL(f), remove);
}

static const sqlite3_io_methods methods = {
    .iVersion = 2, /* no memory mapping: it would write past us */
    .xClose = cut_close,
    .xRead = cut_read,
    .xWrite = cut_write,
    .xTruncate = cut_truncate,
    .xSync = cut_sync,
    .xFileSize = cut_size,
    .xLock = cut_lock,
    .xUnlock = cut_unlock,
    .xCheckReservedLock = cut_reserved,
    .xFileControl = cut_control,
    .xSectorSize = cut_sector,
    .xDeviceCharacteristics = cut_traits,
    .xShmMap = cut_shm_map,
    .xShmLock = cut_shm_lock,
    .xShmBarrier = cut_shm_barrier,
    .xShmUnmap = cut_shm_unmap,
};

/* --- the VFS --- */

static struct shadow *find(const char *path)
{
    LIST_EACH (&shadows, l) {
        struct shadow *s = LIST_ENTRY(l, struct shadow, link);

        if (strcmp(s->path, path) == 0)
            return s;
    }
    return NULL;
}

static void shadow_free(struct shadow *s)
{
    list_unlink(&s->link);
    drop_pending(s);
    free(s->durable.p);
    free(s->path);
    free(s);
}

/* What is there when a file is first seen counts as synced. */
static struct shadow *shadow_get(const char *path)
{
    struct shadow *s = find(path);
    AUTO(buf_done) struct buf content = {0};

    if (s)
        return s;
    s = xzalloc(sizeof *s);
    s->path = xstrdup(path);
    list_init(&s->pending);
    list_push(&shadows, &s->link);
    if (file_read(path, 1 << 30, &content) == 0 && buf_len(&content) > 0) {
        resize(&s->durable, buf_len(&content));
        memcpy(s->durable.p, buf_data(&content), buf_len(&content));
    }
    return s;
}

static int cut_open(sqlite3_vfs *v, const char *name, sqlite3_file *f, int flags, int *ret_flags)
{
    struct cut_file *c = file_of(f);
    int rc;

    (void)v;
    *c = (struct cut_file){.real = xzalloc((size_t)below->szOsFile)};
    rc = below->xOpen(below, name, c->real, flags, ret_flags);
    if (rc != SQLITE_OK) {
        free(c->real);
        return rc;
    }
    pthread_mutex_lock(&lock);
    if (name && (flags & (SQLITE_OPEN_MAIN_DB | SQLITE_OPEN_WAL | SQLITE_OPEN_MAIN_JOURNAL)))
        c->shadow = shadow_get(name);
    pthread_mutex_unlock(&lock);
    c->base.pMethods = &methods;
    return SQLITE_OK;
}

static int cut_delete(sqlite3_vfs *v, const char *name, int sync)
{
    int rc = SQLITE_IOERR_DELETE;
    struct shadow *s;

    (void)v;
    pthread_mutex_lock(&lock);
    if (!no_power()) {
        s = find(name);
        if (s)
            shadow_free(s);
        rc = below->xDelete(below, name, sync);
    }
    pthread_mutex_unlock(&lock);
    return rc;
}

void cut_vfs_register(void)
{
    static sqlite3_vfs vfs;

    below = sqlite3_vfs_find(NULL);
    assert(below);
    vfs = *below;
    vfs.zName = "cut";
    vfs.pNext = NULL;
    vfs.szOsFile = sizeof(struct cut_file);
    vfs.xOpen = cut_open;
    vfs.xDelete = cut_delete;
    list_init(&shadows);
    if (sqlite3_vfs_register(&vfs, 0) != SQLITE_OK)
        abort();
}

void cut_vfs_arm(int64_t operations, enum cut_mode mode, uint64_t new_seed)
{
    pthread_mutex_lock(&lock);
    left = operations;
    cut_mode = mode;
    seed = new_seed | 1;
    pthread_mutex_unlock(&lock);
}

void cut_vfs_cut(void)
{
    pthread_mutex_lock(&lock);
    cut_locked();
    pthread_mutex_unlock(&lock);
}

uint64_t cut_vfs_time(void)
{
    uint64_t ns;

    pthread_mutex_lock(&lock);
    ns = cut_ns;
    pthread_mutex_unlock(&lock);
    return ns;
}

static void write_file(const struct shadow *s)
{
    AUTO(fd_close) int fd = open(s->path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    if (fd < 0 || fd_write_all(fd, s->durable.p, s->durable.n) < 0)
        abort();
}

void cut_vfs_restore(void)
{
    LIST_EACH (&shadows, l) {
        struct shadow *s = LIST_ENTRY(l, struct shadow, link);
        AUTO(mem_free) char *shm = xasprintf("%s-shm", s->path);

        drop_pending(s);
        write_file(s);
        (void)unlink(shm);
    }
    cut_ns = 0;
    left = 0;
}

void cut_vfs_forget(void)
{
    LIST_EACH (&shadows, l)
        shadow_free(LIST_ENTRY(l, struct shadow, link));
    cut_ns = 0;
    left = 0;
}
