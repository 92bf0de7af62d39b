/* record: what the next holt-spawn must know of a sandbox, in sb/ID/record. */

/* Written before the child continues, so that no init is without one.  Plain text; the kernel's
 * data (pid and start time) decides whether the sandbox is still alive. */
#include "spawn/sandbox.h"

#include "base/fd.h"
#include "base/log.h"
#include "base/point.h"
#include "spawn/disk.h"
#include "spawn/range.h"
#include "spawn/snapshot.h"
#include "spawn/spare.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define RECORD_MAX 4096
#define RECORD_ROOM 512 /* enough for all but a sandbox with many shared volumes */

/* Padded with empty lines: the claim's record replaces the spare's without a truncation, which
 * takes longer than everything else. */
static int write_text(const struct sandbox *s, const char *name)
{
    AUTO(fd_close) int fd = openat(s->dir, name, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    AUTO(buf_done) struct buf text = {0};

    if (fd < 0)
        return -errno;
    buf_printf(&text, "%d %" PRIu64 " %u %u %d %u %" PRIu64 " %" PRIu64 " %u %u %u\n",
               s->keep ? 0 : s->pid, s->started, s->ids.slot, s->flags, s->confirmed, s->enforced,
               s->memory_bytes, s->disk_bytes, s->cpu_millis, s->pids, s->nofile);
    buf_printf(&text, "%s %s %s\n", s->installation, s->group, s->oci ? s->oci->name : "");
    for (size_t i = 0; i < SHARED_MAX; i++)
        if (s->shared & (1ULL << i))
            buf_printf(&text, "%s\n", shared_name(i));
    while (buf_len(&text) < RECORD_ROOM)
        buf_add_char(&text, '\n');
    return fd_write_all(fd, buf_data(&text), buf_len(&text));
}

static int write_record(const struct sandbox *s)
{
    int r;

    (void)unlinkat(s->dir, "record.new", 0); /* left by a holt-spawn that died while writing */
    r = write_text(s, "record.new");
    return r == 0 && renameat(s->dir, "record.new", s->dir, "record") < 0 ? -errno : r;
}

int record_stopped(struct sandbox *s)
{
    return write_record(s);
}

/* Reads its start time in advance: that takes as long as the rest of the claim's record. */
int record_spare(struct sandbox *s)
{
    s->started = process_started(s->pid);
    range_add_init(s->ids.slot, s->pid, s->started);
    return write_text(s, "record");
}

/* Not as a stopped one, even while a restart still has to keep its files.  For a new one half a
 * record can spoil nothing: it is destroyed without. */
int step_record(struct sandbox *s, struct err *e)
{
    bool keep = s->keep;
    int r;

    point_reached("unrecorded");
    if (s->spare == SPARE_NONE) {
        s->started = process_started(s->pid);
        range_add_init(s->ids.slot, s->pid, s->started);
    }
    s->keep = false;
    r = s->flags & SPAWN_RESTART ? write_record(s) : write_text(s, "record");
    s->keep = keep;
    return r < 0 ? err_set(e, err_code_from_errno(-r), -r, "write its record") : 0;
}

int undo_record(struct sandbox *s)
{
    if (s->dir < 0)
        return 0;
    if (s->keep)
        return write_record(s);
    (void)unlinkat(s->dir, "record.new", 0);
    return unlinkat(s->dir, "record", 0) < 0 && errno != ENOENT ? -errno : 0;
}

/* In place: only one digit changes, and a write within a page is atomic.  A new file and its rename
 * may wait for the disk. */
int record_confirm(struct sandbox *s)
{
    s->confirmed = true;
    return write_text(s, "record");
}

/* Numbers in write_record's order; false if there are not enough.  *ret_rest: the lines after. */
static bool parse(struct str text, uint64_t *v, size_t n, struct str *ret_rest)
{
    for (size_t i = 0; i < n; i++)
        if (str_parse_u64(str_cut(text, i + 1 < n ? ' ' : '\n', &text), &v[i]) < 0)
            return false;
    *ret_rest = text;
    return true;
}

static void read_shared(struct sandbox *s, struct str lines)
{
    while (lines.n > 0) {
        struct str name = str_cut(lines, '\n', &lines);
        char id[SPAWN_ID_MAX + 1];

        (void)snprintf(id, sizeof id, STR_FMT, STR_ARG(name));
        if (spawn_id_is_safe(name))
            shared_found(id, &s->shared);
    }
}

static void read_record(struct sandbox *s)
{
    AUTO(fd_close) int fd = openat(s->dir, "record", O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    AUTO(buf_done) struct buf text = {0};
    struct str lines, installation, group, runtime;
    uint64_t v[11];

    if (fd < 0 || fd_read_all(fd, RECORD_MAX, &text) < 0 ||
        !parse(buf_str(&text), v, ARRAY_LEN(v), &lines))
        return; /* it never got that far: dead, and destroy removes what exists */
    s->pid = (pid_t)v[0];
    s->started = v[1];
    s->ids.slot = (uint32_t)v[2];
    s->flags = (uint32_t)v[3];
    s->confirmed = v[4] != 0;
    s->enforced = (uint32_t)v[5];
    s->memory_bytes = v[6];
    s->disk_bytes = v[7];
    s->cpu_millis = (uint32_t)v[8];
    s->pids = (uint32_t)v[9];
    s->nofile = (uint32_t)v[10];
    group = str_cut(lines, '\n', &lines);
    installation = str_cut(group, ' ', &group);
    group = str_cut(group, ' ', &runtime);
    s->oci = oci_find(runtime);
    (void)snprintf(s->installation, sizeof s->installation, STR_FMT, STR_ARG(installation));
    if (group.n > 0 && group.n < sizeof s->group)
        (void)snprintf(s->group, sizeof s->group, STR_FMT, STR_ARG(group));
    s->keep = s->pid == 0; /* stopped: only its files exist */
    if (s->keep)
        return;
    idmap_mark(&s->ids);
    read_shared(s, lines);
}

/* Checks the start time while holding the pidfd: the pid cannot be reused then. */
static int hold(const struct sandbox *s)
{
    AUTO(fd_close) int fd = s->pid > 1 ? (int)syscall(SYS_pidfd_open, s->pid, 0) : -1;

    return fd >= 0 && s->started != 0 && process_started(s->pid) == s->started ? TAKE_FD(fd) : -1;
}

/* During a claim the record is still its spare's. */
static bool has_disk(int dir)
{
    return dir >= 0 && (disk_is_there(dir) || faccessat(dir, "fs", F_OK, AT_SYMLINK_NOFOLLOW) == 0);
}

/* The former holtd may have been another user. */
static void open_to_holtd(const struct sandbox *s, bool is_spare)
{
    if (is_spare)
        return;
    (void)!fchmod(s->dir, host_box_mode());
    (void)!host_hand_over(s->dir, "init.sock");
}

static void adopt_one(int parent, const char *id)
{
    struct spawn_create c = {.id = str_of(id), .hostname = STR("adopted")};
    bool is_spare = parent == host.spares;
    struct sandbox *s;
    int fd;

    if (!(is_spare ? spare_is_name(c.id) : spawn_id_is_safe(c.id)) || c.id.n == 0)
        return;
    s = sandbox_new(&c, 0);
    s->spare = is_spare ? SPARE_MAKING : SPARE_NONE;
    s->dir = openat(parent, id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    s->flags = SPAWN_UPPER_DISK; /* without a record: look for everything */
    s->memory_bytes = s->pids = s->cpu_millis = 1;
    if (s->dir >= 0) {
        read_record(s);
        open_to_holtd(s, is_spare);
    }
    if (has_disk(s->dir))
        s->flags |= SPAWN_UPPER_DISK;
    s->v1.made = s->memory_bytes || s->pids || s->cpu_millis;
    s->cg2 = host.cg2 < 0 ? -1 : openat(host.cg2, s->group, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    snapshot_recover(s);
    fd = hold(s);
    if (fd < 0)
        s->pid = 0;
    sandbox_adopted(s, fd);
    log_info(is_spare ? "found a spare sandbox" : "found a sandbox", LOG_C("sandbox", id),
             LOG_C("state", s->keep  ? "stopped"
                            : fd < 0 ? "dead"
                                     : "running"));
    if (is_spare)
        sandbox_destroy(s, 0, false);
}

static int adopt_in(int parent, struct err *e)
{
    int fd = openat(parent, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *entry;

    if (!d) {
        fd_close(fd);
        return err_set(e, err_code_from_errno(errno), errno, "look for sandboxes");
    }
    while ((entry = readdir(d)))
        if (entry->d_name[0] != '.')
            adopt_one(parent, entry->d_name);
    (void)closedir(d);
    return 0;
}

int record_adopt_all(struct err *e)
{
    if (adopt_in(host.boxes, e) < 0 || adopt_in(host.spares, e) < 0)
        return -1;
    spare_sweep();
    return 0;
}
