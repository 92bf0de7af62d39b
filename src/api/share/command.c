/* command: starts a command and replies when it has ended. */
#include "api/share/command.h"

#include "base/mem.h"
#include "core/exec/feed.h"

struct command {
    struct api *api;
    const struct command_ops *ops;
    void *arg;
    struct exec *x; /* once it runs */
    struct exec_wait *wait;
    struct collect collect;
    struct buf input;
    bool input_eof;
    bool dropped, end; /* while it was starting */
};

static void command_free(struct command *c)
{
    exec_wait_cancel(c->wait);
    collect_done(&c->collect);
    buf_done(&c->input);
    exec_unref(c->x);
    mem_free(c);
}

static void tell(struct command *c, const struct collect *gathered, const struct err *e)
{
    c->ops->done(c->arg, c->x, gathered, e);
    command_free(c);
}

static void output_gathered(void *arg, const struct err *e)
{
    struct command *c = arg;

    tell(c, &c->collect, e);
}

static void command_ended(void *arg, struct exec *x, const struct err *e)
{
    struct command *c = arg;

    c->wait = NULL;
    if (e->code == ERR_NONE)
        collect_start(&c->collect, x, (size_t)c->api->c.conf->body_max, output_gathered, c);
    else
        tell(c, NULL, e);
}

static void command_cancelled(void *arg, struct exec *x, const struct err *e)
{
    (void)arg, (void)x, (void)e; /* it has already ended, or its end will be reported */
}

void command_drop(struct command *c, bool end)
{
    const struct server *s = c->api->server; /* NULL: it has stopped */

    c->dropped = true;
    c->end = end = end && s && !server_is_cutting(s);
    if (!c->x)
        return; /* `started` handles it */
    if (end)
        exec_cancel(c->x, command_cancelled, NULL);
    command_free(c);
}

static void command_started(void *arg, struct exec *x, const struct err *e)
{
    struct command *c = arg;

    if (!x) {
        if (c->dropped)
            command_free(c);
        else
            tell(c, NULL, e);
        return;
    }
    c->x = exec_ref(x);
    if (buf_len(&c->input) > 0 || c->input_eof)
        feed_start(c->api->consoles, x, buf_str(&c->input), c->input_eof);
    if (c->dropped) {
        command_drop(c, c->end);
        return;
    }
    c->wait = exec_wait(x, command_ended, c);
    if (c->ops->started)
        c->ops->started(c->arg, x);
}

struct command *command_start(struct api *a, struct sandbox *s, const struct exec_spec *spec,
                              const struct exec_input *input, const struct principal *by,
                              const struct command_ops *ops, void *arg)
{
    struct command *c = xzalloc(sizeof *c);
    struct exec_spec wanted = *spec;

    c->api = a;
    c->ops = ops;
    c->arg = arg;
    c->input_eof = input->eof;
    buf_add_str(&c->input, input->bytes);
    wanted.quiet_start = !ops->started && input->bytes.n == 0 && !input->eof;
    exec_start(s, &wanted, by, command_started, c);
    return c;
}
