/* space: keeps part of the state directory's filesystem free. */
#include "core/space.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"

#include <sys/statvfs.h>

#define FRESH_MS 20
#define FRESH_BYTES (1 << 20)
#define FILES_RESERVE 128 /* where the filesystem counts them */

struct space {
    char *dir;
    int64_t reserve;
    int64_t asked_ms; /* 0: never */
    int64_t free_bytes, kept;
    size_t let_through;
    bool few_files;
};

struct space *space_new(const char *dir, int64_t reserve)
{
    struct space *s = xzalloc(sizeof *s);

    s->dir = xstrdup(dir);
    s->reserve = reserve;
    return s;
}

struct space *space_free(struct space *s)
{
    if (s)
        mem_free(s->dir);
    mem_free(s);
    return NULL;
}

static void look(struct space *s)
{
    struct statvfs v;

    s->asked_ms = i64_max(clock_mono_ms(), 1);
    s->let_through = 0;
    if (statvfs(s->dir, &v) < 0) { /* the write itself will report the problem */
        s->free_bytes = INT64_MAX;
        return;
    }
    s->free_bytes = (int64_t)v.f_bavail * (int64_t)v.f_frsize;
    s->kept = i64_min(s->reserve, (int64_t)v.f_blocks * (int64_t)v.f_frsize / 4);
    s->few_files = v.f_files > 0 && v.f_favail < FILES_RESERVE;
}

int space_ask(struct space *s, size_t bytes, struct err *e)
{
    if (!s || s->reserve == 0)
        return 0;
    if (s->asked_ms == 0 || clock_mono_ms() - s->asked_ms >= FRESH_MS ||
        s->let_through + bytes > FRESH_BYTES)
        look(s);
    s->let_through += bytes;
    if (!s->few_files && s->free_bytes - (int64_t)s->let_through >= s->kept)
        return 0;
    if (s->few_files)
        err_set(e, ERR_FULL, 0, "the filesystem of '%.120s' has almost no free inodes", s->dir);
    else
        err_set(e, ERR_FULL, 0, "the disk of '%.120s' is nearly full: %lld bytes are free", s->dir,
                (long long)s->free_bytes);
    return err_limit(e, "disk_reserve", s->reserve,
                     "remove sandboxes, images or volumes, or free space: %lld bytes are kept free",
                     (long long)s->kept);
}

int64_t space_room(struct space *s)
{
    if (!s)
        return INT64_MAX;
    look(s);
    return i64_max(s->free_bytes == INT64_MAX ? INT64_MAX : s->free_bytes - s->kept, 1);
}
