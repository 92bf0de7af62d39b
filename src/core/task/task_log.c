/* task_log: the output of a task's command, in a file that outlives its sandbox. */
#include "core/task/task_internal.h"

#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#define LOG_NAME STR("stdout.log")
#define LOG_MAX (64LL << 20) /* bytes kept: the beginning */

static int log_open(const struct task *t, int flags, struct err *e)
{
    AUTO(fd_close) int dir = share_dir(t->all->c.share, SHARE_TASKS, str_of(t->id), true, e);

    return dir < 0 ? -1 : share_file(dir, LOG_NAME, flags, 0644, e);
}

/* At its offset: after a restart the same bytes are written again. */
void task_log_add(struct task *t, int64_t offset, struct str bytes)
{
    struct err e = {0};

    if (offset >= LOG_MAX)
        return;
    if (t->log_fd < 0)
        t->log_fd = log_open(t, O_WRONLY | O_CREAT, &e);
    if (t->log_fd < 0) {
        log_warn("the log of a task cannot be written", LOG_C("id", t->id), LOG_E(&e));
        return;
    }
    while (bytes.n > 0) {
        ssize_t n = pwrite(t->log_fd, bytes.p, bytes.n, offset);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return;
        offset += n;
        bytes = str_skip(bytes, (size_t)n);
    }
}

void task_log_close(struct task *t)
{
    fd_close(t->log_fd);
    t->log_fd = -1;
}

int64_t task_log_read(const struct task *t, int64_t offset, size_t max, struct buf *to,
                      struct err *e)
{
    AUTO(fd_close) int fd = log_open(t, O_RDONLY, e);
    ssize_t n;
    char *at;

    if (fd < 0 && e->code == ERR_NOT_FOUND) { /* it wrote nothing yet */
        *e = (struct err){0};
        return 0;
    }
    if (fd < 0 || buf_reserve(to, max, &at) < 0)
        return -1;
    do
        n = pread(fd, at, max, offset);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return err_set(e, ERR_INTERNAL, errno, "read the log of task '%s'", t->id);
    buf_added(to, (size_t)n);
    return n;
}

void task_watch(struct task *t, struct task_watch *w)
{
    list_push(&t->watches, &w->link);
}

void task_unwatch(struct task_watch *w)
{
    if (w->link.next)
        list_unlink(&w->link);
}
