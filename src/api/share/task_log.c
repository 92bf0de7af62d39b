/* task_log: streams a task's output. */
#include "api/share/task_log.h"

#include "api/share/line_log.h"

struct task_lines { /* in the exchange's arena */
    struct task *t;
    struct task_watch watch;
    struct line_log *log;
};

static int64_t read_task(void *object, int64_t offset, size_t max, struct buf *to, struct err *e)
{
    const struct task_lines *s = object;

    return task_log_read(s->t, offset, max, to, e);
}

static bool is_over(void *object, int *ret_code, struct str *ret_why)
{
    const struct task_lines *s = object;
    struct task_info i;

    task_info(s->t, &i);
    *ret_code = i.exit_code;
    *ret_why = i.error.n > 0 ? i.error : i.message;
    return task_state_is_end(i.state);
}

static void stop(void *object)
{
    struct task_lines *s = object;

    task_unwatch(&s->watch);
}

static void on_changed(struct task_watch *w)
{
    line_log_poke(CONTAINER_OF(w, struct task_lines, watch)->log);
}

void task_log_stream(struct request *r, struct task *t, int64_t offset, bool follow)
{
    static const struct line_source source = {read_task, is_over, stop};
    struct task_lines *s = arena_zalloc(xchg_arena(r->x), sizeof *s);

    s->t = t;
    s->watch.changed = on_changed;
    s->log = line_log_new(r, &source, s);
    task_watch(t, &s->watch);
    line_log_start(s->log, r, offset, follow);
}
