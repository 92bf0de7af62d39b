/* rollout_log: what ansible-playbook wrote, in files that outlive its sandbox. */
#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "core/playbook/rollout_internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define LOG_MAX (16LL << 20) /* bytes kept: the beginning */

static const char *const phase_names[] = {"check", "run"};

static struct rollouts *all_of(const struct rollout *ro)
{
    return CONTAINER_OF(ro->named.list, struct rollouts, list);
}

static void log_name(const char *id, enum rollout_phase phase, char to[ID_SIZE + 8])
{
    (void)snprintf(to, ID_SIZE + 8, "%s.%s", id, phase_names[phase]);
}

static bool is_known(const struct rollouts *l, const char *name)
{
    const char *dot = strchr(name, '.');

    return dot && named_get(&l->list, str_make(name, (size_t)(dot - name)));
}

/* Of rollouts that were forgotten while holtd was killed. */
static void remove_strays(const struct rollouts *l)
{
    int fd = openat(l->logs, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *entry;

    if (!d) {
        fd_close(fd);
        return;
    }
    while ((entry = readdir(d)))
        if (entry->d_name[0] != '.' && !is_known(l, entry->d_name))
            (void)unlinkat(l->logs, entry->d_name, 0);
    (void)closedir(d);
}

int rollout_logs_open(struct rollouts *l, struct err *e)
{
    AUTO(mem_free) char *path = xasprintf("%s/rollouts", l->c.state);

    if (mkdir(path, 0700) < 0 && errno != EEXIST)
        return err_set(e, ERR_INTERNAL, errno, "make '%s'", path);
    l->logs = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (l->logs < 0)
        return err_set(e, ERR_INTERNAL, errno, "open '%s'", path);
    remove_strays(l);
    return 0;
}

static int log_open(const struct rollout *ro, enum rollout_phase phase, int flags)
{
    char name[ID_SIZE + 8];

    log_name(ro->named.id, phase, name);
    return openat(all_of(ro)->logs, name, flags | O_NOFOLLOW | O_CLOEXEC, 0600);
}

void rollout_log_begin(struct rollout *ro, enum rollout_phase phase)
{
    AUTO(fd_close) int fd = log_open(ro, phase, O_WRONLY | O_CREAT | O_TRUNC);

    if (fd < 0)
        log_warn("the output of a rollout cannot be kept", LOG_C("id", ro->named.id),
                 LOG_N("errno", errno));
}

/* At its offset: after a restart the same bytes are written again. */
void rollout_log_add(struct rollout *ro, enum rollout_phase phase, int64_t offset, struct str bytes)
{
    AUTO(fd_close) int fd = -1;

    if (offset >= LOG_MAX)
        return;
    bytes.n = size_min(bytes.n, (size_t)(LOG_MAX - offset));
    fd = log_open(ro, phase, O_WRONLY | O_CREAT);
    while (fd >= 0 && bytes.n > 0) {
        ssize_t n = pwrite(fd, bytes.p, bytes.n, offset);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        offset += n;
        bytes = str_skip(bytes, (size_t)n);
    }
    if (bytes.n > 0)
        log_warn("output of a rollout is lost", LOG_C("id", ro->named.id), LOG_N("errno", errno));
    rollout_tell(ro);
}

int64_t rollout_output(const struct rollout *ro, enum rollout_phase phase, int64_t offset,
                       size_t max, struct buf *to, struct err *e)
{
    AUTO(fd_close) int fd = log_open(ro, phase, O_RDONLY);
    ssize_t n;
    char *at;

    if (fd < 0 && errno == ENOENT) /* it wrote nothing yet */
        return 0;
    if (fd < 0)
        return err_set(e, ERR_INTERNAL, errno, "open the output of rollout '%s'", ro->named.id);
    if (buf_reserve(to, max, &at) < 0) {
        err_set(e, ERR_LIMIT, ENOMEM, "there is no memory for the output");
        return err_hint(e, "try again when holtd has less to do");
    }
    do
        n = pread(fd, at, max, offset);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return err_set(e, ERR_INTERNAL, errno, "read the output of rollout '%s'", ro->named.id);
    buf_added(to, (size_t)n);
    return n;
}

bool rollout_output_is_over(const struct rollout *ro, enum rollout_phase phase)
{
    enum rollout_state s = (enum rollout_state)ro->shown;

    return rollout_state_is_end(s) || s == ROLLOUT_ROLLING_BACK ||
           (phase == ROLLOUT_CHECK && s > ROLLOUT_CHECKING);
}

void rollout_log_remove(const struct rollout *ro)
{
    char name[ID_SIZE + 8];

    for (int phase = 0; phase < ROLLOUT_PHASES; phase++) {
        log_name(ro->named.id, (enum rollout_phase)phase, name);
        (void)unlinkat(all_of(ro)->logs, name, 0);
    }
}

void rollout_watch(struct rollout *ro, struct rollout_watch *w)
{
    list_push(&ro->watches, &w->link);
}

void rollout_unwatch(struct rollout_watch *w)
{
    if (w->link.next)
        list_unlink(&w->link);
}

void rollout_command(const struct rollout *ro, enum rollout_phase phase, struct buf *to)
{
    (void)ro;
    ansible_words(phase == ROLLOUT_CHECK, to);
}
