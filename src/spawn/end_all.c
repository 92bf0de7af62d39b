/* end_all: ends every sandbox of an installation, or removes everything it stored. */
#include "spawn/end_all.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/id.h"
#include "spawn/sandbox.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <unistd.h>

#define END_MS 60000
#define TURN_MS 10

enum end_kind end_kind_of(const char *text)
{
    static const char *const names[] = {
        [END_STOP] = "stop", [END_DESTROY] = "destroy", [END_REMOVE] = "remove"};

    for (size_t i = END_STOP; i < ARRAY_LEN(names); i++)
        if (strcmp(text, names[i]) == 0)
            return (enum end_kind)i;
    return END_NONE;
}

/* The first after id that has not ended yet. */
static struct sandbox *next_alive(struct str id, bool keep)
{
    struct sandbox *s = sandbox_after(id);

    while (s && keep && s->state == SPAWN_STOPPED && !s->dying)
        s = sandbox_after(str_of(s->id));
    return s;
}

static unsigned begin_all(enum end_kind kind)
{
    char at[SPAWN_ID_MAX + 1] = "";
    struct sandbox *s;
    unsigned n = 0;

    while ((s = next_alive(str_of(at), kind == END_STOP))) {
        bool keep = kind == END_STOP && (s->flags & SPAWN_UPPER_DISK);

        (void)snprintf(at, sizeof at, "%s", s->id); /* it may be freed when this returns */
        n += s->pid > 0;
        sandbox_destroy(s, 0, keep);
    }
    return n;
}

int end_sandboxes(enum end_kind kind, unsigned *ret, struct err *e)
{
    int64_t until = clock_mono_ms() + END_MS;
    const struct sandbox *s;

    *ret = begin_all(kind);
    while ((s = next_alive(STR(""), kind == END_STOP)) && clock_mono_ms() < until) {
        (void)sandbox_retry();
        loop_turn(TURN_MS);
    }
    return s ? err_set(e, ERR_TIMEOUT, 0, "sandbox '%s' does not exit", s->id) : 0;
}

/* Protects directories named by mistake: a state directory holds this file. */
static bool is_state(int dir)
{
    AUTO(fd_close) int fd = openat(dir, "installation", O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    char text[ID_SIZE] = "";
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);

    if (n <= 0)
        return false;
    text[strcspn(text, "\n")] = '\0';
    return id_is_valid("in", str_of(text));
}

static bool is_locked(int dir, const char *name)
{
    AUTO(fd_close) int fd = openat(dir, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC);

    return fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) < 0;
}

/* The file that identifies it is removed last: until then the removal can be repeated. */
static int remove_entries(int dir)
{
    int copy = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = copy < 0 ? NULL : fdopendir(copy);
    const struct dirent *entry;
    int r = d ? 0 : -errno;

    while (r == 0 && (entry = readdir(d)))
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
            strcmp(entry->d_name, "installation") != 0)
            r = tree_remove(dir, entry->d_name, NULL);
    if (d)
        (void)closedir(d);
    else
        fd_close(copy);
    return r == 0 ? tree_remove(dir, "installation", NULL) : r;
}

int end_remove(const char *state, struct err *e)
{
    AUTO(fd_close) int dir = open(state, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int r;

    if (dir < 0)
        return err_set(e, err_code_from_errno(errno), errno, "open '%s'", state);
    if (!is_state(dir))
        return err_set(e, ERR_INVALID, 0, "'%s' is not a state directory of holt's", state);
    if (is_locked(dir, "lock") || is_locked(dir, "spawn.lock") || is_locked(dir, "egress.lock"))
        return err_set(e, ERR_CONFLICT, 0, "'%s' is in use", state);
    r = remove_entries(dir);
    if (r < 0)
        return err_set(e, err_code_from_errno(-r), -r, "empty '%s'", state);
    /* It may be a mount, or be in a directory that is not ours: then it only has to be empty. */
    (void)rmdir(state);
    return 0;
}
