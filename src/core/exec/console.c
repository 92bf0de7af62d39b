/* console: the clients attached to a command, and which of them controls it. */
#include "core/exec/console.h"

#include "base/clock.h"
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

/* --- members --- */

/* No callback ends a seat: they only send messages. */
static void tell_members(struct console *c)
{
    LIST_EACH (&c->seats, node) {
        struct console_seat *s = LIST_ENTRY(node, struct console_seat, link);

        if (s->members)
            s->members(s);
    }
}

void console_each(const struct consoles *all, const char *exec,
                  void (*each)(void *arg, const struct console_seat *s), void *arg)
{
    const struct console *c = map_get(&all->by_exec, str_of(exec));

    if (c)
        LIST_EACH (&c->seats, node) {
            const struct console_seat *s = LIST_ENTRY(node, struct console_seat, link);

            if (s->name)
                each(arg, s);
        }
}

/* --- control --- */

static int refuse_control(const char *exec, const struct console_seat *holder, struct err *e)
{
    err_set(e, ERR_CONFLICT, 0, "command '%s' has a controller already%s%s%s", exec,
            holder->name ? " ('" : "", holder->name ? holder->name : "", holder->name ? "')" : "");
    err_object(e, "exec", exec);
    if (holder->changed)
        return err_hint(e, "attach as observer, or with take=true");
    return err_hint(e, "its input is being written: attach as observer, or wait");
}

/* to: NULL: nobody has control. */
static void move_control(struct console *c, struct console_seat *to, const struct console_seat *by)
{
    struct console_seat *old = c->controller;

    c->controller = to;
    if (old)
        old->role = CONSOLE_OBSERVER;
    if (to)
        to->role = CONSOLE_CONTROLLER;
    if (old && old != by && old->changed)
        old->changed(old);
    if (to && to != by && to->changed)
        to->changed(to);
}

int console_sit(struct consoles *all, const char *exec, enum console_role want, bool take,
                struct console_seat *seat, struct err *e)
{
    struct console *c = console_of(all, exec);
    const struct console_seat *old = c->controller;

    if (want == CONSOLE_ANY)
        want = !old || (take && old->changed) ? CONSOLE_CONTROLLER : CONSOLE_OBSERVER;
    if (want == CONSOLE_CONTROLLER && old && !(take && old->changed))
        return refuse_control(exec, old, e); /* `old` is attached: the console stays */
    seat->console = c;
    seat->role = CONSOLE_OBSERVER;
    seat->since_ms = clock_wall_ms();
    list_push(&c->seats, &seat->link);
    if (want == CONSOLE_CONTROLLER)
        move_control(c, seat, seat);
    tell_members(c);
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
    tell_members(c);
    console_drop_if_empty(c);
}

int console_take(struct console_seat *seat, struct err *e)
{
    struct console *c = seat->console;

    if (c->controller == seat)
        return 0;
    if (c->controller && !c->controller->changed)
        return refuse_control(c->exec, c->controller, e);
    move_control(c, seat, seat);
    tell_members(c);
    return 0;
}

void console_release(struct console_seat *seat)
{
    struct console *c = seat->console;

    if (c->controller != seat)
        return;
    move_control(c, NULL, seat);
    tell_members(c);
}

static struct console_seat *member_named(const struct console *c, struct str name, bool may)
{
    LIST_EACH (&c->seats, node) {
        struct console_seat *s = LIST_ENTRY(node, struct console_seat, link);

        if (s->name && str_eq_c(name, s->name) && (!may || s->may_control))
            return s;
    }
    return NULL;
}

int console_give(struct console_seat *seat, struct str name, struct err *e)
{
    struct console *c = seat->console;
    struct console_seat *to = member_named(c, name, true);

    if (c->controller != seat) {
        err_set(e, ERR_CONFLICT, 0, "only the controller can hand control over");
        return err_hint(e, "take it first: {\"type\": \"take\"}");
    }
    if (!to && member_named(c, name, false))
        return err_set(e, ERR_FORBIDDEN, 0, "member '" STR_FMT "' may not control",
                       (int)size_min(name.n, 64), name.p);
    if (!to)
        return err_set(e, ERR_NOT_FOUND, 0, "there is no member '" STR_FMT "'",
                       (int)size_min(name.n, 64), name.p ? name.p : "");
    if (to == seat)
        return 0;
    move_control(c, to, seat);
    tell_members(c);
    return 0;
}
