/* exec_link: the commands of a sandbox when a connection to its init begins. */
#include "core/exec/exec_internal.h"

#include "base/log.h"

#include <signal.h>

/* --- a command that init knows but no row has: holtd died before its row was written, or after its
 * end was committed and before init was told.  No client was promised its output. --- */

static void stray_running(struct guest_exec *x, const struct guest_exec_running *r)
{
    (void)r;
    guest_exec_signal(x, SIGKILL, GUEST_SCOPE_ALL);
}

static void stray_output(struct guest_exec *x, enum guest_stream s, uint64_t offset,
                         struct str bytes)
{
    guest_exec_ack(x, s, offset + bytes.n);
}

static void stray_room(struct guest_exec *x)
{
    (void)x;
}

static void stray_exited(struct guest_exec *x, const struct guest_exec_exit *how)
{
    (void)how;
    guest_exec_forget(x);
}

static void stray_gone(struct guest_exec *x, const struct err *e)
{
    (void)x;
    (void)e;
}

void exec_set_forget(struct exec_set *set, const struct guest_exec_row *row)
{
    static const struct guest_exec_ops ops = {stray_running, stray_output, stray_room, stray_exited,
                                              stray_gone};
    const struct guest_exec_attach a = {
        .id = row->id, .out_from = row->out_end, .err_from = row->err_end};
    struct guest_exec *ch;
    struct err e;

    if (guest_exec_attach(sandbox_link(set->sandbox), &a, &ops, NULL, &ch, &e) < 0)
        log_warn("an unknown command of a sandbox could not be ended",
                 LOG_C("sandbox", sandbox_id(set->sandbox)), LOG_S("exec", row->id), LOG_E(&e));
}

/* --- init said hello --- */

/* One whose end is not committed counts: init must keep it. */
static struct exec *known_exec(struct exec_set *set, struct str id)
{
    LIST_EACH (&set->list, node) {
        struct exec *x = LIST_ENTRY(node, struct exec, link);

        if (str_eq_c(id, x->id))
            return x->ended_saved ? NULL : x;
    }
    return NULL;
}

void exec_set_linked(struct exec_set *set, const struct guest_hello_init *h, bool other)
{
    struct wire_rows rows = h->execs;
    struct guest_exec_row row;

    LIST_EACH (&set->list, node) {
        struct exec *x = LIST_ENTRY(node, struct exec, link);

        x->listed = false;
        if (other && exec_is_live(x) && !x->start)
            exec_lose(x, "another init answers in the sandbox");
    }
    while (wire_rows_next(&guest_exec_row_layout, &rows, &row)) {
        struct exec *x = known_exec(set, row.id);

        if (x && !x->listed && exec_is_live(x))
            exec_link(x, &row);
        else if (!x)
            exec_set_forget(set, &row);
        if (x)
            x->listed = true;
    }
    LIST_EACH (&set->list, node) {
        struct exec *x = LIST_ENTRY(node, struct exec, link);

        if (exec_is_live(x) && !x->listed)
            exec_link(x, NULL);
    }
}
