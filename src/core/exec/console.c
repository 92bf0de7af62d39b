/* console: the clients attached to a command, and which of them controls it. */
#include "core/exec/console.h"

#include "base/map.h"
#include "base/mem.h"

struct console {
    struct consoles *all;
    char *exec;
    struct list seats;
    struct console_seat *controller; /* or NULL */
};

struct consoles {
    struct map by_exec;
};

struct consoles *consoles_new(void)
{
    return xzalloc(sizeof(struct consoles));
}

struct consoles *consoles_free(struct consoles *c)
{
    if (!c)
        return NULL;
    assert(c->by_exec.count == 0);
    map_done(&c->by_exec);
    mem_free(c);
    return NULL;
}

static struct console *console_of(struct consoles *all, const char *exec)
{
    struct console *c = map_get(&all->by_exec, str_of(exec));

    if (c)
        return c;
    c = xzalloc(sizeof *c);
    c->all = all;
    c->exec = xstrdup(exec);
    list_init(&c->seats);
    (void)map_set(&all->by_exec, str_of(exec), c);
    return c;
}

static void console_drop_if_empty(struct console *c)
{
    if (!list_is_empty(&c->seats))
        return;
    (void)map_remove(&c->all->by_exec, str_of(c->exec));
    mem_free(c->exec);
    mem_free(c);
}

static int refuse_control(const char *exec, bool can_take, struct err *e)
{
    err_set(e, ERR_CONFLICT, 0, "command '%s' has a controller already", exec);
    err_object(e, "exec", exec);
    if (can_take)
        return err_hint(e, "attach as observer, or with take=true");
    return err_hint(e, "its input is being written: attach as observer, or wait");
}

int console_sit(struct consoles *all, const char *exec, enum console_role want, bool take,
                struct console_seat *seat, struct err *e)
{
    struct console *c = console_of(all, exec);
    struct console_seat *old = c->controller;

    if (want == CONSOLE_ANY)
        want = !old || (take && old->demoted) ? CONSOLE_CONTROLLER : CONSOLE_OBSERVER;
    if (want == CONSOLE_CONTROLLER && old && !(take && old->demoted))
        return refuse_control(exec, old->demoted, e); /* `old` is attached: the console stays */
    seat->console = c;
    seat->role = want;
    list_push(&c->seats, &seat->link);
    if (want != CONSOLE_CONTROLLER)
        return 0;
    c->controller = seat;
    if (old) {
        old->role = CONSOLE_OBSERVER;
        old->demoted(old);
    }
    return 0;
}

void console_leave(struct console_seat *seat)
{
    struct console *c = TAKE(seat->console);

    if (!c)
        return;
    list_unlink(&seat->link);
    if (c->controller == seat)
        c->controller = NULL;
    console_drop_if_empty(c);
}
