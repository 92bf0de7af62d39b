/* feed: writes the input of a request into a command. */
#include "core/exec/feed.h"

#include "base/buf.h"
#include "base/mem.h"

struct feed {
    struct exec *x;
    struct buf left;
    bool eof;
    struct exec_wait *wait;
    struct console_seat seat;
};

static void feed_end(struct feed *f)
{
    console_leave(&f->seat);
    exec_wait_cancel(f->wait);
    buf_done(&f->left);
    exec_unref(f->x);
    mem_free(f);
}

static void command_ended(void *arg, struct exec *x, const struct err *e)
{
    struct feed *f = arg;

    (void)x, (void)e;
    f->wait = NULL;
    feed_end(f);
}

static void feed_on(void *arg)
{
    struct feed *f = arg;

    buf_take(&f->left, exec_stdin(f->x, buf_str(&f->left), f->eof, feed_on, f));
    if (buf_len(&f->left) == 0)
        feed_end(f);
}

void feed_start(struct consoles *c, struct exec *x, struct str bytes, bool eof)
{
    struct feed *f = xzalloc(sizeof *f);
    struct exec_info i;
    struct err e;

    exec_info(x, &i);
    f->x = exec_ref(x);
    f->eof = eof;
    buf_add_str(&f->left, bytes);
    f->wait = exec_wait(x, command_ended, f);
    /* It was started a moment ago: a client that is already attached only watches at first. */
    (void)!console_sit(c, i.id, CONSOLE_CONTROLLER, false, &f->seat, &e);
    feed_on(f);
}
